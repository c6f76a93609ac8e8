#pragma once
// One Ethernet device that DPDK drives: configured at the start, and shared by the ports of its queues. It holds the
// parts that all its ports use: its host in the network, the pools, and the table of UDP ports.
//
// A queue belongs to one port, on one thread, without any lock. Where threads outnumber queues, several ports share a
// queue: the first port that polls takes the received packets for all ports, and hands over the packets of other ports.
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
  std::string device;  // "net_memif0,role=client,socket=/run/a.sock", "0000:3b:00.0", or the name of an existing port
  std::vector<ethernet::Prefix> addresses;
  std::vector<ethernet::IpAddress> gateways;
  std::uint16_t vlan = 0;
  std::uint16_t queues = 1;
  std::uint16_t ports_per_queue = 1;  // one thread serves each port
  Descriptors descriptors{1024, 1024};
  std::uint32_t mtu = 0;  // in bytes; 0: the device's own MTU
  std::string gpu;        // GPU whose memory takes received packets, for the processor to read; empty: host memory
};

class Device {
 public:
  /// Opens, configures and starts a device. Errors: unreachable (no such device, with DPDK's reason), bad_config
  /// (addresses, queues, MTU), exhausted (memory).
  [[nodiscard]] static Result<std::shared_ptr<Device>> open(std::shared_ptr<Eal> eal, const DeviceSettings& settings);
  /// Stops the device; its ports must have been destroyed before.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Eal& eal() const noexcept { return *eal_; }
  [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const DeviceSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] ethernet::Host& host() noexcept { return *host_; }
  [[nodiscard]] std::uint32_t mtu() const noexcept { return mtu_; }
  /// The pool of received packets. It serves for sending, too, unless packets are received into a GPU's memory.
  [[nodiscard]] const PacketPool& receive_pool(std::uint16_t queue) const noexcept { return *receive_pools_[queue]; }
  /// The processor sees a received packet this many bytes behind the address that the device uses for it, on every
  /// queue. It is 0 except for a GPU's memory.
  [[nodiscard]] std::ptrdiff_t seen_at() const noexcept { return gpu_memory_ ? gpu_memory_->seen_at() : 0; }
  [[nodiscard]] const PacketPool& send_pool(std::uint16_t queue) const noexcept {
    return send_pools_.empty() ? *receive_pools_[queue] : *send_pools_[queue];
  }
  /// The ring in which other ports put this port's packets; nullptr for a device with one port.
  [[nodiscard]] rte_ring* handed_over(std::uint16_t place) const noexcept { return rings_[place].get(); }
  /// Locks of a queue that ports share: one port at a time receives, and one sends.
  struct Turns {
    std::mutex receive;
    alignas(64) std::mutex send;
  };
  /// Returns nullptr if the queue has one port.
  [[nodiscard]] Turns* turns(std::uint16_t queue) const noexcept {
    return turns_.empty() ? nullptr : turns_[queue].get();
  }
  [[nodiscard]] ethernet::ChecksumsByDevice sends_checksums() const noexcept { return sends_; }
  /// True if the device takes packets in several buffers, one of which other packets may share.
  [[nodiscard]] bool sends_pieces() const noexcept { return sends_pieces_; }

  /// The most packets that one call may hand to the device if some of them have several buffers.
  [[nodiscard]] std::uint16_t pieces_at_once() const noexcept { return pieces_at_once_; }

  /// The place of a port among all ports of the device; the ports of one queue follow each other.
  struct Bound {
    std::uint16_t udp_port = 0;
    std::uint8_t place = 0;
  };
  /// Takes a UDP port and a place at a queue, and makes a rule that brings its datagrams there, if the device can. 0
  /// chooses a port. Errc::io: the port is in use, or the queue has all the ports that it may have.
  [[nodiscard]] Result<Bound> bind(std::uint16_t udp_port, std::uint16_t queue);
  void release(const Bound& bound) noexcept;
  /// The place of the port that serves this UDP port, or kNobody. Any thread may call it.
  [[nodiscard]] std::uint8_t place_of(std::uint16_t udp_port) const noexcept {
    return place_of_[udp_port].load(std::memory_order_acquire);
  }
  static constexpr std::uint8_t kNobody = 0xFF;
  static constexpr std::uint16_t kPortsMax = 64;

  /// Returns true to one of the threads that call it when the host must ask or forget neighbours now.
  [[nodiscard]] bool claim_turn(ethernet::TimePoint now) noexcept;
  /// Returns true to one caller when the host must announce itself, because the link came up.
  [[nodiscard]] bool claim_announcement(ethernet::TimePoint now) noexcept;

  /// The device's own counters. Any thread may call it, but not on the data path: some drivers ask the hardware.
  [[nodiscard]] DeviceCounters counters() const;
  [[nodiscard]] bool link_up() const;
  /// Numbers of rules that bring datagrams to their queue: rules that are wanted, and rules that the device has taken.
  struct Rules {
    std::size_t wanted = 0;
    std::size_t in_place = 0;
  };
  [[nodiscard]] Rules rules() const;
  /// Sentences for the administrator about parts that work less well than they could. Each sentence is given once.
  [[nodiscard]] std::vector<std::string> take_notes();
  /// The number of packet buffers in use in all pools; without ports, only the device's own buffers are in use.
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
  bool attached_ = false;  // this object attached the device
  bool configured_ = false;
  bool started_ = false;
  std::uint32_t mtu_ = 0;
  ethernet::ChecksumsByDevice sends_;
  bool sends_pieces_ = false;
  std::uint16_t pieces_at_once_ = kTransmitBurst;
  std::shared_ptr<GpuMemory> gpu_memory_;  // one memory for all queues: ports read each other's packets
  std::vector<std::unique_ptr<PacketPool>> receive_pools_;
  std::vector<std::unique_ptr<PacketPool>> send_pools_;  // empty: receive_pools_ serve for sending
  struct RingFree {
    void operator()(rte_ring* ring) const noexcept;
  };
  std::vector<std::unique_ptr<rte_ring, RingFree>> rings_;
  std::unique_ptr<ethernet::Host> host_;
  std::vector<std::unique_ptr<Turns>> turns_;  // index: queue; empty where each queue has one port
  std::array<std::atomic<std::uint8_t>, 65536> place_of_;
  mutable std::mutex bind_mutex_;
  std::vector<bool> taken_;                                   // index: place
  std::map<std::uint16_t, std::unique_ptr<Steering>> rules_;  // key: UDP port
  bool refusal_noted_ = false;                                // guarded by bind_mutex_
  std::vector<std::string> notes_;                            // guarded by bind_mutex_
  std::atomic<ethernet::Clock::duration> next_turn_{};
  std::atomic<ethernet::Clock::duration> next_announcement_{};
  std::atomic<int> announcements_left_;
};

}  // namespace tributary::transport::dpdk
