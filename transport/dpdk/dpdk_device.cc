#include "transport/dpdk/af_packet.h"
#include "transport/dpdk/device.h"
#include "transport/dpdk/memif.h"
#include "tributary/transport/dpdk.h"

#include <algorithm>

namespace tributary::transport {
namespace {

dpdk::HugePages huge_pages(DpdkHugePages wanted) {
  switch (wanted) {
    case DpdkHugePages::prefer:
      return dpdk::HugePages::prefer;
    case DpdkHugePages::require:
      return dpdk::HugePages::require;
    case DpdkHugePages::never:
      break;
  }
  return dpdk::HugePages::never;
}

std::unexpected<Error> wrong(const Error& error) {
  return fail(Errc::bad_config, error.message + ".");
}

Result<dpdk::DeviceSettings> device_settings(const DpdkDeviceSettings& settings) {
  dpdk::DeviceSettings device{.device = settings.device,
                              .vlan = settings.vlan,
                              .queues = settings.queues,
                              .ports_per_queue = std::max<std::uint16_t>(settings.transports_per_queue, 1),
                              .descriptors = {settings.descriptors, settings.descriptors},
                              .mtu = settings.mtu,
                              .gpu = settings.gpu};
  for (const std::string& text : settings.addresses) {
    const auto prefix = ethernet::parse_prefix(text);
    if (!prefix) return wrong(prefix.error());
    device.addresses.push_back(*prefix);
  }
  for (const std::string& text : settings.gateways) {
    const auto gateway = ethernet::parse_ip(text);
    if (!gateway) return wrong(gateway.error());
    device.gateways.push_back(*gateway);
  }
  return device;
}

/// PCI addresses look like "3b:00.0" or "0000:3b:00.0"; names of virtual devices have a '_'.
bool is_pci(const std::string& device) {
  return device.contains(':') && !device.contains('_');
}

}  // namespace

DpdkDevice::DpdkDevice(std::shared_ptr<dpdk::Device> device) : device_(std::move(device)) {}
DpdkDevice::~DpdkDevice() = default;

Result<std::shared_ptr<DpdkDevice>> DpdkDevice::open(const DpdkDeviceSettings& settings) {
  auto wanted = device_settings(settings);
  if (!wanted) return std::unexpected(wanted.error());
  if (!settings.gpu.empty() && !is_pci(settings.device)) {
    return fail(Errc::bad_config, "DPDK's device " + settings.device +
                                      " is no PCI device: it does not write to a GPU's memory by itself.");
  }
  constexpr std::uint32_t kJumbo = 9000;  // greatest MTU of a device that is not open yet
  const std::uint32_t mtu = std::min(settings.mtu != 0 ? settings.mtu : kJumbo, dpdk::kMtuMax);
  dpdk::EalSettings eal_settings{
      .huge_pages = huge_pages(settings.huge_pages),
      .memory_bytes = dpdk::memory_needed(wanted->descriptors, settings.queues,
                                          dpdk::AfPacket(settings.device).mtu_of_buffers(mtu), wanted->ports_per_queue),
      .one_file = dpdk::lends_buffers(settings.device),
      .file_prefix = settings.file_prefix,
      .more = settings.arguments};
  if (is_pci(settings.device)) eal_settings.pci_devices.push_back(settings.device);
  if (!settings.gpu.empty()) eal_settings.pci_devices.push_back(settings.gpu);
  auto eal = dpdk::Eal::start(eal_settings);
  if (!eal) return std::unexpected(eal.error());
  auto device = dpdk::Device::open(std::move(*eal), *wanted);
  if (!device) return std::unexpected(device.error());
  return std::shared_ptr<DpdkDevice>(new DpdkDevice(std::move(*device)));
}

std::string DpdkDevice::address() const {
  return ethernet::to_string(device_->settings().addresses.front().address);
}

std::vector<std::string> DpdkDevice::take_notes() const {
  return device_->take_notes();
}

DpdkDeviceStatistics DpdkDevice::statistics() const {
  dpdk::DeviceCounters driver = device_->counters();
  const ethernet::HostCounts host = device_->host().counts();
  const dpdk::Device::Rules rules = device_->rules();
  return {.received_packets = driver.received_packets,
          .received_bytes = driver.received_bytes,
          .sent_packets = driver.sent_packets,
          .sent_bytes = driver.sent_bytes,
          .receive_missed = driver.receive_missed,
          .receive_errors = driver.receive_errors,
          .receive_no_buffer = driver.receive_no_buffer,
          .send_errors = driver.send_errors,
          .others = std::move(driver.others),
          .arp_answered = host.arp_answered,
          .ndp_answered = host.ndp_answered,
          .echoes_answered = host.echoes_answered,
          .refusals_sent = host.refusals_sent,
          .answers_limited = host.answers_limited,
          .control_ignored = host.control_ignored,
          .address_conflicts = host.address_conflicts,
          .path_mtu_told = host.path_mtu_told,
          .neighbours = host.neighbours.entries,
          .neighbours_failed = host.neighbours.failed,
          .neighbours_moved = host.neighbours.moved,
          .neighbours_full = host.neighbours.refused_full,
          .buffers_in_use = device_->mbufs_in_use(),
          .rules_wanted = rules.wanted,
          .rules_in_place = rules.in_place,
          .link_up = device_->link_up(),
          .huge_pages = device_->eal().huge_pages()};
}

}  // namespace tributary::transport
