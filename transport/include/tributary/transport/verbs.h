#pragma once
// Frames over RDMA verbs: InfiniBand, RoCE and iWARP, by reliable connected queue pairs that the RDMA connection
// manager sets up. Small payloads travel in the send itself. The sender writes a larger payload directly to the place
// that the receiver has announced (Channel::expect), or else into the room that the receiver has made (make_room). If
// there is neither, the receiver's device fetches the payload, directly from the sender's memory to the place that the
// receiver's handler wants. The processors copy no payload, unless the handler wants it outside of the room; and the
// data path makes no system call.
//
// Authority. A peer gets only keys of memory windows, each bound to this connection's queue pair. The window of a
// payload to fetch lets the peer read the payload's own bytes, until the peer says that it has them. The window of an
// expected frame's place lets the peer write there, until the peer says that it has written. This side revokes the
// window of a frame before it serves the frame. The window of the room lets the peer write there as long as the
// connection lives. Registrations have no key that a peer could use. On devices without memory windows every connection
// has its own protection domain, and for the same time the peer gets a registration in this domain in place of each
// window.
//
// A connection claims a place (group, epoch, lane and child) before its first frame comes, and proves the claim in the
// connection manager's private data. A side without the place's secret is refused before a queue pair is made. The
// first frame must name the same group. Connections of the same group share a protection domain, because they work on
// the same memory, the group's memory. A connection that claims no place (between ranks) has a domain of its own.
//
// Seals. If the keys say that a connection is sealed, both sides agree on keys of this connection alone, and then seal
// every message. Payloads travel in messages, longer ones in parts, and the processors seal and open them in the rings.
// So no peer gets a key of memory, and this side uses no bytes before it has checked them: a message that is not
// authentic ends the connection. A sealed connection has one queue pair. It asks for no places and room, and does not
// reach memory of devices.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tributary/transport/channel.h"
#include "tributary/transport/device_memory.h"
#include "tributary/transport/rails.h"
#include "tributary/transport/rdma_path.h"

namespace tributary::transport {

class SocketCore;
class VerbsCore;

struct VerbsSettings {
  // Secrets that seal or prove connections: a connection without the secret of the place that it claims gets no queue
  // pair. nullptr: any process may connect, and the user of the transport decides about the connection's rights.
  std::shared_ptr<LinkKeys> keys{};
  std::uint32_t frames_queued_max = 1024;  // most frames in a channel's queue; when it is full, send() returns false
  std::uint32_t connections_max = 16384;   // most open connections; a further peer is refused, and falls back
  std::uint32_t receive_depth = 32;        // messages that a peer may send before this side reads; 4 to 64
  // Queue pairs of one channel, over which messages and written payloads are spread: a device or a route that serves
  // each queue pair by one engine reaches its full rate only with several pairs. 1 to 8; the smaller of both sides'
  // numbers counts. Each queue pair needs memory for its receives.
  std::uint32_t queue_pairs = 1;
  bool extended_posting = true;             // posts work by ibv_wr_*, where the device's library has it
  std::uint32_t eager_bytes = 4096;         // longest payload that travels in the send itself; at most 64 KiB
  std::uint32_t sealed_bytes = 16384;       // the same on a sealed connection; longer payloads travel in parts
  std::uint32_t inline_bytes = 220;         // longest message in the work request itself, if the device allows it
  std::uint32_t read_bytes_max = 1U << 20;  // most bytes of one RDMA READ; several READs fetch a larger payload
  std::uint32_t reads_in_flight = 8;        // READs of one channel; 1 to 16, and at most what the device allows
  // Memory windows of one channel: the most payloads that the peer may fetch at the same time. The number is rounded
  // down to a power of two. 0: no memory windows, as on devices that have none.
  std::uint32_t windows_max = 64;
  // Expected frames (Channel::expect) of one channel whose places the peer knows at the same time; at most 128. 0:
  // none.
  std::uint32_t places_max = 64;
  // Bytes of one channel's memory for payloads that the peer writes unasked (Channel::make_room). 0: none.
  std::size_t room_bytes_max = std::size_t{256} << 20;
  // Bytes of registrations that are kept after use, for memory that is used again. 0 by default: memory that the
  // program unmaps would stay registered, and the transport would use its registration for a new mapping at the same
  // address. For memory that stays, keep_registered() is the better way.
  std::size_t registrations_idle_bytes = 0;
  // Registers host memory on demand (ODP) if the device supports it, except memory of keep_registered(): no memory is
  // pinned, and a registration can be used again. The first access to a page costs a fault in the device.
  bool on_demand = false;
  Duration busy_poll{};                               // poll(wait) spins for this time before it sleeps
  Duration spin_max = std::chrono::microseconds(50);  // without busy_poll: poll(wait) spins for this time and yields
                                                      // to other threads, if most waits end within it; 0: never
  // Silence after which the transport asks whether the peer's device lives. 0: it never asks, and only a send shows
  // that a host has vanished.
  Duration keepalive = std::chrono::seconds(10);
  RdmaPath path;
  std::string bind_address;  // numeric address: source of connect(), and place of listen() for an empty host
  // Numeric addresses of this host's RDMA ports, instead of bind_address as the source of connect(): a connection whose
  // first frame joins lane n uses the nth address, modulo their number; every other connection uses the first. If an
  // address has no device, or has lost it, the next address is used. Addresses in the destination's own network come
  // before other addresses.
  std::vector<std::string> rails;
};

/// Counts since the start. Read on the transport's thread.
struct VerbsStatistics {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_fetched = 0;    // bytes fetched by RDMA READ, directly to their place
  std::uint64_t bytes_written = 0;    // bytes written by RDMA WRITE, to a place of the peer or into its room
  std::uint64_t frames_in_place = 0;  // frames whose payloads the handler took where the peer had written them
  std::uint64_t bytes_copied = 0;     // bytes of payloads copied out of and into this side's rings
  std::uint64_t posts = 0;            // lists of work requests handed to the device
  std::uint64_t sleeps = 0;           // times that poll() asked the system to wait
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;             // connections refused because of connections_max
  std::uint64_t refused_unproved = 0;         // connections refused because they did not prove their claim
  std::uint64_t seals_refused = 0;            // connections refused because their security did not suffice
  std::uint64_t messages_forged = 0;          // sealed channels closed for a message that is not authentic
  std::array<std::uint64_t, 9> rejects{};     // channels closed for a bad header, by FrameReject
  std::uint64_t queue_pairs_extended = 0;     // queue pairs to which work is posted by ibv_wr_*
  std::uint64_t registrations = 0;            // registrations made
  std::uint64_t registrations_on_demand = 0;  // registrations made on demand
  std::uint64_t registration_hits = 0;        // times that an earlier registration served again
  // State at this time
  std::size_t connections = 0;
  std::size_t queue_pairs = 0;
  std::size_t completion_queues = 0;
  std::size_t memory_regions = 0;
  std::size_t memory_windows = 0;
  std::size_t bytes_registered = 0;
};

/// The place that a connection claims before it is accepted. The claim comes from the first frame that was queued on
/// it.
struct VerbsClaim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

/// Checks whether RDMA verbs can be used: this build has them, and this host has a device. The error says why not.
[[nodiscard]] Status verbs_available();
/// This host's active RDMA ports, one entry for each IP address of a port, in the order of the devices. The list
/// has RoCE version 2 ports only: ports of InfiniBand and iWARP have the addresses of their network interfaces
/// instead.
[[nodiscard]] std::vector<Rail> verbs_rails();

/// Checks whether connections can come to this numeric address: it belongs to an RDMA device, whose port is active. The
/// check passes for names, and for addresses that mean every address. Errc::unreachable has the reason why not.
[[nodiscard]] Status verbs_address_lives(const std::string& host);

class VerbsTransport final : public Transport, public TakesDeviceMemory {
 public:
  /// Makes a transport. Errc::unsupported, with the reason: there is no RDMA device; Errc::io: the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<VerbsTransport>> create(const VerbsSettings& settings = {});
  /// Must not run inside a callback of this transport. Closes its channels without a callback; the user destroys them.
  ~VerbsTransport() override;
  VerbsTransport(const VerbsTransport&) = delete;
  VerbsTransport& operator=(const VerbsTransport&) = delete;

  /// The port is in RDMA's own port space. An empty host, and "::", mean all addresses of both families.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;

  /// Listens for several transports of this process. On this transport's thread, `route` returns the transport that
  /// serves a connection; that transport's acceptor, set by accept_routed(), gets the connection on its own thread.
  /// nullptr refuses the connection. All these transports must outlive the listener.
  using Route = std::function<VerbsTransport*(const VerbsClaim& claim)>;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen_for(const Endpoint& at, Route route);
  /// Must run on this transport's thread, or before its thread starts. nullptr: the transport takes no more connections.
  void accept_routed(Acceptor* acceptor);

  /// The memory is registered once in each protection domain that uses it. The registrations end when the promise has
  /// ended and no frame uses them.
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> memory) override;

  /// Must run on this transport's thread; the promise may end on any thread. The owner's copy() copies small payloads.
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                               std::shared_ptr<DeviceMemory> owner) override;

  [[nodiscard]] std::uint64_t room_bytes(std::uint32_t payloads, std::uint32_t payload_bytes) const override;

  [[nodiscard]] VerbsStatistics statistics() const;

  /// From now on this transport's poll() also polls `beside`, a transport on sockets, on the same thread, and does not
  /// wait while `beside` has work. While `beside` is quiet, it costs no system call. Call it once, before the first
  /// poll().
  void drive(std::shared_ptr<SocketCore> beside);
  /// Checks whether this address still belongs to a device. If the address is empty, it checks the addresses that
  /// connections use as their source. The error has the reason why not. Asks the system.
  [[nodiscard]] Status device_at(const std::string& own_address) const;

  /// For a listener of another transport: runs `take` on this transport's thread.
  void take_routed(std::function<void(const std::shared_ptr<VerbsCore>&)> take);

 private:
  explicit VerbsTransport(std::shared_ptr<VerbsCore> core);
  std::shared_ptr<VerbsCore> core_;
};

}  // namespace tributary::transport
