#pragma once
// What routers have said about how long a packet may be on the way to a host (RFC 1191, RFC 8201). Bounded: when it is
// full the oldest word goes. Any thread; without a lock as long as no router has said anything, which is the usual
// case.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "ethernet/neighbour_table.h"

namespace tributary::transport::ethernet {

class PathMtu {
 public:
  /// Less is not believed: IPv4's links carry 576 since RFC 1122, IPv6's 1280. Forged words do no more harm than that.
  static constexpr std::uint32_t kIpv4Least = 576;
  static constexpr std::uint32_t kIpv6Least = 1280;

  /// A router says that packets to `ip` may have `bytes`, IP header included.
  void told(const IpAddress& ip, std::uint32_t bytes, TimePoint now);
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
