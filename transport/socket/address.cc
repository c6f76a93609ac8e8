#include "transport/socket/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace tributary::transport {
namespace {

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

int ask(const Endpoint& endpoint, int flags, std::vector<SocketAddress>& into) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  AddressList list;
  const std::string port = std::to_string(endpoint.port);
  const int error =
      ::getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(), port.c_str(), &hints, &list.first);
  for (const addrinfo* at = error == 0 ? list.first : nullptr; at != nullptr; at = at->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.bytes = at->ai_addrlen;
    into.push_back(address);
  }
  return error;
}

std::string numeric_host(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
    return text;
  }
  const auto* six = reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
    ::inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], text, sizeof text);
    return text;
  }
  ::inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
  std::string host = text;
  if (six->sin6_scope_id != 0) host += "%" + std::to_string(six->sin6_scope_id);
  return host;
}

}  // namespace

std::string error_text(int error) {
  return std::system_category().message(error);
}

Endpoint endpoint_of(const SocketAddress& address) {
  if (address.family() != AF_INET && address.family() != AF_INET6) return {"unknown", 0};
  const std::uint16_t port = address.family() == AF_INET
                                 ? reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port
                                 : reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port;
  return {numeric_host(address.get()), ntohs(port)};
}

Endpoint local_of(int socket) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  (void)::getsockname(socket, address.get(), &address.bytes);
  return endpoint_of(address);
}

Endpoint peer_of(int socket) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  (void)::getpeername(socket, address.get(), &address.bytes);
  return endpoint_of(address);
}

std::optional<SocketAddress> numeric_address(const Endpoint& endpoint) {
  std::vector<SocketAddress> found;
  if (endpoint.host.empty() || ask(endpoint, AI_NUMERICHOST, found) != 0 || found.empty()) return std::nullopt;
  return found.front();
}

Result<std::vector<SocketAddress>> look_up(const Endpoint& endpoint) {
  std::vector<SocketAddress> found;
  const int error = ask(endpoint, 0, found);
  if (error == 0 && !found.empty()) return found;
  const std::string why = error == EAI_SYSTEM ? error_text(errno) : ::gai_strerror(error);
  return fail(Errc::unreachable, "cannot find an address for '" + endpoint.host + "': " + why + ".");
}

int pending_error(int socket) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

}  // namespace tributary::transport
