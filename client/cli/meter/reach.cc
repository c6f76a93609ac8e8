#include "client/cli/meter/reach.h"

#include <ifaddrs.h>
#include <linux/tcp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tributary::cli::meter {
namespace {

constexpr std::uint32_t kHeaders = 52;  // bytes of IPv4, TCP and its time stamps; IPv6 has 20 more
constexpr std::uint32_t kTimeStamps = 12;

/// Connects, and returns the error; 0: the socket is connected.
int connect_error(const Socket& socket, const addrinfo& to, std::chrono::steady_clock::time_point deadline) {
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

bool is_same_address(const sockaddr& a, const sockaddr_storage& b) {
  if (a.sa_family != b.ss_family) return false;
  if (a.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(a).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  }
  return a.sa_family == AF_INET6 && std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a).sin6_addr,
                                                &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, 16) == 0;
}

}  // namespace

Result<Socket> connect_to(const Endpoint& to, std::chrono::milliseconds limit, std::uint32_t frame_bytes_max) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(to.host.c_str(), std::to_string(to.port).c_str(), &wanted, &found);
  if (code != 0) return fail(Errc::unreachable, to_string(to) + ": " + gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Socket socket(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.valid() && frame_bytes_max > kHeaders) {
      const int segment = static_cast<int>(frame_bytes_max - kHeaders + kTimeStamps);
      setsockopt(socket.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
    }
    error = socket.valid() ? connect_error(socket, *at, deadline) : errno;
    if (error == 0) return socket;
  }
  return fail(Errc::unreachable, to_string(to) + ": " + std::strerror(error));
}

PathFacts path_facts(const Socket& socket) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return {};
  return {.mtu_here = info.tcpi_pmtu,
          .mtu_there = info.tcpi_snd_mss + kHeaders,
          .segments_out = info.tcpi_data_segs_out,
          .segments_again = info.tcpi_total_retrans - std::min(info.tcpi_total_retrans, info.tcpi_dsack_dups),
          .segments_in = info.tcpi_data_segs_in,
          .segments_in_late = info.tcpi_rcv_ooopack,
          .round_trip_seconds = std::min(info.tcpi_min_rtt, info.tcpi_rtt) * 1e-6};
}

std::string interface_of(const Socket& socket) {
  sockaddr_storage own{};
  socklen_t bytes = sizeof own;
  ifaddrs* raw = nullptr;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0 || getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(raw, &freeifaddrs);
  for (const ifaddrs* at = raw; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr != nullptr && is_same_address(*at->ifa_addr, own)) return at->ifa_name;
  }
  return {};
}

}  // namespace tributary::cli::meter
