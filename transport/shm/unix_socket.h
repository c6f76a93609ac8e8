#pragma once
// Unix sockets with abstract names: no file system keeps them, they end with their last descriptor, and each network
// namespace has names of its own, so that whoever can reach a name is where the endpoint of that name is.
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "transport/shm/ring_memory.h"

namespace tributary::transport {

/// The name for the endpoint that is written so.
[[nodiscard]] std::string shared_name(const std::string& endpoint);

/// -1 with errno: EADDRINUSE.
[[nodiscard]] OwnedDescriptor listen_at_name(const std::string& name) noexcept;
/// Not open, with errno: ECONNREFUSED where nobody listens, EAGAIN where more wait than the listener's queue holds.
[[nodiscard]] OwnedDescriptor connect_to_name(const std::string& name) noexcept;

/// A process of this user or of root is at the other end; root itself serves everybody.
[[nodiscard]] bool trusted_user(int socket) noexcept;

/// All of it at once or not at all. `descriptor` -1: none goes along.
[[nodiscard]] bool send_message(int socket, std::span<const std::byte> message, int descriptor = -1) noexcept;
/// Takes what has come, at most message.size(); 0: the end; -1 with errno. A descriptor that comes along is put into
/// `descriptor`; of more than one the others are closed, and so are all where none is wanted (nullptr).
[[nodiscard]] ssize_t receive_message(int socket, std::span<std::byte> message,
                                      OwnedDescriptor* descriptor = nullptr) noexcept;

}  // namespace tributary::transport
