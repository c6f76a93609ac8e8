#include "tcp/socket.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace tributary::transport {
namespace {

using std::chrono::duration_cast;

template <class T>
void set_option(int socket, int level, int name, const T& value) noexcept {
  (void)::setsockopt(socket, level, name, &value, sizeof value);  // where the system has no such option, do without
}

struct AddressList {
  addrinfo* first = nullptr;
  ~AddressList() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
};

struct InterfaceList {
  ifaddrs* first = nullptr;
  ~InterfaceList() {
    if (first != nullptr) ::freeifaddrs(first);
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

SocketAddress any_address(int family, std::uint16_t port) {
  SocketAddress any;
  any.storage.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    auto* six = reinterpret_cast<sockaddr_in6*>(&any.storage);
    six->sin6_port = htons(port);
    any.bytes = sizeof *six;
  } else {
    auto* four = reinterpret_cast<sockaddr_in*>(&any.storage);
    four->sin_port = htons(port);
    any.bytes = sizeof *four;
  }
  return any;
}

Result<std::vector<SocketAddress>> addresses_to_listen_at(const Endpoint& at) {
  if (!at.host.empty()) return look_up(at);
  return std::vector{any_address(AF_INET6, at.port), any_address(AF_INET, at.port)};
}

/// The socket, or -1 with errno.
int listen_at(const SocketAddress& address, const TcpSettings& settings) {
  const int socket = open_socket(address.family(), settings);
  if (socket < 0) return -1;
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket, address.get(), address.bytes) == 0 && ::listen(socket, SOMAXCONN) == 0) return socket;
  const int error = errno;
  ::close(socket);
  errno = error;
  return -1;
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

void set_options(int socket, const TcpSettings& settings) noexcept {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  const auto user_timeout_ms = duration_cast<std::chrono::milliseconds>(settings.user_timeout).count();
  if (user_timeout_ms > 0) set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<unsigned>(user_timeout_ms));
  const auto idle_s = duration_cast<std::chrono::seconds>(settings.keepalive).count();
  if (settings.keepalive <= Duration::zero()) return;
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(std::max<std::int64_t>(1, idle_s)));
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(std::max<std::int64_t>(1, idle_s / 3)));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

int open_socket(int family, const TcpSettings& settings) noexcept {
  const int socket = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (socket < 0) return -1;
  // Before connect and listen: the window's scale is agreed upon with the first packets.
  if (settings.send_buffer_bytes != 0) {
    set_option(socket, SOL_SOCKET, SO_SNDBUF, static_cast<int>(settings.send_buffer_bytes));
  }
  if (settings.receive_buffer_bytes != 0) {
    set_option(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(settings.receive_buffer_bytes));
  }
  set_options(socket, settings);
  return socket;
}

int bind_source(int socket, int family, const TcpSettings& settings) noexcept {
  if (settings.bind_address.empty()) return 0;
  const auto source = numeric_address({settings.bind_address, 0});
  if (!source || source->family() != family) return 0;
  return ::bind(socket, source->get(), source->bytes) == 0 ? 0 : errno;
}

Result<int> open_listener(const Endpoint& at, const TcpSettings& settings) {
  Endpoint where = at;
  if (where.host.empty()) where.host = settings.bind_address;
  const auto addresses = addresses_to_listen_at(where);
  if (!addresses) return fail(Errc::io, "cannot listen on " + to_string(at) + ": " + addresses.error().message);
  int error = 0;
  for (const SocketAddress& address : *addresses) {
    const int socket = listen_at(address, settings);
    if (socket >= 0) return socket;
    if (error == 0 || error == EAFNOSUPPORT) error = errno;
    if (errno == EADDRINUSE) break;  // not to listen on the other family alone
  }
  const std::string why = error == EADDRINUSE ? "the address is in use" : error_text(error);
  return fail(Errc::io, "cannot listen on " + to_string(at) + ": " + why + ".");
}

int pending_error(int socket) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0) return errno;
  return error;
}

Result<std::string> address_of_interface(std::string_view name) {
  InterfaceList list;
  if (::getifaddrs(&list.first) != 0) {
    return fail(Errc::io, "cannot list the network interfaces: " + error_text(errno) + ".");
  }
  std::string six;
  for (const ifaddrs* at = list.first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || name != at->ifa_name) continue;
    if (at->ifa_addr->sa_family == AF_INET) return numeric_host(at->ifa_addr);
    if (at->ifa_addr->sa_family == AF_INET6 && six.empty()) six = numeric_host(at->ifa_addr);
  }
  if (!six.empty()) return six;
  return fail(Errc::bad_config, "network interface '" + std::string(name) + "' does not exist or has no address.");
}

}  // namespace tributary::transport
