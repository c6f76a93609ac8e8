// Checks the way between GPUs and RDMA devices over the PCI bus.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/pci.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli::doctor {
namespace {

constexpr std::uint64_t kSmallBar = 256U << 20;

struct Device {
  std::string name;  // name such as "GPU 0000:1b:00.0" or "mlx5_0"
  std::string id;    // id such as "0000:1b:00.0"
  std::string folder;
};

std::vector<Device> gpu_devices(const SystemTree& system) {
  std::vector<Device> devices;
  for (const std::string& id : gpus_of(system))
    devices.push_back({"GPU " + id, id, transport::folder_of_function(system, id)});
  return devices;
}

/// Returns the RDMA devices on the PCI bus that have an active port.
std::vector<Device> rdma_devices(const SystemTree& system) {
  std::vector<Device> devices;
  for (const transport::RdmaPort& port : transport::active_ports(system)) {
    const std::string folder = transport::folder_of_rdma_device(system, port.device);
    if (folder.empty() || (!devices.empty() && devices.back().name == port.device)) continue;
    devices.push_back({port.device, folder.substr(folder.rfind('/') + 1), folder});
  }
  return devices;
}

std::optional<Finding> link_finding(const SystemTree& system, const Device& device, bool gpu) {
  const auto link = link_of(system, device.folder);
  if (!link) return std::nullopt;
  Finding f{.part = "pci", .what = device.name + " link", .found = link->text()};
  if (link->part() >= 1) return f;
  const bool sleeps = gpu && link->width == link->width_max;  // idle GPUs lower their speed, but never their width
  f.level = link->part() > 0.5 || sleeps ? Level::warning : Level::bad;
  f.why = fmt::format("it carries {:.0f} % of the rate that card and slot allow", link->part() * 100);
  f.mend = sleeps ? "look again while the GPU works: an idle one lowers its link's speed"
                  : fmt::format(
                        "seat the card and its riser again, check the slot in the firmware's menu, then: "
                        "lspci -vv -s {} | grep LnkSta",
                        device.id);
  return f;
}

std::optional<Finding> bar_finding(const SystemTree& system, const Device& gpu, bool rdma) {
  const auto bar = largest_bar(system, gpu.folder);
  if (!bar) return std::nullopt;
  Finding f{.part = "pci", .what = gpu.name + " BAR", .found = bytes_text(bar->bytes)};
  if (bar->bytes_max > bar->bytes) f.found += ", the card offers " + bytes_text(bar->bytes_max);
  if (bar->bytes > kSmallBar) return f;
  f.level = rdma ? Level::bad : Level::warning;
  f.why =
      "other devices reach no more than this part of the GPU's memory at once: tensors beyond it go through host "
      "memory, at half the rate or less";
  f.mend = bar->bytes_max > 0 && bar->bytes_max <= kSmallBar
               ? "this card has no larger BAR: set TRIBUTARY_GPUDIRECT=off for the job"
               : "turn on 'Above 4G Decoding' and 'Resizable BAR' in the firmware's menu";
  return f;
}

const Device* nearest_to(const SystemTree& system, const Device& gpu, const std::vector<Device>& devices) {
  const Device* nearest = nullptr;
  PciDistance best = PciDistance::unknown;
  for (const Device& one : devices) {
    const PciDistance d = pci_distance(system, gpu.folder, one.folder);
    if (nearest != nullptr && d >= best) continue;
    nearest = &one;
    best = d;
  }
  return nearest;
}

Finding distance_finding(const SystemTree& system, const Device& gpu, const Device& nearest) {
  const PciDistance d = pci_distance(system, gpu.folder, nearest.folder);
  Finding f{.part = "pci", .what = gpu.name + " to RDMA", .found = fmt::format("{}: {}", nearest.name, to_string(d))};
  if (d <= PciDistance::pxb) return f;
  f.level = d == PciDistance::unknown ? Level::unknown : Level::warning;
  if (d == PciDistance::unknown) {
    f.found += ", because this machine shows no PCI tree";
    f.mend = "nvidia-smi topo -m";
    return f;
  }
  f.why = d == PciDistance::sys
              ? "GPUDirect RDMA crosses the link between the processors, and shares it with memory "
                "traffic: often a fifth of the device's rate"
              : "GPUDirect RDMA passes the processor's root complex, which moves less between devices "
                "than a PCIe switch";
  f.mend = fmt::format("move {} to a slot below the GPU's PCIe switch, where there is one; see nvidia-smi topo -m",
                       nearest.name);
  return f;
}

std::optional<Finding> acs_finding(const SystemTree& system, const Device& gpu, const Device& nearest) {
  if (pci_distance(system, gpu.folder, nearest.folder) > PciDistance::phb) return std::nullopt;
  std::string redirects, commands;
  bool unreadable = false;
  for (const std::string& id : bridges_between(gpu.folder, nearest.folder)) {
    const Acs acs = acs_of(system, id);
    unreadable = unreadable || acs == Acs::unreadable;
    if (acs != Acs::redirects) continue;
    redirects += (redirects.empty() ? "" : ", ") + id;
    commands += (commands.empty() ? "" : "; ") + fmt::format("setpci -s {} ECAP_ACS+6.w=0000", id);
  }
  Finding f{.part = "pci", .what = fmt::format("ACS, {} to {}", gpu.name, nearest.name), .found = "off"};
  if (!redirects.empty()) {
    f.level = Level::bad;
    f.found = "redirects at " + redirects;
    f.why =
        "GPUDirect RDMA goes up to the root complex and back instead of straight through the switch: often less "
        "than half of the rate";
    f.mend = commands +
             " (until the next boot; for good: ACS off in the firmware's menu. Leave it on for virtual "
             "machines)";
  } else if (unreadable) {
    f.level = Level::unknown;
    f.found = "only root may read the bridges' configuration";
    f.mend = "sudo tributary doctor";
  }
  return f;
}

/// Returns the finding about the IOMMU; nullopt: no device moves data by itself, or the kernel has no IOMMU.
std::optional<Finding> iommu_finding(const SystemTree& system, const std::vector<Device>& devices) {
  if (devices.empty()) return std::nullopt;
  Finding f{.part = "pci", .what = "IOMMU", .found = "off"};
  if (system.list("/sys/class/iommu").empty()) return f;
  std::set<std::string> types;
  for (const Device& one : devices) {
    if (const auto type = system.read("/sys/bus/pci/devices/" + one.id + "/iommu_group/type")) types.insert(*type);
  }
  const bool translates = std::ranges::any_of(types, [](const std::string& type) { return type.starts_with("DMA"); });
  const bool passes = !types.empty() ? !translates : system.read("/proc/cmdline").value_or("").contains("iommu=pt");
  f.found = passes ? "on, passing through" : "on, translating";
  if (passes) return f;
  f.level = Level::warning;
  f.why = "each transfer of a GPU or RDMA device needs a translation, and devices may not reach each other directly";
  f.mend = "boot with iommu=pt (GRUB_CMDLINE_LINUX in /etc/default/grub, then update-grub)";
  return f;
}

}  // namespace

Findings check_pci(const SystemTree& system) {
  Findings findings;
  const auto add = [&](std::optional<Finding> finding) {
    if (finding) findings.push_back(std::move(*finding));
  };
  const std::vector<Device> gpus = gpu_devices(system);
  std::vector<Device> devices = rdma_devices(system);
  for (const Device& device : devices) add(link_finding(system, device, false));
  for (const Device& gpu : gpus) {
    add(link_finding(system, gpu, true));
    add(bar_finding(system, gpu, !devices.empty()));
    const Device* const nearest = nearest_to(system, gpu, devices);
    if (nearest == nullptr) continue;
    add(distance_finding(system, gpu, *nearest));
    add(acs_finding(system, gpu, *nearest));
  }
  devices.insert(devices.end(), gpus.begin(), gpus.end());
  add(iommu_finding(system, devices));
  return findings;
}

}  // namespace tributary::cli::doctor
