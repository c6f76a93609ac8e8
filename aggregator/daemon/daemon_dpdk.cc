// The daemon over DPDK: one device, with a queue for each worker and, where there are several workers, one for the
// door.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <ranges>

#include "aggregator/daemon/daemon.h"

namespace tributary::aggregator {
namespace {

constexpr auto kDoorLimit = std::chrono::milliseconds(1000);

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> words;
  for (const auto word : std::views::split(text, by)) {
    if (!word.empty()) words.emplace_back(word.begin(), word.end());
  }
  return words;
}

transport::DpdkHugePages huge_pages(std::string_view text) {
  if (text == "require") return transport::DpdkHugePages::require;
  return text == "never" ? transport::DpdkHugePages::never : transport::DpdkHugePages::prefer;
}

int core_of(const std::vector<std::string>& cores, std::size_t worker) {
  int core = -1;
  if (worker < cores.size()) std::from_chars(cores[worker].data(), cores[worker].data() + cores[worker].size(), core);
  return core;
}

}  // namespace

Status Daemon::open_dpdk_device() {
  if (settings_.dpdk_device.empty() || settings_.dpdk_addresses.empty()) {
    return fail(Errc::bad_config,
                "transport is dpdk: dpdk_device and dpdk_addresses must say which device, and what "
                "this host is called there.");
  }
  auto device = transport::DpdkDevice::open(
      {.device = settings_.dpdk_device,
       .addresses = split(settings_.dpdk_addresses, ','),
       .gateways = split(settings_.dpdk_gateways, ','),
       .vlan = static_cast<std::uint16_t>(settings_.dpdk_vlan),
       .queues = static_cast<std::uint16_t>(settings_.workers + (needs_dpdk_door() ? 1 : 0)),
       .descriptors = static_cast<std::uint16_t>(settings_.dpdk_descriptors),
       .mtu = settings_.dpdk_mtu,
       .huge_pages = huge_pages(settings_.dpdk_huge_pages),
       .file_prefix = settings_.dpdk_file_prefix,
       .arguments = split(settings_.dpdk_arguments, ' '),
       .gpu = settings_.dpdk_gpu});
  if (!device) return fail(Errc::bad_config, "transport is dpdk, but " + device.error().message);
  dpdk_device_ = std::move(*device);
  return {};
}

transport::DpdkSettings Daemon::dpdk_settings(std::uint32_t queue) const {
  transport::DpdkSettings dpdk;
  dpdk.queue = static_cast<std::uint16_t>(queue);
  dpdk.core = core_of(split(settings_.dpdk_cores, ','), queue);
  dpdk.connections_max = settings_.connections_max;
  // The transport's default is shorter than TCP's, so the setting is only an upper bound.
  dpdk.keepalive = std::min<transport::Duration>(dpdk.keepalive, settings_.keepalive);
  dpdk.peer_timeout = settings_.packet_peer_timeout;
  dpdk.delay_target = settings_.packet_delay_target;
  dpdk.window_initial = settings_.packet_window_initial;
  dpdk.window_max = settings_.packet_window_max;
  dpdk.ecn = settings_.packet_ecn;
  dpdk.dscp = static_cast<std::uint8_t>(settings_.packet_dscp);
  dpdk.sleep_max = settings_.dpdk_sleep;
  dpdk.keys = link_keys_;
  return dpdk;
}

Status Daemon::start_dpdk_workers(const WorkerSettings& worker) {
  if (auto ok = open_dpdk_device(); !ok) return ok;
  const Endpoint at{{}, needs_dpdk_door() ? std::uint16_t{0} : settings_.listen.front().port};
  for (std::uint32_t i = 0; i < settings_.workers; ++i) {
    auto thread = WorkerThread::over_dpdk(
        i, budget_, worker, std::make_unique<transport::DpdkTransport>(dpdk_device_, dpdk_settings(i)), at,
        [this, i](std::span<const std::byte> join) { return verify_for(i, join); });
    if (!thread) return fail(Errc::io, thread.error().message);
    workers_.push_back(std::move(*thread));
  }
  return {};
}

Status Daemon::open_dpdk_door() {
  if (auto ok = needs_dpdk_door() ? start_dpdk_door() : Status{}; !ok) return ok;
  for (const std::string& note : dpdk_device_->take_notes()) spdlog::warn("{}", note);
  return {};
}

Status Daemon::start_dpdk_door() {
  transport::DpdkSettings dpdk = dpdk_settings(settings_.workers);
  dpdk.core = -1;
  dpdk.sleep_max = std::chrono::milliseconds(1);  // a child that connects can wait for so long
  auto transport = std::make_unique<transport::DpdkTransport>(dpdk_device_, dpdk);
  auto listener = transport->listen_for({{}, settings_.listen.front().port}, [this](const transport::DpdkClaim& claim) {
    return worker_of(claim.group, claim.lane).port();
  });
  if (!listener) return fail(Errc::io, listener.error().message);
  dpdk_door_ = transport.get();
  udp_door_ = UdpDoor::serve(std::move(transport), std::move(*listener));
  return {};
}

/// Returns the counts of the door's queue; nothing while its thread does not answer.
std::optional<transport::DpdkStatistics> Daemon::dpdk_door_statistics() const {
  if (dpdk_door_ == nullptr) return std::nullopt;
  const auto promise = std::make_shared<std::promise<transport::DpdkStatistics>>();
  auto answer = promise->get_future();
  dpdk_door_->post([door = dpdk_door_, promise] { promise->set_value(door->statistics()); });
  if (answer.wait_for(kDoorLimit) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace tributary::aggregator
