#pragma once
// A rank's settings for packets over UDP; over DPDK only ecn, dscp and delay_target have an effect.
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace tributary::client {

/// Settings with the same meaning as in transport::UdpSettings.
struct UdpRank {
  std::chrono::microseconds busy_poll{};
  std::size_t datagram_bytes_max = 16384;
  bool ecn = true;
  std::uint8_t dscp = 0;
  std::chrono::microseconds delay_target{500};
  std::chrono::milliseconds peer_timeout{305'000};  // longer than the communicator's time-out
};

}  // namespace tributary::client
