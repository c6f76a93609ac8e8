#pragma once
// Routers' words about the longest packet on the path to a host (RFC 1191, RFC 8201); the caller has seen that a word
// is about a packet that was sent. The table is bounded: when it is full, the oldest word goes. Any thread may call it;
// it takes no lock before the first word comes, so it usually takes none.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "transport/ethernet/neighbour_table.h"

namespace tributary::transport::ethernet {

class PathMtu {
 public:
  /// A smaller MTU is not believed (RFC 8899, 4.6.2): every datagram that is sent here may be as long as IPv6's 1280
  /// bytes leave room for, over IPv4 too, and is never cut. A path that carries less cannot be used anyway; and if it
  /// believed such a word, a forger could stop traffic that he can otherwise only cut into smaller packets.
  static constexpr std::uint32_t kIpv4Least = 1260;
  static constexpr std::uint32_t kIpv6Least = 1280;

  /// Takes a router's word that packets to `ip` may have `bytes`, IP header included. Returns false if it does not
  /// believe it.
  bool told(const IpAddress& ip, std::uint32_t bytes, TimePoint now);
  /// The longest packet to `ip`; at most `link`, the MTU of the link.
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
