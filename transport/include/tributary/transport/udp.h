#pragma once
// Frames over UDP by the kernel's sockets, IPv4 and IPv6: the packet protocol (docs/protocol.md) where there is no RDMA
// and TCP is not wanted. It survives loss, repeats, reordering and damage; delay and ECN marks decide how much is under
// way. One socket carries all connections of a transport. Where the system can, the kernel or the device cuts each
// batch of packets that leaves (UDP_SEGMENT), and joins those that come (UDP_GRO).
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
  std::uint32_t frames_queued_max = 1024;  // frames without on_sent on a channel; above, send() is false
  std::uint32_t connections_max = 16384;   // open at once; more are refused, so that the peer can fall back
  std::uint32_t half_open_max = 1024;      // open connections whose first packet is still awaited
  std::size_t send_buffer_bytes = 4U << 20;
  std::size_t receive_buffer_bytes = 8U << 20;      // bytes of the socket's buffer, as far as net.core.rmem_max allows
  std::size_t window_bytes = 1U << 20;              // bytes that a connection's peer may send ahead of our reading
  std::size_t datagram_bytes_max = 16384;           // sends no longer ones, even where the path would carry them
  Duration keepalive = std::chrono::seconds(1);     // asks a peer that has been silent for this long
  Duration peer_timeout = std::chrono::seconds(5);  // a peer that was asked and does not answer for this long is gone
  Duration delay_target = std::chrono::microseconds(500);  // round trip in the network above which less is sent
  std::uint32_t window_initial = 10;                       // packets that a new connection may have under way
  std::uint32_t window_max = 4096;                         // packets that a connection may ever have under way
  bool ecn = true;                                         // packets say that routers may mark them: ECT(0)
  std::uint8_t dscp = 0;                                   // of packets sent, 0 to 63, by which switches choose a queue
  Duration busy_poll{};                                    // poll(wait) spins for this long before it sleeps
  Duration spin_max = std::chrono::microseconds(20);       // without busy_poll: poll() spins if most waits end
                                                           // within this time
  bool offloads = true;                                    // UDP_SEGMENT and UDP_GRO, where the system has them
  std::string bind_address;  // numeric: source of connect(), and where listen() listens for an empty host; empty: any
  std::shared_ptr<LinkKeys> keys;  // seal the connections; nullptr: all go in clear
  std::string faults;  // for tests: "lost=10,repeated=10,overtaken=50,damaged=5,seed=1", per thousand of the packets
                       // sent; empty: what TRIBUTARY_TEST_PACKET_FAULTS says
};

/// Counts since the start. Read on the transport's thread.
struct UdpStatistics : PacketFigures {
  // Datagrams that went to the system, or came from it, several in one message (UDP_SEGMENT, UDP_GRO). `joined_refused`
  // counts those that should have been joined, but went one by one.
  std::uint64_t joined_sent = 0, joined_received = 0, joined_refused = 0;
  std::array<Part, 5> unsent{};  // datagrams that the system did not take, by reason: the protocol sends them again
};

/// The claim that a connection makes before it is accepted: taken from the first frame that was queued on it.
struct UdpClaim {
  std::uint64_t group = 0;
  std::uint32_t lane = 0;
};

class UdpTransport final : public Transport {
 public:
  /// The socket is made when it is first needed, by listen() or connect().
  explicit UdpTransport(const UdpSettings& settings = {});
  /// Must not run inside its own callbacks. Closes its channels; they may be destroyed later, without a callback. May
  /// wait for a name look-up that is under way.
  ~UdpTransport() override;
  UdpTransport(const UdpTransport&) = delete;
  UdpTransport& operator=(const UdpTransport&) = delete;

  /// May be called for several addresses; each further one has a socket of its own. An empty host, and "::", mean all
  /// addresses of both families. A name is looked up within this call.
  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  /// Listens for several transports of this host: `route` gives the port at which the transport listens that serves a
  /// connection, and the other side is sent to that port. 0 refuses the connection.
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
