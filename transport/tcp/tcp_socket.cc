#include "transport/tcp/tcp_socket.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tributary::transport {
namespace {

using std::chrono::duration_cast;

struct InterfaceList {
  ifaddrs* first = nullptr;
  ~InterfaceList() {
    if (first != nullptr) ::freeifaddrs(first);
  }
};

template <class T>
void set_option(int socket, int level, int name, const T& value) noexcept {
  (void)::setsockopt(socket, level, name, &value, sizeof value);  // the connection works without this option, too
}

// Linux has these options from 6.15 on; Debian 12's headers do not name them.
constexpr int kTcpRtoMinUs = 45;
constexpr int kTcpDelackMaxUs = 46;
/// If a packet is lost and no packet follows it, the system sends it again after this time and two round trips. Without
/// this option it takes 200 ms, and all ranks wait meanwhile for the last segment of an operation.
constexpr int kLossNoticedUs = 10'000;
/// The receiver acknowledges within this time, so that the sender does not take its delay for a loss.
constexpr int kAcknowledgedUs = 5'000;

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

/// Returns the socket, or -1 with errno.
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

/// The address as text, such as "192.0.2.1"; empty if it is no address of the internet.
std::string host_of(const sockaddr& address) {
  if (address.sa_family != AF_INET && address.sa_family != AF_INET6) return {};
  SocketAddress copy;
  copy.bytes = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::memcpy(&copy.storage, &address, copy.bytes);
  return endpoint_of(copy).host;
}

}  // namespace

void set_options(int socket, const TcpSettings& settings) noexcept {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, IPPROTO_TCP, kTcpRtoMinUs, kLossNoticedUs);
  set_option(socket, IPPROTO_TCP, kTcpDelackMaxUs, kAcknowledgedUs);
  if (settings.traffic_class != 0) {
    const int traffic_class = settings.traffic_class;
    set_option(socket, IPPROTO_IP, IP_TOS, traffic_class);
    set_option(socket, IPPROTO_IPV6, IPV6_TCLASS, traffic_class);  // fails on a socket of IPv4, without harm
  }
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
  // Set before connect and listen, because the first packets negotiate the window's scale.
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
    if (errno == EADDRINUSE) break;  // the transport must not listen only on the other family
  }
  const std::string why = error == EADDRINUSE ? "the address is in use" : error_text(error);
  return fail(Errc::io, "cannot listen on " + to_string(at) + ": " + why + ".");
}

Result<std::string> address_of_interface(std::string_view name) {
  InterfaceList list;
  if (::getifaddrs(&list.first) != 0) {
    return fail(Errc::io, "cannot list the network interfaces: " + error_text(errno) + ".");
  }
  std::string six;
  for (const ifaddrs* at = list.first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || name != at->ifa_name) continue;
    if (at->ifa_addr->sa_family == AF_INET) return host_of(*at->ifa_addr);
    if (at->ifa_addr->sa_family == AF_INET6 && six.empty()) six = host_of(*at->ifa_addr);
  }
  if (!six.empty()) return six;
  return fail(Errc::bad_config, "network interface '" + std::string(name) + "' does not exist or has no address.");
}

}  // namespace tributary::transport
