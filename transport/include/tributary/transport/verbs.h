#pragma once
// Frames over RDMA verbs: InfiniBand, RoCE and iWARP, by reliable connected queue pairs that the RDMA connection
// manager sets up. Small payloads travel in the send itself. The sender writes a larger one straight to the place that
// the receiver has told for it (Channel::expect), or else into the room that the receiver has made (make_room). If
// there is neither, the receiver's device fetches the payload, straight from the sender's memory to the place that the
// receiver's handler wants. No processor copies anything on the way, unless the handler wants a payload elsewhere than
// in the room; and no kernel is asked.
//
// Authority. A peer is told the keys of memory windows only, each bound to this connection's queue pair. The window of
// a payload to fetch allows reading the payload's own bytes, until the peer says that it has them. The window of an
// expected frame's place allows writing those bytes, until the peer says that it has written them. Both are revoked
// before the frame goes any further. The window of the room allows writing there as long as the connection lives.
// Registrations have no key that a peer could use. On devices without such windows every connection has a protection
// domain of its own, and each window is replaced by a registration there, for as long as the window would live.
//
// A connection claims a place (group, epoch, lane and child) before its first frame comes, and proves the claim in the
// connection manager's private data. A side without the place's secret is refused before there is a queue pair. The
// first frame must repeat the group. Connections of the same group share a protection domain, because they work on the
// same memory: the group's. A connection that claims no place (between ranks) has a domain of its own.
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
  // Prove connections: one without the secret of the place that it claims gets no queue pair. nullptr: anybody
  // connects, and the user of the transport decides what the connection may do.
  std::shared_ptr<LinkKeys> keys{};
  std::uint32_t frames_queued_max = 1024;  // frames without on_sent on a channel; above, send() is false
  std::uint32_t connections_max = 16384;   // open at once; more are refused, so that the peer can fall back
  std::uint32_t receive_depth = 32;        // messages that a peer may send ahead of our reading them; 4 to 64
  // Queue pairs of one channel, over which messages and written payloads are spread: devices and routes that serve each
  // queue pair by one engine need several to be filled. 1 to 8; the smaller of both sides' numbers counts. Each needs
  // memory for its receives.
  std::uint32_t queue_pairs = 1;
  bool extended_posting = true;      // work is handed over by ibv_wr_*, where the device's library has it
  std::uint32_t eager_bytes = 4096;  // payloads up to so long travel in the send itself; at most 64 KiB
  std::uint32_t inline_bytes = 220;  // messages up to so long are written into the work request, if the device can
  std::uint32_t read_bytes_max = 1U << 20;  // most bytes of one RDMA READ; several READs fetch a larger payload
  std::uint32_t reads_in_flight = 8;        // READs of one channel; 1 to 16, and at most what the device allows
  // Memory windows of one channel: the payloads that the peer may be fetching at once. The number is rounded down to a
  // power of two. 0: no memory windows, as on devices that have none.
  std::uint32_t windows_max = 64;
  // Expected frames (Channel::expect) of one channel whose places the peer is told at once; at most 128. 0: none.
  std::uint32_t places_max = 64;
  // Memory of one channel for payloads that come before they are asked for (Channel::make_room). 0: none.
  std::size_t room_bytes_max = std::size_t{256} << 20;
  // Registrations that are kept after use, for memory that is sent from again. Off by default: memory that the program
  // unmaps would stay registered, and another mapping at its address would be taken for it. For memory that stays,
  // keep_registered() is the better way.
  std::size_t registrations_idle_bytes = 0;
  // Memory of the processor that nobody keeps registered is registered on demand (ODP), where the device can: nothing
  // is pinned, and a registration serves again. The first access to a page costs a fault in the device.
  bool on_demand = false;
  Duration busy_poll{};                               // poll(wait) spins for so long before it sleeps
  Duration spin_max = std::chrono::microseconds(50);  // without busy_poll: poll(wait) spins for so long and yields
                                                      // to others, if most waits end within this time; 0: never
  // After this long a silence the transport asks whether the peer's device lives; 0: never, so that only a send notices
  // that a host has vanished.
  Duration keepalive = std::chrono::seconds(10);
  RdmaPath path;
  std::string bind_address;  // numeric: source of connect(), and where listen() listens for an empty host
  // Numeric addresses of this host's RDMA ports, instead of bind_address as the source of connect(): a connection whose
  // first frame joins lane n leaves by the nth of them, and so on in turn; every other connection leaves by the first.
  // An address without a device (any more) is skipped for the next one. Addresses in the destination's own network come
  // before the others.
  std::vector<std::string> rails;
};

/// Counts since the start. Read on the transport's thread.
struct VerbsStatistics {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_fetched = 0;    // bytes fetched by RDMA READ, straight to their place
  std::uint64_t bytes_written = 0;    // bytes written by RDMA WRITE, to a place that the peer told, or its room
  std::uint64_t frames_in_place = 0;  // frames whose payloads the handler took where the peer had written them
  std::uint64_t bytes_copied = 0;     // bytes of payloads copied out of and into the rings on this side
  std::uint64_t posts = 0;            // lists of work requests handed to the device
  std::uint64_t sleeps = 0;           // poll() asked the system to wait
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;             // connections refused because of connections_max
  std::uint64_t refused_unproved = 0;         // connections refused because they did not prove their claim
  std::array<std::uint64_t, 9> rejects{};     // channels closed for a bad header, by FrameReject
  std::uint64_t queue_pairs_extended = 0;     // queue pairs to which work is posted by ibv_wr_*
  std::uint64_t registrations = 0;            // made
  std::uint64_t registrations_on_demand = 0;  // registrations made on demand
  std::uint64_t registration_hits = 0;        // times that an earlier registration served again
  // now
  std::size_t connections = 0;
  std::size_t queue_pairs = 0;
  std::size_t completion_queues = 0;
  std::size_t memory_regions = 0;
  std::size_t memory_windows = 0;
  std::size_t bytes_registered = 0;
};

/// The claim that a connection makes before it is accepted: taken from the first frame that was queued on it.
struct VerbsClaim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

/// Checks whether RDMA verbs can be used: this build has them, and this host has a device. The error says why not.
[[nodiscard]] Status verbs_available();
/// This host's active RDMA ports, one entry for each IP address by which a port is reached, in the order of the
/// devices. Only RoCE version 2 ports: those of InfiniBand and iWARP have the addresses of their network interfaces,
/// and are left out.
[[nodiscard]] std::vector<Rail> verbs_rails();

/// Checks whether connections can come in by this numeric address: an RDMA device is behind it, and its port is active.
/// Names, and the addresses that mean every address, always count as such. Errc::unreachable says why not.
[[nodiscard]] Status verbs_address_lives(const std::string& host);

class VerbsTransport final : public Transport, public TakesDeviceMemory {
 public:
  /// Errc::unsupported, with the reason, where there is no RDMA device; Errc::io where the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<VerbsTransport>> create(const VerbsSettings& settings = {});
  /// Not inside its own callbacks. Closes its channels; they may be destroyed later, without a callback.
  ~VerbsTransport() override;
  VerbsTransport(const VerbsTransport&) = delete;
  VerbsTransport& operator=(const VerbsTransport&) = delete;

  /// The port is in RDMA's own port space. An empty host, and "::", mean all addresses of both families.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;

  /// Listens for several transports of this process: `route` is asked, on this transport's thread, which of them serves
  /// a connection; that transport's acceptor, set by accept_routed(), gets it on its own thread. nullptr refuses it.
  /// All these transports must outlive the listener.
  using Route = std::function<VerbsTransport*(const VerbsClaim& claim)>;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen_for(const Endpoint& at, Route route);
  /// On this transport's thread, or before it has one. nullptr: it takes no connection any more.
  void accept_routed(Acceptor* acceptor);

  /// The memory is registered once for each domain that uses it. The registrations end with the promise, or when the
  /// last frame that uses them is done.
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> memory) override;

  /// On this transport's thread; the promise may end on any. Small payloads are copied by the owner's copy().
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                               std::shared_ptr<DeviceMemory> owner) override;

  [[nodiscard]] std::uint64_t room_bytes(std::uint32_t payloads, std::uint32_t payload_bytes) const override;

  [[nodiscard]] VerbsStatistics statistics() const;

  /// From now on this transport's poll() also polls `beside`, a transport on sockets, on the same thread, and does not
  /// wait while that one has something to do. While that one is quiet, it costs no system call. Called once, before the
  /// first poll().
  void drive(std::shared_ptr<SocketCore> beside);
  /// Checks whether there is still a device behind this address, or, if the address is empty, behind one by which
  /// connections leave. The error says why not. Asks the system.
  [[nodiscard]] Status device_at(const std::string& own_address) const;

  /// For a listener of another transport: runs `take` on this transport's thread.
  void take_routed(std::function<void(const std::shared_ptr<VerbsCore>&)> take);

 private:
  explicit VerbsTransport(std::shared_ptr<VerbsCore> core);
  std::shared_ptr<VerbsCore> core_;
};

}  // namespace tributary::transport
