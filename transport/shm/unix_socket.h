#pragma once
// Unix sockets with abstract names. No file system keeps these names; a name ends with its last descriptor. Each
// network namespace has names of its own, so a process that can reach a name is in the namespace of the endpoint with
// that name.
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "transport/shm/ring_memory.h"

namespace tributary::transport {

/// The socket's name for an endpoint that is written as "host:port".
[[nodiscard]] std::string shared_name(const std::string& endpoint);

/// Returns a descriptor that is not open, with errno, such as EADDRINUSE.
[[nodiscard]] OwnedDescriptor listen_at_name(const std::string& name) noexcept;
/// Returns a descriptor that is not open, with errno: ECONNREFUSED if nobody listens, EAGAIN if the listener's queue is
/// full.
[[nodiscard]] OwnedDescriptor connect_to_name(const std::string& name) noexcept;

/// True if the process at the other end has this user, or root; root itself serves everybody.
[[nodiscard]] bool trusted_user(int socket) noexcept;

/// Sends all of the message or nothing. `descriptor` -1: none goes along.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> message, int descriptor = -1) noexcept;
/// Takes the bytes that have come, at most message.size(). Returns their number; 0 at the end; -1 with errno. Puts a
/// descriptor that comes along into `descriptor`. If several come, it closes the others; if none is wanted (nullptr),
/// it closes all.
[[nodiscard]] ssize_t receive_message(int socket, std::span<std::byte> message,
                                      OwnedDescriptor* descriptor = nullptr) noexcept;

}  // namespace tributary::transport
