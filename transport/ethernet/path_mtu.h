#pragma once
// Routers' messages about the longest packet on the path to a host (RFC 1191, RFC 8201). The caller has checked that a
// message is about a packet that was sent. The table is bounded: when it is full, it forgets the oldest message. Any
// thread may call it; it takes no lock before the first message comes, so it usually takes none.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "transport/ethernet/neighbour_table.h"

namespace tributary::transport::ethernet {

class PathMtu {
 public:
  /// A smaller MTU is not believed (RFC 8899, 4.6.2): the packet protocol may send every datagram that fits into IPv6's
  /// 1280 bytes, over IPv4, too, and no router cuts it. So a path that carries less is of no use. If this table
  /// believed a smaller MTU, a forger could stop traffic; now a forger can only make packets smaller.
  static constexpr std::uint32_t kIpv4Least = 1260;
  static constexpr std::uint32_t kIpv6Least = 1280;

  /// Takes a router's message that packets to `ip` may have at most `bytes`, IP header included. Returns false if the
  /// table does not believe it.
  bool told(const IpAddress& ip, std::uint32_t bytes, TimePoint now);
  /// Bytes of the longest packet to `ip`; at most `link`, the MTU of the link.
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
