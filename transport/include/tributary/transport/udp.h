#pragma once
// Frames over UDP by the kernel's sockets, IPv4 and IPv6: the packet protocol (docs/protocol.md), in place of TCP, for
// hosts without RDMA. It survives loss, repeats, reordering and damage; delay and ECN marks decide how many packets are
// under way. One socket carries all connections of a transport. Where the system supports this, the kernel or the
// device cuts each batch of sent packets (UDP_SEGMENT), and joins received packets (UDP_GRO).
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"
#include "tributary/transport/packet_figures.h"

namespace tributary::transport {

namespace packet {
class PacketTransport;
}

struct UdpSettings {
  std::uint32_t frames_queued_max = 1024;  // most frames in a channel's queue; when it is full, send() returns false
  std::uint32_t connections_max = 16384;   // most open connections; a further peer is refused, and falls back
  std::uint32_t half_open_max = 1024;      // half-open connections, whose first packet has not come
  std::size_t send_buffer_bytes = 4U << 20;
  std::size_t receive_buffer_bytes = 8U << 20;      // bytes of the socket's buffer, as far as net.core.rmem_max allows
  std::size_t window_bytes = 1U << 20;              // bytes that a peer may send before this side reads them
  std::size_t datagram_bytes_max = 16384;           // most bytes of a sent datagram, even if the path carries more
  Duration keepalive = std::chrono::seconds(1);     // silence after which the peer is asked for an answer
  Duration peer_timeout = std::chrono::seconds(5);  // silence after which a peer that was asked counts as gone
  Duration delay_target = std::chrono::microseconds(500);  // longer round trips make a connection send less
  std::uint32_t window_initial = 10;                       // packets that a new connection may have under way
  std::uint32_t window_max = 4096;                         // packets that a connection may ever have under way
  bool ecn = true;                                         // packets say that routers may mark them: ECT(0)
  std::uint8_t dscp = 0;                                   // DSCP of packets, 0 to 63, by which switches choose a queue
  Duration busy_poll{};                                    // poll(wait) spins for this long before it sleeps
  Duration spin_max = std::chrono::microseconds(20);       // without busy_poll: poll() spins for this time, if most
                                                           // waits end within it
  bool offloads = true;                                    // UDP_SEGMENT and UDP_GRO, where the system has them
  std::string bind_address;        // numeric source of connect(), also for listen() without a host; empty: any
  std::shared_ptr<LinkKeys> keys;  // secrets that seal the connections; nullptr: no connection is sealed
  std::string faults;  // for tests: "lost=10,repeated=10,overtaken=50,damaged=5,seed=1", per thousand of the packets
                       // sent; empty: the text of TRIBUTARY_TEST_PACKET_FAULTS
};

/// Counts since the start. Read on the transport's thread.
struct UdpStatistics : PacketFigures {
  // Datagrams that the system sent or received, several of them in one message (UDP_SEGMENT, UDP_GRO). `joined_refused`
  // counts datagrams that should have been joined, but were sent one by one.
  std::uint64_t joined_sent = 0, joined_received = 0, joined_refused = 0;
  std::array<Part, 5> unsent{};  // datagrams that the system did not take, by reason: the protocol sends them again
};

/// The place that a connection claims before it is accepted. The claim comes from the first frame that was queued on
/// it.
struct UdpClaim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

class UdpTransport final : public Transport {
 public:
  /// The first listen() or connect() makes the socket.
  explicit UdpTransport(const UdpSettings& settings = {});
  /// Must not run inside a callback of this transport. Closes its channels without a callback; the user may destroy
  /// them later. May wait for a name look-up that is under way.
  ~UdpTransport() override;
  UdpTransport(const UdpTransport&) = delete;
  UdpTransport& operator=(const UdpTransport&) = delete;

  /// May be called for several addresses; each further address has a socket of its own. An empty host, and "::", mean
  /// all addresses of both families. A name is looked up within this call.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  /// Listens for several transports of this host. `route` returns the port of the transport that serves a connection,
  /// and the other side is told to connect to that port. 0 refuses the connection.
  using Route = std::function<std::uint16_t(const UdpClaim& claim)>;
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen_for(const Endpoint& at, Route route);
  /// A name is looked up on another thread; its addresses are tried in turn.
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return Clock::now(); }
  void post(std::function<void()> call) override;

  [[nodiscard]] UdpStatistics statistics() const;

 private:
  std::unique_ptr<packet::PacketTransport> packets_;
};

}  // namespace tributary::transport
