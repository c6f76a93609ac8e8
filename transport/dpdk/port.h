#pragma once
// One queue of a device as a port for the packet protocol, run to completion on its thread. receive() takes a burst
// from the device, answers control frames as a host must, and shows the datagrams. send() writes into packet buffers;
// flush() hands them to the device. In steady state the port allocates only packet buffers, and takes a lock only
// where ports share the queue.
//
// send() copies a payload into a packet buffer, and computes the checksum in the same pass if the device does not; it
// copies a payload that goes to several destinations only once (shared_payloads.h). A second buffer that borrows the
// payload from the user's memory would save the copy. But packet/port.h lends the payload only until flush() returns,
// so flush() would have to wait until the device has sent the payload.
#include <array>
#include <functional>
#include <memory>

#include "transport/dpdk/device.h"
#include "transport/dpdk/port_statistics.h"
#include "transport/dpdk/shared_payloads.h"
#include "transport/dpdk/wake_bell.h"
#include "transport/ethernet/plain_udp.h"
#include "transport/ethernet/udp_template.h"
#include "transport/packet/port.h"

struct rte_mbuf;

namespace tributary::transport::dpdk {

struct PortSettings {
  std::uint16_t udp_port = 0;  // 0: the device chooses a port
  std::uint16_t queue = 0;
  int core = -1;  // the receiving thread binds itself to this core; -1: it may run on any core
  std::uint8_t dscp = 0;
  bool ecn = true;  // marks datagrams ECT(0)
  // For `spin` after the last packet, wait() returns at once; later it sleeps for at most `sleep_max` at a time. A
  // device cannot wake a thread, so packets that come during the sleep wait. With `sleep_max` 0, wait() never sleeps,
  // which is usual for a thread with a core of its own.
  Duration spin = std::chrono::microseconds(200);
  Duration sleep_max{};
};

class DpdkPort final : public packet::PacketPort {
 public:
  [[nodiscard]] static Result<std::unique_ptr<DpdkPort>> open(std::shared_ptr<Device> device,
                                                              const PortSettings& settings);
  ~DpdkPort() override;
  DpdkPort(const DpdkPort&) = delete;
  DpdkPort& operator=(const DpdkPort&) = delete;

  [[nodiscard]] std::size_t receive(std::span<packet::ReceivedPacket> into) override;
  void leave_checksums() noexcept override { leaves_checksums_ = true; }
  [[nodiscard]] bool keep(void* buffer) noexcept override;
  void give_back(void* buffer) noexcept override;
  [[nodiscard]] bool send(const packet::PacketAddress& to, std::span<const std::byte> header,
                          std::span<const std::byte> payload) override;
  [[nodiscard]] bool send_frame(const packet::PacketAddress& to, const packet::FrameDatagram& frame) override;
  void flush() override;
  void wait(Duration limit) override;
  void wake() noexcept override;
  [[nodiscard]] std::size_t datagram_bytes_max(const packet::PacketAddress& to) override;
  void believe_path(const packet::PacketAddress& to, std::uint32_t path_bytes) override;
  [[nodiscard]] packet::PacketAddress local() const override;

  [[nodiscard]] PortStatistics statistics() const { return statistics_; }
  [[nodiscard]] Device& device() noexcept { return *device_; }

 private:
  DpdkPort(std::shared_ptr<Device> device, const PortSettings& settings, const Device::Bound& bound,
           std::unique_ptr<WakeBell> bell);

  /// The headers of all datagrams to one address. A hash of the address finds them; addresses with the same hash
  /// displace each other.
  struct Route {
    packet::PacketAddress to;
    bool valid = false;
    bool resolved = false;         // the neighbour's MAC address is in `headers`
    std::uint32_t generation = 0;  // the neighbour table's generation when the route was made
    std::uint32_t second = 0;      // second in which the route was made; a new one marks the neighbour as used
    std::size_t bytes_max = 0;     // bytes of the longest payload of a datagram
    ethernet::IpAddress next_hop{};
    ethernet::UdpTemplate headers;
  };
  /// A datagram whose neighbour has not answered yet.
  struct Waiting {
    rte_mbuf* mbuf = nullptr;
    ethernet::IpAddress next_hop{};
    TimePoint since;
  };
  static constexpr std::size_t kRoutes = 256;

  // ---- Functions in port_receive.cc
  void adopt_thread();
  void give_back_shown() noexcept;
  void free_returned() noexcept;
  [[nodiscard]] std::size_t take_burst(std::span<rte_mbuf*> burst) noexcept;
  void note_shown(rte_mbuf* mbuf) noexcept;
  [[nodiscard]] bool show(rte_mbuf* mbuf, packet::ReceivedPacket& as) noexcept;
  [[nodiscard]] bool show_plain(rte_mbuf* mbuf, std::span<std::byte> bytes, packet::ReceivedPacket& as) noexcept;
  [[nodiscard]] bool is_for_us(const ethernet::Frame& frame) const noexcept;
  [[nodiscard]] bool take_datagram(rte_mbuf* mbuf, const ethernet::Frame& frame, std::span<std::byte> bytes,
                                   packet::ReceivedPacket& as) noexcept;
  enum class Refusal : std::uint8_t { none, shown, handed_over };
  [[nodiscard]] Refusal take_refusal(rte_mbuf* mbuf, const ethernet::Frame& frame, std::span<std::byte> bytes,
                                     packet::ReceivedPacket& as) noexcept;
  void hand_over(rte_mbuf* mbuf, std::uint8_t place) noexcept;
  void take_control(const ethernet::Frame& frame, std::span<const std::byte> bytes);
  void drop(rte_mbuf* mbuf, std::uint64_t& counter) noexcept;

  // ---- Functions in port_send.cc
  [[nodiscard]] Route* route_to(const packet::PacketAddress& to);
  [[nodiscard]] bool make_route(Route& route, const packet::PacketAddress& to, std::uint32_t generation);
  /// Returns a buffer for a packet, or nullptr if the pool is empty.
  [[nodiscard]] rte_mbuf* blank() noexcept;
  /// Sends a datagram in two parts. `write(to, sums)` writes the first part, and returns its checksum if `sums` is
  /// true.
  template <class Write>
  [[nodiscard]] bool send_parts(const packet::PacketAddress& to, std::size_t head_bytes, const Write& write,
                                std::span<const std::byte> payload, std::size_t payload_place);
  template <class Write>
  void fill(rte_mbuf* mbuf, const Route& route, std::size_t head_bytes, const Write& write,
            std::span<const std::byte> payload, std::size_t payload_place) noexcept;
  /// Returns false if the device takes no more packets now.
  [[nodiscard]] bool has_room() noexcept;
  void stage(rte_mbuf* mbuf) noexcept;
  [[nodiscard]] std::size_t hand_to_device(std::size_t count) noexcept;
  void transmit() noexcept;
  void drop_if_stuck();
  void keep_waiting(rte_mbuf* mbuf, const ethernet::IpAddress& next_hop);
  void retry_waiting(TimePoint now);

  // ---- Functions in port.cc
  void look_after(TimePoint now);
  void send_control(const std::function<std::size_t(std::span<std::byte> out)>& write);

  const std::shared_ptr<Device> device_;
  const PortSettings settings_;
  const std::uint16_t id_;
  const std::uint16_t udp_port_;
  const std::uint8_t place_;
  Device::Turns* const turns_;  // locks of the queue if other ports share it; else nullptr
  const std::unique_ptr<WakeBell> bell_;
  const std::ptrdiff_t seen_at_;  // Device::seen_at() for received packets
  ethernet::PlainUdp plain_;
  const std::uint64_t turn_cycles_;  // cycles in a millisecond, after which the port reads the clock again
  std::uint64_t next_turn_ = 0;
  TimePoint now_;  // time of the last reading of the clock, at most a millisecond old
  std::uint32_t second_ = 0;

  std::array<rte_mbuf*, kReceiveBurst> shown_{};
  std::size_t shown_count_ = 0;
  std::uint32_t kept_count_ = 0;
  std::array<rte_mbuf*, kKept + kReceiveBurst> returned_{};  // buffers given back since the last receive()
  std::size_t returned_count_ = 0;
  std::array<rte_mbuf*, kTransmitBurst> staged_{};
  std::size_t staged_count_ = 0;
  std::array<rte_mbuf*, kBlank> blank_{};
  std::size_t blank_count_ = 0;
  SharedPayloads shared_;
  TimePoint stuck_since_;  // time since which the device has taken no packet
  std::array<Waiting, kWaiting> waiting_{};
  std::size_t waiting_count_ = 0;
  std::unique_ptr<std::array<Route, kRoutes>> routes_;
  std::uint64_t last_arrival_ = 0;  // time of the last packet's arrival, in the processor's cycles
  bool answers_staged_ = false;
  bool thread_adopted_ = false;
  bool leaves_checksums_ = false;
  PortStatistics statistics_;
};

}  // namespace tributary::transport::dpdk
