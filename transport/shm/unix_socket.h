#pragma once
// Unix sockets with abstract names. No file system keeps these names; a name ends with its last descriptor. Each
// network namespace has its own names. So a process that can reach a name is in the same network namespace as the
// listener with that name.
#include <sys/types.h>

#include <cstddef>
#include <expected>
#include <string>

#include "transport/shm/ring_memory.h"

namespace tributary::transport {

/// The socket's name for an endpoint that is written as "host:port".
[[nodiscard]] std::string shared_name(const std::string& endpoint);

/// Returns errno on failure, such as EADDRINUSE.
[[nodiscard]] std::expected<OwnedDescriptor, int> listen_at_name(const std::string& name) noexcept;
/// Returns errno on failure: ECONNREFUSED if no process listens, EAGAIN if the listener's queue is full.
[[nodiscard]] std::expected<OwnedDescriptor, int> connect_to_name(const std::string& name) noexcept;

/// True if the process at the other end runs as the same user or as root, or if this process runs as root.
[[nodiscard]] bool trusted_user(int socket) noexcept;

/// Sends the whole message or no byte of it. `descriptor` is sent with it; -1: none.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> message, int descriptor = -1) noexcept;
/// Takes the bytes that have come, at most message.size(). Returns their number; 0 at the end; -1 with errno. Puts a
/// descriptor that comes with the bytes into `descriptor`. Closes further descriptors; if `descriptor` is nullptr,
/// closes all.
[[nodiscard]] ssize_t receive_message(int socket, std::span<std::byte> message,
                                      OwnedDescriptor* descriptor = nullptr) noexcept;

}  // namespace tributary::transport
