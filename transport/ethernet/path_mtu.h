#pragma once
// The words of routers about how long a packet may be on the way to a host (RFC 1191, RFC 8201), as far as whoever
// asks has found the word about a packet that was sent. Bounded: when it is full the oldest word goes. Any thread;
// without a lock as long as no router has said anything, which is the usual case.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "transport/ethernet/neighbour_table.h"

namespace tributary::transport::ethernet {

class PathMtu {
 public:
  /// Less is not believed (RFC 8899, 4.6.2): every datagram that is sent here may be as long as IPv6's 1280 bytes
  /// leave room for, over IPv4 too, and is never cut. A way that carries less cannot be used, and a word that says so
  /// changes nothing: believed, it would stop what a forger could only make smaller.
  static constexpr std::uint32_t kIpv4Least = 1260;
  static constexpr std::uint32_t kIpv6Least = 1280;

  /// A router says that packets to `ip` may have `bytes`, IP header included. False: not believed.
  bool told(const IpAddress& ip, std::uint32_t bytes, TimePoint now);
  /// At most `link`, which is what the link carries.
  [[nodiscard]] std::uint32_t get(const IpAddress& ip, std::uint32_t link, TimePoint now) const;

 private:
  static constexpr std::size_t kPathsMax = 64;
  static constexpr auto kBelieved = std::chrono::minutes(10);  // RFC 8201, 4
  struct Path {
    IpAddress ip{};
    std::uint32_t bytes = 0;
    TimePoint told_at;
  };
  mutable std::mutex mutex_;
  std::atomic<bool> any_{false};
  std::array<Path, kPathsMax> paths_{};
};

}  // namespace tributary::transport::ethernet
