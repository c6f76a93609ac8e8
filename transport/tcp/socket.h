#pragma once
// Sockets and addresses of the system, without Asio.
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "tributary/transport/tcp.h"

namespace tributary::transport {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

/// "Connection refused"
[[nodiscard]] std::string error_text(int error);

/// IPv4 in IPv6 is written, and answered, as IPv4.
[[nodiscard]] Endpoint endpoint_of(const SocketAddress& address);
[[nodiscard]] Endpoint local_of(int socket);
[[nodiscard]] Endpoint peer_of(int socket);

/// Without asking anybody; nothing when `host` is a name.
[[nodiscard]] std::optional<SocketAddress> numeric_address(const Endpoint& endpoint);
/// May block: asks the system's resolver.
[[nodiscard]] Result<std::vector<SocketAddress>> look_up(const Endpoint& endpoint);

/// A non-blocking TCP socket with the settings' options; -1 with errno set.
[[nodiscard]] int open_socket(int family, const TcpSettings& settings) noexcept;
/// The options that an accepted or adopted socket needs as well.
void set_options(int socket, const TcpSettings& settings) noexcept;
/// Binds to the settings' address, if there is one of that family. 0 or errno.
[[nodiscard]] int bind_source(int socket, int family, const TcpSettings& settings) noexcept;
/// A socket that listens.
[[nodiscard]] Result<int> open_listener(const Endpoint& at, const TcpSettings& settings);

/// SO_ERROR, cleared by asking.
[[nodiscard]] int pending_error(int socket) noexcept;

}  // namespace tributary::transport
