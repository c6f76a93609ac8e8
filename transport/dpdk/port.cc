#include "transport/dpdk/port.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::transport::dpdk {
namespace {

constexpr std::size_t kProbesPerTurn = 16;
constexpr std::uint64_t kTurnsPerSecond = 1000;

}  // namespace

Result<std::unique_ptr<DpdkPort>> DpdkPort::open(std::shared_ptr<Device> device, const PortSettings& settings) {
  auto bell = WakeBell::make();
  if (!bell) return std::unexpected(bell.error());
  const auto bound = device->bind(settings.udp_port, settings.queue);
  if (!bound) return std::unexpected(bound.error());
  return std::unique_ptr<DpdkPort>(new DpdkPort(std::move(device), settings, *bound, std::move(*bell)));
}

DpdkPort::DpdkPort(std::shared_ptr<Device> device, const PortSettings& settings, const Device::Bound& bound,
                   std::unique_ptr<WakeBell> bell)
    : device_(std::move(device)),
      settings_(settings),
      id_(device_->id()),
      udp_port_(bound.udp_port),
      place_(bound.place),
      turns_(device_->turns(settings.queue)),
      bell_(std::move(bell)),
      seen_at_(device_->seen_at()),
      turn_cycles_(::rte_get_tsc_hz() / kTurnsPerSecond),
      shared_(device_->send_pool(settings.queue).get(), !device_->sends_checksums().udp, device_->sends_pieces()),
      routes_(std::make_unique<std::array<Route, kRoutes>>()) {
  const ethernet::HostSettings& host = device_->host().settings();
  plain_ = {host.mac, host.vlan, udp_port_};
  for (const ethernet::Prefix& own : device_->settings().addresses) plain_.add(own.address);
}

DpdkPort::~DpdkPort() {
  transmit();
  give_back_shown();
  free_returned();
  ::rte_pktmbuf_free_bulk(staged_.data(), static_cast<unsigned>(staged_count_));
  ::rte_pktmbuf_free_bulk(blank_.data(), static_cast<unsigned>(blank_count_));
  for (const Waiting& one : std::span(waiting_).first(waiting_count_)) ::rte_pktmbuf_free(one.mbuf);
  device_->release({udp_port_, place_});
}

packet::PacketAddress DpdkPort::local() const {
  const auto& addresses = device_->settings().addresses;
  return {addresses.size() == 1 ? addresses.front().address : ethernet::IpAddress{}, udp_port_};
}

std::size_t DpdkPort::datagram_bytes_max(const packet::PacketAddress& to) {
  const std::size_t ip_bytes = ethernet::is_ipv4(to.ip) ? ethernet::kIpv4Bytes : ethernet::kIpv6Bytes;
  return device_->host().path_mtu(to.ip, Clock::now()) - ip_bytes - ethernet::kUdpBytes;
}

void DpdkPort::believe_path(const packet::PacketAddress& to, std::uint32_t path_bytes) {
  device_->host().believe_path_mtu(to.ip, path_bytes, Clock::now());
}

void DpdkPort::wait(Duration limit) {
  const Duration sleep = std::min(limit, settings_.sleep_max);
  if (bell_->take() || sleep <= Duration::zero()) return;
  const auto idle = std::chrono::duration<double>(static_cast<double>(::rte_rdtsc() - last_arrival_) /
                                                  static_cast<double>(::rte_get_tsc_hz()));
  if (idle < settings_.spin) return;
  bell_->sleep(sleep);
}

void DpdkPort::wake() noexcept {
  bell_->ring();
}

/// Does the work that depends only on time. Called once a millisecond.
void DpdkPort::look_after(TimePoint now) {
  now_ = now;
  TRIBUTARY_ASSERT(waiting_count_ <= waiting_.size(), "{} datagrams wait for neighbours", waiting_count_);
  second_ =
      static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  retry_waiting(now);
  if (!device_->claim_turn(now)) return;
  ethernet::Host& host = device_->host();
  std::array<ethernet::NeighbourProbe, kProbesPerTurn> probes;
  const std::size_t due = host.neighbours().due(now, probes);
  for (const auto& probe : std::span(probes).first(due)) {
    send_control([&](std::span<std::byte> out) { return host.write_probe(probe, out); });
  }
  if (!device_->claim_announcement(now)) return;
  for (std::size_t i = 0; i < host.addresses_count(); ++i) {
    send_control([&](std::span<std::byte> out) { return host.write_announcement(i, out); });
  }
}

/// Sends a control frame. `write` returns the number of bytes that it has written; 0: no frame is sent.
void DpdkPort::send_control(const std::function<std::size_t(std::span<std::byte> out)>& write) {
  rte_mbuf* const mbuf = has_room() ? blank() : nullptr;
  if (mbuf == nullptr) return;  // the other host asks again, or the frame matters little
  auto* const at = rte_pktmbuf_mtod(mbuf, std::byte*);
  const std::size_t bytes = write({at, std::min<std::size_t>(rte_pktmbuf_tailroom(mbuf), device_->mtu() + 18U)});
  if (bytes == 0) {
    ::rte_pktmbuf_free(mbuf);
    return;
  }
  TRIBUTARY_ASSERT(bytes <= rte_pktmbuf_tailroom(mbuf), "a control frame of {} bytes is written into a buffer of {}",
                   bytes, rte_pktmbuf_tailroom(mbuf));
  mbuf->data_len = static_cast<std::uint16_t>(bytes);
  mbuf->pkt_len = static_cast<std::uint32_t>(bytes);
  stage(mbuf);
  answers_staged_ = true;
}

}  // namespace tributary::transport::dpdk
