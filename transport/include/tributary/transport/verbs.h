#pragma once
// Frames over RDMA verbs: InfiniBand, RoCE and iWARP, by reliable connected queue pairs that the RDMA connection
// manager sets up. Small payloads travel in the send itself. Of larger ones, a frame that its receiver expects is
// written straight to the place that it has told; others into the room that it has made for them; and what is neither
// expected nor has room is fetched by the receiver's device, straight from where the sender has it to where the
// receiver's handler wants it. No processor copies anything on the way, unless the handler wants it elsewhere than in
// the room; and no kernel is asked.
//
// Authority. The keys that a peer is told are those of memory windows, bound to this connection's queue pair. That of a
// payload which it shall fetch lets it alone read the payload's own bytes, until it says that it has them; that of an
// expected frame's place lets it alone write those bytes, until it says that it has; both are revoked before anything
// happens because of that. That of its room lets it alone write there, as long as the connection lives. Registrations
// have no key that a peer could use. Devices without such windows: every connection has a protection domain of its own,
// and each of those is registered by itself, for as long as the window would be.
//
// A connection claims a place (group, epoch, lane and child) before its first frame comes, and proves the claim in the
// connection manager's private data: whoever has not the place's secret is refused before there is a queue pair, and so
// is an answer without it. The first frame must repeat the group; connections of the same group share a protection
// domain, because their memory is the same: a group's. One that claims none (ranks among themselves) has its own.
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
  // What connections are proved by: without the secret of the place that it claims, none gets a queue pair. nullptr:
  // anybody connects, and what it may do is its user's to find out.
  std::shared_ptr<LinkKeys> keys{};
  std::uint32_t frames_queued_max = 1024;  // per channel: send() without its on_sent; above, send() is false
  std::uint32_t connections_max = 16384;   // open at once; more are refused, so that the peer can fall back
  std::uint32_t receive_depth = 32;        // messages that a peer may send ahead of our reading them; 4 to 64
  // Queue pairs of one channel, over which what is written to the peer is spread: devices and paths that serve a queue
  // pair by one engine, or one route, need several to be filled. 1 to 8; both sides', the smaller counts. Each costs
  // its receives' memory.
  std::uint32_t queue_pairs = 1;
  bool extended_posting = true;      // work is handed over by ibv_wr_*, where the device's library has it
  std::uint32_t eager_bytes = 4096;  // payloads up to so long travel in the send itself; at most 64 KiB
  std::uint32_t inline_bytes = 220;  // messages up to so long are written into the work request, if the device can
  std::uint32_t read_bytes_max = 1U << 20;  // of one RDMA READ; larger payloads are fetched by several
  std::uint32_t reads_in_flight = 8;        // of one channel; 1 to 16, and at most what the device allows
  // Payloads of one channel that the peer may be fetching, each through a memory window: a power of two, or less is
  // used. 0: no memory windows, as on devices that have none.
  std::uint32_t windows_max = 64;
  // Expected frames (Channel::expect) of one channel whose places the peer is told, so that it can write there; at most
  // 128. 0: none.
  std::uint32_t places_max = 64;
  // Of one channel, for payloads that come before they are asked for (Channel::make_room). 0: none.
  std::size_t room_bytes_max = std::size_t{256} << 20;
  // Registrations that are kept after use, for memory that is sent from again. Off by default: memory that is unmapped
  // behind the library's back would stay registered, and another mapping at its address would be taken for it. What
  // does not go away is told by keep_registered().
  std::size_t registrations_idle_bytes = 0;
  // Other memory of the processor's is registered on demand (ODP), where the device can: nothing is pinned, and what
  // was registered once serves again. The first access to a page costs a fault in the device.
  bool on_demand = false;
  Duration busy_poll{};                               // poll(wait) spins for so long before it sleeps
  Duration spin_max = std::chrono::microseconds(50);  // without busy_poll: poll(wait) spins for so long, yielding to
                                                      // others, but only while most waits are over by then; 0: never
  Duration keepalive = std::chrono::seconds(10);  // of silence, until the peer's device is asked whether it lives; 0:
                                                  // never, so that a host that vanishes is noticed by what one sends
  RdmaPath path;
  std::string bind_address;  // numeric: source of connect(), and where listen() listens for an empty host
  // Numeric addresses of this host's RDMA ports, instead of bind_address as the source of connect(): a connection whose
  // first frame joins lane n leaves by the nth of them and so on in turn, every other one by the first. Where no device
  // is behind an address (any more), the next one's turn comes. Those whose own network the destination is in come
  // before the others.
  std::vector<std::string> rails;
};

/// Counts since the start. Read on the transport's thread.
struct VerbsStatistics {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t messages_sent = 0, messages_received = 0;
  std::uint64_t bytes_fetched = 0;    // by RDMA READ, straight to their place
  std::uint64_t bytes_written = 0;    // by RDMA WRITE, to a place that the peer had told, or into its room
  std::uint64_t frames_in_place = 0;  // that the handler took where the peer had written them
  std::uint64_t bytes_copied = 0;     // payloads through the rings, here: out of and into them
  std::uint64_t posts = 0;            // lists of work requests handed to the device
  std::uint64_t sleeps = 0;           // poll() asked the system to wait
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;             // because of connections_max
  std::uint64_t refused_unproved = 0;         // they did not prove what they claimed
  std::array<std::uint64_t, 9> rejects{};     // channels closed for a bad header, by FrameReject
  std::uint64_t queue_pairs_extended = 0;     // made, of those that are posted to by ibv_wr_*
  std::uint64_t registrations = 0;            // made
  std::uint64_t registrations_on_demand = 0;  // of them
  std::uint64_t registration_hits = 0;        // found
  // now
  std::size_t connections = 0;
  std::size_t queue_pairs = 0;
  std::size_t completion_queues = 0;
  std::size_t memory_regions = 0;
  std::size_t memory_windows = 0;
  std::size_t bytes_registered = 0;
};

/// What a connection claims before it is accepted: taken from the first frame that was queued on it.
struct VerbsClaim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

/// Whether RDMA verbs can be used: this build has them, and this host has a device. If not, why not.
[[nodiscard]] Status verbs_available();
/// This host's active RDMA ports with the IP addresses by which they are reached, one for each address: those of RoCE
/// (version 2), in the order of the devices. InfiniBand and iWARP ports have theirs from their network interfaces, and
/// are not among them.
[[nodiscard]] std::vector<Rail> verbs_rails();

/// Whether connections can come in by this numeric address: an RDMA device is behind it, and the port is active. The
/// same for names, and for what stands for every address, which are taken for good. Errc::unreachable says why not.
[[nodiscard]] Status verbs_address_lives(const std::string& host);

class VerbsTransport final : public Transport, public TakesDeviceMemory {
 public:
  /// Errc::unsupported, with the reason, where there is no RDMA device; Errc::io where the system refuses.
  [[nodiscard]] static Result<std::unique_ptr<VerbsTransport>> create(const VerbsSettings& settings = {});
  /// Not inside its own callbacks. Closes its channels; they may be destroyed later, without a callback.
  ~VerbsTransport() override;
  VerbsTransport(const VerbsTransport&) = delete;
  VerbsTransport& operator=(const VerbsTransport&) = delete;

  /// The port is of RDMA's own name space. An empty host, and "::", mean all addresses of both families.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;

  /// Listens for several transports of this process: `route` is asked, on this transport's thread, which of them serves
  /// a connection; that one's acceptor, set by accept_routed(), gets it on its own thread. nullptr refuses. Those
  /// transports must outlive the listener.
  using Route = std::function<VerbsTransport*(const VerbsClaim& claim)>;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen_for(const Endpoint& at, Route route);
  /// On this transport's thread, or before it has one. nullptr: none is taken any more.
  void accept_routed(Acceptor* acceptor);

  /// Registered once for each domain that uses it. The registrations go with the promise, at the latest when the frames
  /// that use them are done.
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> memory) override;

  /// On this transport's thread; the promise may end on any. Small payloads go by the owner's copy().
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_device_memory(std::span<const std::byte> memory,
                                                               std::shared_ptr<DeviceMemory> owner) override;

  [[nodiscard]] std::uint64_t room_bytes(std::uint32_t payloads, std::uint32_t payload_bytes) const override;

  [[nodiscard]] VerbsStatistics statistics() const;

  /// A transport on sockets beside this one: from now on this one's poll() polls it, too, on the same thread, and does
  /// not wait while there is something for it. As long as that one is quiet, it costs no call to the system. Once,
  /// before the first poll().
  void drive(std::shared_ptr<SocketCore> beside);
  /// Whether there is still a device behind this address, or, if it is empty, behind one of those that connections
  /// leave by. If not, says so. Asks the system.
  [[nodiscard]] Status device_at(const std::string& own_address) const;

  /// For a listener of another transport: runs `take` on this one's thread.
  void take_routed(std::function<void(const std::shared_ptr<VerbsCore>&)> take);

 private:
  explicit VerbsTransport(std::shared_ptr<VerbsCore> core);
  std::shared_ptr<VerbsCore> core_;
};

}  // namespace tributary::transport
