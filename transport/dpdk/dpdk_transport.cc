#include "transport/dpdk/port.h"
#include "transport/packet/faulty_port.h"
#include "transport/packet/figures.h"
#include "transport/packet/packet_transport.h"
#include "tributary/transport/dpdk.h"

namespace tributary::transport {
namespace {

constexpr std::size_t kWindowsMin = 1U << 20;
constexpr Duration kLinger = std::chrono::milliseconds(500);  // as in the transport over the kernel's UDP

packet::PacketSettings packet_settings(const DpdkSettings& settings, const dpdk::Device& device) {
  packet::PacketSettings packets;
  packets.frames_queued_max = settings.frames_queued_max;
  packets.connections_max = settings.connections_max;
  packets.half_open_max = settings.half_open_max;
  // The bytes that all peers together may send ahead must fit into the device's queue when all frames are full.
  const std::size_t queue = std::size_t{device.settings().descriptors.receive} * device.mtu();
  packets.window_bytes_total = std::max(queue, kWindowsMin);
  packets.window_bytes = std::min(settings.window_bytes, packets.window_bytes_total);
  packets.keepalive = settings.keepalive;
  packets.peer_timeout = settings.peer_timeout;
  packets.keys = settings.keys;
  packets.linger = kLinger;
  packets.congestion.target = settings.delay_target;
  packets.congestion.window_initial = settings.window_initial;
  packets.congestion.window_max = settings.window_max;
  if (settings.sleep_max <= Duration::zero()) packets.busy_poll = Duration::max() / 4;
  return packets;
}

}  // namespace

DpdkTransport::DpdkTransport(std::shared_ptr<DpdkDevice> device, const DpdkSettings& settings)
    : device_(std::move(device)) {
  const dpdk::PortSettings port{.queue = settings.queue,
                                .core = settings.core,
                                .dscp = settings.dscp,
                                .ecn = settings.ecn,
                                .spin = settings.spin,
                                .sleep_max = settings.sleep_max};
  const auto open = [this, port](const Endpoint& at) -> Result<std::unique_ptr<packet::PacketPort>> {
    dpdk::PortSettings there = port;
    there.udp_port = at.port;
    auto opened = dpdk::DpdkPort::open(device_->device_, there);
    if (!opened) return std::unexpected(opened.error());
    if (port_ == nullptr) port_ = opened->get();  // statistics() shows the first port's figures only
    return packet::with_faults(std::move(*opened), {});
  };
  packets_ = std::make_unique<packet::PacketTransport>(open, packet_settings(settings, *device_->device_));
}

DpdkTransport::~DpdkTransport() = default;

Status DpdkTransport::check(const Endpoint& at) const {
  if (at.host.empty()) return {};
  const auto ip = ethernet::parse_ip(at.host);
  if (ip && (ethernet::is_unspecified(*ip) || device_->device_->host().has(*ip))) return {};
  return fail(Errc::io, to_string(at) + " is no address of DPDK's device " + device_->device_->name() + ".");
}

/// The listener takes datagrams at all of the device's addresses, but names one address for peers to connect to.
class DpdkListener final : public Listener {
 public:
  DpdkListener(std::unique_ptr<Listener> inner, std::string host) : inner_(std::move(inner)), host_(std::move(host)) {}
  Endpoint local() const override { return {host_, inner_->local().port}; }

 private:
  const std::unique_ptr<Listener> inner_;
  const std::string host_;
};

Result<std::unique_ptr<Listener>> DpdkTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  if (auto ok = check(at); !ok) return std::unexpected(ok.error());
  auto listener = packets_->listen({named_host(at), at.port}, acceptor);
  if (!listener) return listener;
  return std::make_unique<DpdkListener>(std::move(*listener), named_host(at));
}

Result<std::unique_ptr<Listener>> DpdkTransport::listen_for(const Endpoint& at, Route route) {
  if (auto ok = check(at); !ok) return std::unexpected(ok.error());
  auto listener =
      packets_->listen_for({named_host(at), at.port}, [route = std::move(route)](const packet::Claim& claim) {
        return route({.group = claim.group, .lane = claim.lane});
      });
  if (!listener) return listener;
  return std::make_unique<DpdkListener>(std::move(*listener), named_host(at));
}

std::string DpdkTransport::named_host(const Endpoint& at) const {
  const auto ip = ethernet::parse_ip(at.host);
  return ip && !ethernet::is_unspecified(*ip) ? at.host : device_->address();
}

std::unique_ptr<Channel> DpdkTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  return packets_->connect(to, handler, limit);
}
std::size_t DpdkTransport::poll(Duration wait) {
  return packets_->poll(wait);
}
void DpdkTransport::post(std::function<void()> call) {
  packets_->post(std::move(call));
}

DpdkStatistics DpdkTransport::statistics() const {
  DpdkStatistics to{packet::figures_of(packets_->statistics())};
  if (port_ == nullptr) return to;
  const dpdk::PortStatistics port = port_->statistics();
  const auto dropped = [&to](std::string_view reason, std::uint64_t count) {
    if (count > 0) to.frames_dropped.emplace_back(reason, count);
  };
  for (std::size_t i = 0; i < port.dropped.size(); ++i) {
    to.frames_malformed += port.dropped[i];
    dropped(ethernet::to_string(static_cast<ethernet::Drop>(i)), port.dropped[i]);
  }
  dropped("scattered", port.dropped_scattered);
  dropped("other_address", port.dropped_foreign);
  dropped("other_port", port.dropped_port);
  dropped("queue_full", port.dropped_handed_over);
  to.frames_malformed += port.dropped_scattered;
  to.frames_foreign = port.dropped_foreign + port.dropped_port;
  to.frames_control = port.control;
  to.frames_handed_over = port.handed_over;
  to.sent_shared = port.sent_shared;
  to.unsent_no_buffer = port.unsent_no_buffer;
  to.unsent = port.unsent_full + port.unsent_no_route + port.unsent_no_neighbour + port.unsent_too_long;
  return to;
}

}  // namespace tributary::transport
