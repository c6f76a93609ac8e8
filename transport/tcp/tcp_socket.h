#pragma once
// TCP sockets of the system, with the options that the settings ask for.
#include "transport/socket/address.h"
#include "tributary/transport/tcp.h"

namespace tributary::transport {

/// Opens a non-blocking TCP socket with the settings' options; -1 with errno set.
[[nodiscard]] int open_socket(int family, const TcpSettings& settings) noexcept;
/// Sets the options that an accepted or adopted socket needs as well.
void set_options(int socket, const TcpSettings& settings) noexcept;
/// Binds to the settings' address, if they have one of that family. Returns 0 or errno.
[[nodiscard]] int bind_source(int socket, int family, const TcpSettings& settings) noexcept;
/// Opens a socket that listens.
[[nodiscard]] Result<int> open_listener(const Endpoint& at, const TcpSettings& settings);

}  // namespace tributary::transport
