#pragma once
// One Ethernet device that DPDK drives: configured at the start, and shared by the ports of its queues. It holds what
// they have in common: the host that it is in its network, the pools, and which port serves which UDP port.
//
// A queue belongs to one port, on one thread, without any lock; or, where threads outnumber queues, several ports share
// it: whoever comes first takes what the device has received, for all of them, and hands over what is not its own.
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "transport/dpdk/budget.h"
#include "transport/dpdk/device_statistics.h"
#include "transport/dpdk/eal.h"
#include "transport/dpdk/gpu_memory.h"
#include "transport/dpdk/packet_pool.h"
#include "transport/dpdk/steering.h"
#include "transport/ethernet/host.h"
#include "transport/ethernet/udp_template.h"

struct rte_ring;
struct rte_eth_dev_info;

namespace tributary::transport::dpdk {

struct DeviceSettings {
  std::string device;  // "net_memif0,role=client,socket=/run/a.sock", "0000:3b:00.0", or the name of a port there is
  std::vector<ethernet::Prefix> addresses;
  std::vector<ethernet::IpAddress> gateways;
  std::uint16_t vlan = 0;
  std::uint16_t queues = 1;
  std::uint16_t ports_per_queue = 1;  // each on one thread
  Descriptors descriptors{1024, 1024};
  std::uint32_t mtu = 0;  // 0: as the device has it
  std::string gpu;        // receive into the memory of this GPU, which this processor can read; empty: into its own
};

class Device {
 public:
  /// Opens, configures and starts it. Errors: unreachable (no such device, with what DPDK says), bad_config (addresses,
  /// queues, MTU), exhausted (memory).
  [[nodiscard]] static Result<std::shared_ptr<Device>> open(std::shared_ptr<Eal> eal, const DeviceSettings& settings);
  /// Stops it; its ports must be gone.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Eal& eal() const noexcept { return *eal_; }
  [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const DeviceSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] ethernet::Host& host() noexcept { return *host_; }
  [[nodiscard]] std::uint32_t mtu() const noexcept { return mtu_; }
  /// The same one, unless packets come into a GPU's memory.
  [[nodiscard]] const PacketPool& receive_pool(std::uint16_t queue) const noexcept { return *receive_pools_[queue]; }
  /// Where the processor sees what the device has received at an address: so many bytes further on, for all queues. 0
  /// but for a GPU's memory.
  [[nodiscard]] std::ptrdiff_t seen_at() const noexcept { return gpu_memory_ ? gpu_memory_->seen_at() : 0; }
  [[nodiscard]] const PacketPool& send_pool(std::uint16_t queue) const noexcept {
    return send_pools_.empty() ? *receive_pools_[queue] : *send_pools_[queue];
  }
  /// Where other ports put what is for this one; nullptr for a device of one port.
  [[nodiscard]] rte_ring* handed_over(std::uint16_t place) const noexcept { return rings_[place].get(); }
  /// Ports that share a queue take turns at either end of it.
  struct Turns {
    std::mutex receive;
    alignas(64) std::mutex send;
  };
  /// nullptr: the queue has one port.
  [[nodiscard]] Turns* turns(std::uint16_t queue) const noexcept {
    return turns_.empty() ? nullptr : turns_[queue].get();
  }
  [[nodiscard]] ethernet::ChecksumsByDevice sends_checksums() const noexcept { return sends_; }
  /// It takes packets in several buffers, one of which other packets may refer to, too.
  [[nodiscard]] bool sends_pieces() const noexcept { return sends_pieces_; }

  /// Packets that one call may hand to it, where some of them are of several buffers.
  [[nodiscard]] std::uint16_t pieces_at_once() const noexcept { return pieces_at_once_; }

  /// Where a port is: among all of the device's, its queue's in a row.
  struct Bound {
    std::uint16_t udp_port = 0;
    std::uint8_t place = 0;
  };
  /// A UDP port and a place at a queue, and where the device can, a rule that brings its datagrams there. 0 chooses
  /// one. Errc::io: it is taken, or the queue has all the ports that it may have.
  [[nodiscard]] Result<Bound> bind(std::uint16_t udp_port, std::uint16_t queue);
  void release(const Bound& bound) noexcept;
  /// The place that serves it, or kNobody. Any thread.
  [[nodiscard]] std::uint8_t place_of(std::uint16_t udp_port) const noexcept {
    return place_of_[udp_port].load(std::memory_order_acquire);
  }
  static constexpr std::uint8_t kNobody = 0xFF;
  static constexpr std::uint16_t kPortsMax = 64;

  /// For one caller among all threads, and not too often: true when it is time to look after the neighbours.
  [[nodiscard]] bool claim_turn(ethernet::TimePoint now) noexcept;
  /// The same, while the host has not yet announced itself often enough since the link came up.
  [[nodiscard]] bool claim_announcement(ethernet::TimePoint now) noexcept;

  /// The device's own counters. Any thread, but not on the data path: some drivers ask the hardware.
  [[nodiscard]] DeviceCounters counters() const;
  [[nodiscard]] bool link_up() const;
  /// Rules that bring datagrams to their queue: those that were asked for, and those that the device has taken.
  struct Rules {
    std::size_t wanted = 0;
    std::size_t in_place = 0;
  };
  [[nodiscard]] Rules rules() const;
  /// Sentences for whoever runs this: what works, and not as well as it could. Each is given once.
  [[nodiscard]] std::vector<std::string> take_notes();
  /// Packet buffers that are in use now, of all pools; after the ports are gone none but the device's own.
  [[nodiscard]] std::size_t mbufs_in_use() const;

 private:
  Device(std::shared_ptr<Eal> eal, const DeviceSettings& settings);
  [[nodiscard]] Status attach();
  [[nodiscard]] Status check(const rte_eth_dev_info& info);
  [[nodiscard]] Status choose_mtu(const rte_eth_dev_info& info);
  [[nodiscard]] Status configure(const rte_eth_dev_info& info);
  [[nodiscard]] Status make_queue(std::uint16_t queue);
  [[nodiscard]] std::uint16_t ports() const noexcept {
    return static_cast<std::uint16_t>(settings_.queues * settings_.ports_per_queue);
  }
  [[nodiscard]] Status make_rings(const std::string& name, int node);
  [[nodiscard]] PoolSettings pool_settings(const std::string& name) const;
  [[nodiscard]] Status allocate_on_gpu(const rte_eth_dev_info& info);
  [[nodiscard]] Status make_pools(const std::string& name);
  [[nodiscard]] Status make_host();
  [[nodiscard]] Status start();
  [[nodiscard]] Error error(Errc code, const std::string& what, int result) const;

  const std::shared_ptr<Eal> eal_;
  DeviceSettings settings_;
  std::string name_;
  std::uint16_t id_ = 0;
  bool attached_ = false;  // by us
  bool configured_ = false;
  bool started_ = false;
  std::uint32_t mtu_ = 0;
  ethernet::ChecksumsByDevice sends_;
  bool sends_pieces_ = false;
  std::uint16_t pieces_at_once_ = kTransmitBurst;
  std::shared_ptr<GpuMemory> gpu_memory_;  // of all queues: ports read each other's packets
  std::vector<std::unique_ptr<PacketPool>> receive_pools_;
  std::vector<std::unique_ptr<PacketPool>> send_pools_;  // empty: the same
  struct RingFree {
    void operator()(rte_ring* ring) const noexcept;
  };
  std::vector<std::unique_ptr<rte_ring, RingFree>> rings_;
  std::unique_ptr<ethernet::Host> host_;
  std::vector<std::unique_ptr<Turns>> turns_;  // by queue; empty where each has one port
  std::array<std::atomic<std::uint8_t>, 65536> place_of_;
  mutable std::mutex bind_mutex_;
  std::vector<bool> taken_;                                   // by place
  std::map<std::uint16_t, std::unique_ptr<Steering>> rules_;  // by UDP port
  bool refusal_noted_ = false;                                // under bind_mutex_, as are
  std::vector<std::string> notes_;                            //
  std::atomic<ethernet::Clock::duration> next_turn_{};
  std::atomic<ethernet::Clock::duration> next_announcement_{};
  std::atomic<int> announcements_left_;
};

}  // namespace tributary::transport::dpdk
