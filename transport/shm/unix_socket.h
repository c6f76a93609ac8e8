#pragma once
// Unix sockets with abstract names: no file system keeps them, they end with their last descriptor, and each network
// namespace has its own, so a process that can reach a name is where the endpoint of that name is.
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "transport/shm/ring_memory.h"

namespace tributary::transport {

/// The socket's name for an endpoint that is written as "host:port".
[[nodiscard]] std::string shared_name(const std::string& endpoint);

/// Not open, with errno, such as EADDRINUSE.
[[nodiscard]] OwnedDescriptor listen_at_name(const std::string& name) noexcept;
/// Not open, with errno: ECONNREFUSED where nobody listens, EAGAIN when the listener's queue is full.
[[nodiscard]] OwnedDescriptor connect_to_name(const std::string& name) noexcept;

/// Whether the process at the other end has this user, or root; root itself serves everybody.
[[nodiscard]] bool trusted_user(int socket) noexcept;

/// Sends all of the message or nothing. `descriptor` -1: none goes along.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> message, int descriptor = -1) noexcept;
/// Takes the bytes that have come, at most message.size(); 0: the end; -1 with errno. A descriptor that comes along is
/// put into `descriptor`. If several come, the others are closed; if none is wanted (nullptr), all are.
[[nodiscard]] ssize_t receive_message(int socket, std::span<std::byte> message,
                                      OwnedDescriptor* descriptor = nullptr) noexcept;

}  // namespace tributary::transport
