#include <stdexcept>

#include "transport/packet/faulty_port.h"
#include "transport/packet/figures.h"
#include "transport/packet/packet_transport.h"
#include "transport/udp/udp_port.h"
#include "tributary/transport/udp.h"

namespace tributary::transport {
namespace {

constexpr std::size_t kWindowMin = 65536;
constexpr Duration kLinger = std::chrono::milliseconds(500);

packet::PacketSettings packet_settings(const UdpSettings& settings) {
  packet::PacketSettings packets;
  packets.frames_queued_max = settings.frames_queued_max;
  packets.connections_max = settings.connections_max;
  packets.half_open_max = settings.half_open_max;
  // The bytes that all peers together may send ahead must fit into the socket's buffer. In that buffer the system needs
  // about as many bytes again for its own data about each datagram.
  packets.window_bytes_total = std::max(udp::receive_buffer_granted(settings.receive_buffer_bytes) / 2, kWindowMin);
  packets.window_bytes = std::min(settings.window_bytes, packets.window_bytes_total);
  packets.datagram_bytes_max = settings.datagram_bytes_max;
  packets.keepalive = settings.keepalive;
  packets.peer_timeout = settings.peer_timeout;
  packets.keys = settings.keys;
  packets.congestion.target = settings.delay_target;
  packets.congestion.window_initial = settings.window_initial;
  packets.congestion.window_max = settings.window_max;
  packets.linger = kLinger;
  packets.busy_poll = settings.busy_poll;
  packets.spin_max = settings.spin_max;
  return packets;
}

packet::PacketTransport::OpenPort opener(const UdpSettings& settings) {
  return [settings](const Endpoint& at) -> Result<std::unique_ptr<packet::PacketPort>> {
    auto port = udp::UdpPort::open(at, settings);
    if (!port) return port;
    return packet::with_faults(std::move(*port), settings.faults);
  };
}

}  // namespace

UdpTransport::UdpTransport(const UdpSettings& settings)
    : packets_(std::make_unique<packet::PacketTransport>(opener(settings), packet_settings(settings))) {}
UdpTransport::~UdpTransport() = default;

Result<std::unique_ptr<Listener>> UdpTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  return packets_->listen(at, acceptor);
}
Result<std::unique_ptr<Listener>> UdpTransport::listen_for(const Endpoint& at, Route route) {
  return packets_->listen_for(at, [route = std::move(route)](const packet::Claim& claim) {
    return route({.group = claim.group, .lane = claim.lane});
  });
}
std::unique_ptr<Channel> UdpTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  return packets_->connect(to, handler, limit);
}
std::size_t UdpTransport::poll(Duration wait) {
  return packets_->poll(wait);
}
void UdpTransport::post(std::function<void()> call) {
  packets_->post(std::move(call));
}

UdpStatistics UdpTransport::statistics() const {
  const packet::PacketStatistics from = packets_->statistics();
  UdpStatistics to{packet::figures_of(from)};
  to.joined_sent = from.port.joined_sent;
  to.joined_received = from.port.joined_received;
  to.joined_refused = from.port.joined_refused;
  to.unsent = {{{"full", from.port.unsent_full},
                {"too_long", from.port.unsent_too_long},
                {"no_way", from.port.unsent_no_way},
                {"other", from.port.unsent_other},
                {"no_place", from.control_unsent}}};
  return to;
}

}  // namespace tributary::transport
