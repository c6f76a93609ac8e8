#include <cstdlib>
#include <stdexcept>

#include "packet/faulty_port.h"
#include "packet/packet_transport.h"
#include "tributary/transport/udp.h"
#include "udp/udp_port.h"

namespace tributary::transport {
namespace {

constexpr std::size_t kWindowMin = 65536;
constexpr Duration kLinger = std::chrono::milliseconds(500);

packet::PacketSettings packet_settings(const UdpSettings& settings) {
  packet::PacketSettings packets;
  packets.frames_queued_max = settings.frames_queued_max;
  packets.connections_max = settings.connections_max;
  packets.half_open_max = settings.half_open_max;
  // What all peers together may send ahead must fit the socket's buffer, which also counts what the system itself needs
  // for each datagram: about as much again.
  packets.window_bytes_total = std::max(udp::receive_buffer_granted(settings.receive_buffer_bytes) / 2, kWindowMin);
  packets.window_bytes = std::min(settings.window_bytes, packets.window_bytes_total);
  packets.datagram_bytes_max = settings.datagram_bytes_max;
  packets.keepalive = settings.keepalive;
  packets.peer_timeout = settings.peer_timeout;
  packets.keys = settings.keys;
  packets.congestion.target = settings.delay_target;
  packets.linger = kLinger;
  packets.busy_poll = settings.busy_poll;
  packets.spin_max = settings.spin_max;
  return packets;
}

packet::PacketTransport::OpenPort opener(const UdpSettings& settings) {
  std::string text = settings.faults;
  if (const char* told = std::getenv("TRIBUTARY_TEST_PACKET_FAULTS"); text.empty() && told != nullptr) text = told;
  if (text.empty()) return [settings](const Endpoint& at) { return udp::UdpPort::open(at, settings); };
  const auto faults = packet::parse_port_faults(text);
  return [settings, faults](const Endpoint& at) -> Result<std::unique_ptr<packet::PacketPort>> {
    if (!faults) return std::unexpected(faults.error());
    auto port = udp::UdpPort::open(at, settings);
    if (!port) return port;
    return packet::make_faulty(std::move(*port), *faults);
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
  UdpStatistics to{.frames_sent = from.frames_sent,
                   .frames_received = from.frames_received,
                   .packets_sent = from.packets_sent,
                   .packets_received = from.packets_received,
                   .bytes_sent = from.bytes_sent,
                   .bytes_received = from.bytes_received,
                   .packets_sent_again = from.packets_sent_again,
                   .packets_came_late = from.packets_came_late,
                   .repeats = from.repeats,
                   .marked = from.marked,
                   .timeouts = from.timeouts,
                   .stray = from.unknown_connection + from.senseless,
                   .no_room = from.no_room,
                   .peers_silent = from.peers_silent,
                   .accepted = from.accepted,
                   .refused_full = from.refused_full,
                   .forged = from.forged,
                   .unsealed = from.unsealed,
                   .connections = from.connections};
  for (const std::uint64_t count : from.rejects) to.rejected += count;
  return to;
}

}  // namespace tributary::transport
