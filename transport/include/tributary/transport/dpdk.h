#pragma once
// Frames over UDP by a network device that DPDK drives, without the kernel: the packet protocol (docs/protocol.md), run
// to completion on the threads that poll. This code has the kernel's duties for the device: it answers ARP, neighbour
// discovery and pings, finds neighbours, and makes and verifies checksums.
//
// A device is opened once and has a queue for each transport, or for several. A process starts DPDK once: the first
// device that is opened decides about huge pages, and after the last device was destroyed DPDK cannot start again.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"
#include "tributary/transport/packet_figures.h"

namespace tributary::transport {

namespace dpdk {
class Device;
class DpdkPort;
}  // namespace dpdk
namespace packet {
class PacketTransport;
}

enum class DpdkHugePages : std::uint8_t {
  prefer,   // takes ordinary memory where there are not enough huge pages
  require,  // an error says how many are missing, and how to make them
  never,
};

struct DpdkDeviceSettings {
  std::string device;  // "net_af_packet0,iface=eth1", "net_memif0,role=server,socket=/run/x.sock", "0000:3b:00.0"
  std::vector<std::string> addresses;      // "10.0.0.1/24", at most one of IPv4 and one of IPv6
  std::vector<std::string> gateways;       // routers for destinations that are not on the link
  std::uint16_t vlan = 0;                  // 0: untagged
  std::uint16_t queues = 1;                // number of queues
  std::uint16_t transports_per_queue = 1;  // transports that take turns at one queue; 1: each transport has its own
  std::uint16_t descriptors = 1024;        // descriptors of each queue in each direction
  std::uint32_t mtu = 0;                   // in bytes; 0: the device's own MTU
  DpdkHugePages huge_pages = DpdkHugePages::prefer;
  std::string file_prefix;             // prefix of the files that DPDK makes for its tools; empty: it makes none
  std::vector<std::string> arguments;  // arguments for DPDK, passed on unchanged
  // The PCI address of a GPU that DPDK drives: packets are received into its memory, which the processor reads (builds
  // with TRIBUTARY_DPDK_GPU). Empty: packets are received into the host's memory.
  std::string gpu;
};

/// Counts since the start.
struct DpdkDeviceStatistics {
  // Counts of the driver
  std::uint64_t received_packets = 0, received_bytes = 0, sent_packets = 0, sent_bytes = 0;
  std::uint64_t receive_missed = 0;     // packets lost because the queue was full
  std::uint64_t receive_errors = 0;     // packets damaged on the wire
  std::uint64_t receive_no_buffer = 0;  // packets lost because the pool was empty
  std::uint64_t send_errors = 0;
  std::vector<std::pair<std::string, std::uint64_t>> others;  // the driver's own counts of loss that are not 0
  // Counts of control frames and neighbours
  std::uint64_t arp_answered = 0, ndp_answered = 0, echoes_answered = 0, refusals_sent = 0;
  std::uint64_t answers_limited = 0;    // answers not given, because their limit was reached
  std::uint64_t control_ignored = 0;    // ARP, ICMP, neighbour discovery: malformed or not for this host
  std::uint64_t address_conflicts = 0;  // times that another station said that it has our address
  std::uint64_t path_mtu_told = 0;      // times that a router said that packets are too long for a path
  std::uint64_t neighbours = 0;         // neighbours that are known now
  std::uint64_t neighbours_failed = 0;  // neighbours that did not answer
  std::uint64_t neighbours_moved = 0;   // neighbours whose address has moved to another station
  std::uint64_t neighbours_full = 0;    // neighbours for which no place was left
  // State at this time
  std::size_t buffers_in_use = 0;
  std::size_t rules_wanted = 0;    // rules that should bring datagrams to their queue; 0 with one queue
  std::size_t rules_in_place = 0;  // rules that the device has taken
  bool link_up = false;
  bool huge_pages = false;
};

class DpdkDevice {
 public:
  /// Opens a device. Errors: bad_config, exhausted, denied, unreachable, with a sentence that says what to
  /// do.
  [[nodiscard]] static Result<std::shared_ptr<DpdkDevice>> open(const DpdkDeviceSettings& settings);
  /// All its transports must have been destroyed before.
  ~DpdkDevice();
  DpdkDevice(const DpdkDevice&) = delete;
  DpdkDevice& operator=(const DpdkDevice&) = delete;
  /// Any thread may call it, a few times a second.
  [[nodiscard]] DpdkDeviceStatistics statistics() const;
  [[nodiscard]] std::string address() const;  // the first of the settings' addresses, without the prefix length
  /// Sentences for a log about parts that work less well than they could. Each sentence is given once; the list is
  /// complete when all transports listen.
  [[nodiscard]] std::vector<std::string> take_notes() const;

 private:
  friend class DpdkTransport;
  explicit DpdkDevice(std::shared_ptr<dpdk::Device> device);
  const std::shared_ptr<dpdk::Device> device_;
};

struct DpdkSettings {
  std::uint16_t queue = 0;                          // number of the device's queue
  int core = -1;                                    // core of the polling thread; -1: any core
  std::uint32_t frames_queued_max = 1024;           // most frames in a channel's queue; send() refuses more
  std::uint32_t connections_max = 16384;            // open connections; a further peer is refused, and falls back
  std::uint32_t half_open_max = 1024;               // open connections whose first packet is still awaited
  std::size_t window_bytes = 1U << 20;              // bytes that a peer may send before this side reads them
  Duration keepalive = std::chrono::seconds(1);     // silence after which the peer is asked for an answer
  Duration peer_timeout = std::chrono::seconds(5);  // silence after which a peer that was asked counts as gone
  Duration delay_target = std::chrono::microseconds(500);  // time of a round trip above which less is sent
  std::uint32_t window_initial = 10;                       // packets that a new connection may have under way
  std::uint32_t window_max = 4096;                         // packets that a connection may ever have under way
  bool ecn = true;                                         // packets say that routers may mark them: ECT(0)
  std::uint8_t dscp = 0;                                   // DSCP of packets that are sent
  // A device cannot wake a thread, so poll() spins while it waits. If this is not 0, poll() sleeps for at most this
  // long at a time after `spin` without a packet.
  Duration sleep_max{};
  Duration spin = std::chrono::microseconds(200);
  std::shared_ptr<LinkKeys> keys;  // secrets that seal the connections; nullptr: no connection is sealed
};

/// Counts since the start. Read on the transport's thread.
struct DpdkStatistics : PacketFigures {
  // Counts of this transport's queue
  std::vector<std::pair<std::string_view, std::uint64_t>> frames_dropped;  // counts by reason; a count of 0 is left out
  std::uint64_t frames_malformed = 0;    // frames dropped for wrong lengths, checksums or protocols
  std::uint64_t frames_foreign = 0;      // frames dropped because they are for another station, address, VLAN or port
  std::uint64_t frames_control = 0;      // frames of ARP, ICMP and neighbour discovery
  std::uint64_t frames_handed_over = 0;  // packets that came here for another queue
  std::uint64_t sent_shared = 0;         // packets whose payload lies in a buffer that several packets share
  std::uint64_t unsent = 0;              // packets without route or neighbour, or not taken by the device
  std::uint64_t unsent_no_buffer = 0;    // packets that wait because the pool was empty; they are sent later
};

/// The place that a connection claims before it is accepted. The claim comes from the first frame that was queued on
/// it.
struct DpdkClaim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

class DpdkTransport final : public Transport {
 public:
  DpdkTransport(std::shared_ptr<DpdkDevice> device, const DpdkSettings& settings = {});
  /// Must not run inside a callback of this transport. Closes its channels without a callback; the user destroys them.
  ~DpdkTransport() override;
  DpdkTransport(const DpdkTransport&) = delete;
  DpdkTransport& operator=(const DpdkTransport&) = delete;

  /// May be called for several ports. Each listens at all of the device's addresses; `at` names one of these addresses
  /// or none.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  /// Listens for several transports of this device. `route` returns the port of the transport that serves a connection,
  /// and the other side is told to connect to that port. 0 refuses the connection.
  using Route = std::function<std::uint16_t(const DpdkClaim& claim)>;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen_for(const Endpoint& at, Route route);
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;

  [[nodiscard]] DpdkStatistics statistics() const;

 private:
  [[nodiscard]] Status check(const Endpoint& at) const;
  [[nodiscard]] std::string named_host(const Endpoint& at) const;
  const std::shared_ptr<DpdkDevice> device_;
  dpdk::DpdkPort* port_ = nullptr;  // nullptr until it is open; packets_ owns it
  std::unique_ptr<packet::PacketTransport> packets_;
};

}  // namespace tributary::transport
