#pragma once
// The choice of a queue for each frame, where a device can choose: rules send a UDP port's datagrams to the queue of
// the thread that serves it; without rules the device spreads frames over all queues. A datagram that comes to the
// wrong queue is handed over in software (port_receive.cc).
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

struct rte_eth_dev_info;
struct rte_eth_conf;
struct rte_flow;

namespace tributary::transport::dpdk {

/// Asks for receive-side scaling by the headers of UDP and IP, as far as the device can do it.
void spread_over_queues(const rte_eth_dev_info& info, rte_eth_conf& conf) noexcept;

/// The device's rules for one UDP port over IPv4 and IPv6. The device may take only some of them, or none.
class Steering {
 public:
  Steering(std::uint16_t device, std::uint16_t udp_port, std::uint16_t queue);
  ~Steering();
  Steering(const Steering&) = delete;
  Steering& operator=(const Steering&) = delete;

  [[nodiscard]] std::size_t in_place() const noexcept;
  static constexpr std::size_t kRules = 2;
  /// The reason why the device did not take a rule; empty: it has taken all.
  [[nodiscard]] const std::string& refusal() const noexcept { return refusal_; }

 private:
  const std::uint16_t device_;
  std::string refusal_;
  std::array<rte_flow*, kRules> rules_;
};

}  // namespace tributary::transport::dpdk
