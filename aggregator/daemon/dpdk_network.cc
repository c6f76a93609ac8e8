#include "aggregator/daemon/dpdk_network.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <ranges>

#include "aggregator/daemon/modules.h"
#include "aggregator/daemon/packet_settings.h"
#include "aggregator/daemon/transport_checks.h"

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

Result<std::unique_ptr<DpdkNetwork>> DpdkNetwork::open(const Settings& settings,
                                                       std::shared_ptr<transport::LinkKeys> keys) {
  if (auto ok = check_transport_settings(settings); !ok) return std::unexpected(ok.error());
  const auto module = dpdk_module();
  if (!module) return fail(Errc::bad_config, "transport is dpdk, but " + module.error().message);
  std::unique_ptr<DpdkNetwork> network(new DpdkNetwork(settings, **module, std::move(keys)));
  if (auto ok = network->open_device(); !ok) return std::unexpected(ok.error());
  return network;
}

Status DpdkNetwork::open_device() {
  auto device = module_.open({.device = settings_.dpdk_device,
                              .addresses = split(settings_.dpdk_addresses, ','),
                              .gateways = split(settings_.dpdk_gateways, ','),
                              .vlan = static_cast<std::uint16_t>(settings_.dpdk_vlan),
                              .queues = static_cast<std::uint16_t>(settings_.workers + (needs_door() ? 1 : 0)),
                              .descriptors = static_cast<std::uint16_t>(settings_.dpdk_descriptors),
                              .mtu = settings_.dpdk_mtu,
                              .huge_pages = huge_pages(settings_.dpdk_huge_pages),
                              .file_prefix = settings_.dpdk_file_prefix,
                              .arguments = split(settings_.dpdk_arguments, ' '),
                              .gpu = settings_.dpdk_gpu});
  if (!device) return fail(Errc::bad_config, "transport is dpdk, but " + device.error().message);
  device_ = std::move(*device);
  return {};
}

transport::DpdkSettings DpdkNetwork::queue_settings(std::uint32_t queue) const {
  transport::DpdkSettings dpdk;
  dpdk.queue = static_cast<std::uint16_t>(queue);
  dpdk.core = core_of(split(settings_.dpdk_cores, ','), queue);
  take_packet_settings(dpdk, settings_);
  dpdk.sleep_max = settings_.dpdk_sleep;
  dpdk.keys = keys_;
  return dpdk;
}

Result<std::unique_ptr<WorkerThread>> DpdkNetwork::start_worker(std::uint32_t index, MemoryBudget& budget,
                                                                WorkerSettings worker,
                                                                Worker::VerifyJoin verify) const {
  const Endpoint at{{}, needs_door() ? std::uint16_t{0} : settings_.listen.front().port};
  return WorkerThread::over_dpdk(index, budget, std::move(worker), module_,
                                 module_.make(device_, queue_settings(index)), at, std::move(verify));
}

Result<std::unique_ptr<UdpDoor>> DpdkNetwork::open_door(transport::DpdkTransport::Route route) {
  std::unique_ptr<UdpDoor> door;
  if (needs_door()) {
    transport::DpdkSettings dpdk = queue_settings(settings_.workers);
    dpdk.core = -1;
    dpdk.sleep_max = std::chrono::milliseconds(1);  // the longest wait of a connecting child
    auto transport = module_.make(device_, dpdk);
    auto listener = module_.listen_for(*transport, {{}, settings_.listen.front().port}, std::move(route));
    if (!listener) return fail(Errc::io, listener.error().message);
    door_ = transport.get();
    door = UdpDoor::serve(std::move(transport), std::move(*listener));
  }
  for (const std::string& note : module_.take_notes(*device_)) spdlog::warn("{}", note);
  return door;
}

std::optional<transport::DpdkStatistics> DpdkNetwork::door_statistics() const {
  if (door_ == nullptr) return std::nullopt;
  const auto promise = std::make_shared<std::promise<transport::DpdkStatistics>>();
  auto answer = promise->get_future();
  door_->post([&module = module_, door = door_, promise] { promise->set_value(module.statistics(*door)); });
  if (answer.wait_for(kDoorLimit) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

}  // namespace tributary::aggregator
