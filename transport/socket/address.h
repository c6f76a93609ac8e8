#pragma once
// Addresses in the system's form, and the look-up of names.
#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::transport {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const noexcept { return storage.ss_family; }
};

/// The text for an error number, such as "Connection refused".
[[nodiscard]] std::string error_text(int error);

/// Returns an IPv4 address in IPv6 form as IPv4.
[[nodiscard]] Endpoint endpoint_of(const SocketAddress& address);
[[nodiscard]] Endpoint local_of(int socket);
[[nodiscard]] Endpoint peer_of(int socket);

/// Returns no address if `host` is a name: this function asks no resolver.
[[nodiscard]] std::optional<SocketAddress> numeric_address(const Endpoint& endpoint);
/// Asks the system's resolver, which may block.
[[nodiscard]] Result<std::vector<SocketAddress>> look_up(const Endpoint& endpoint);

/// Returns SO_ERROR, and clears it.
[[nodiscard]] int pending_error(int socket) noexcept;

}  // namespace tributary::transport
