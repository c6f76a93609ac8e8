// Checks the processors' governor, and the NUMA nodes of processes and devices on hosts with several nodes.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/kernel_text.h"

namespace tributary::cli::doctor {
namespace {

constexpr const char* kProcessors = "/sys/devices/system/cpu/";
constexpr const char* kNodes = "/sys/devices/system/node/";

Finding governor(const SystemTree& system) {
  Finding f{.part = "processor", .what = "governor"};
  std::map<std::string, int> governors;
  for (const std::string& name : system.list(kProcessors)) {
    if (const auto one = system.read(kProcessors + name + "/cpufreq/scaling_governor")) ++governors[*one];
  }
  if (governors.empty()) {
    f.level = Level::unknown;
    f.found = "the kernel does not set the frequency: a virtual machine, or the firmware does";
    f.mend = "set the power profile of the virtual machine's host, or of the firmware, to performance";
    return f;
  }
  for (const auto& [name, count] : governors)
    f.found += fmt::format("{}{} on {}", f.found.empty() ? "" : ", ", name, count);
  if (governors.size() == 1 && governors.contains("performance")) return f;
  f.level = Level::warning;
  f.why =
      "a core that has slowed down takes longer for each message; small operations feel it on every level of a tree";
  f.mend = "cpupower frequency-set -g performance";
  return f;
}

using Numbers = std::set<std::int64_t>;

std::string text_of(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text.empty() ? "none" : text;
}

Numbers nodes_of_host(const SystemTree& system) {
  Numbers nodes;
  for (const std::string& name : system.list(kNodes)) {
    if (name.starts_with("node") && name.size() > 4) nodes.insert(static_cast<std::int64_t>(first_number(name)));
  }
  return nodes;
}

/// Returns the nodes on whose processors this process may run.
Numbers nodes_of_process(const SystemTree& system, const Numbers& nodes) {
  const std::string status = system.read("/proc/self/status").value_or("");
  const auto allowed = numbers_in_list(line_after(status, "Cpus_allowed_list:").value_or(""));
  Numbers own;
  for (const auto node : nodes) {
    const auto here = numbers_in_list(system.read(kNodes + fmt::format("node{}/cpulist", node)).value_or(""));
    if (std::ranges::any_of(here, [&](std::uint32_t cpu) { return std::ranges::binary_search(allowed, cpu); }))
      own.insert(node);
  }
  return own;
}

/// Returns the NUMA nodes of active RDMA devices, and counts in `untold` the devices whose node the firmware does not
/// tell.
Numbers nodes_of_devices(const SystemTree& system, int& untold) {
  Numbers nodes;
  for (const transport::RdmaPort& port : transport::active_ports(system)) {
    const std::string folder = transport::folder_of_rdma_device(system, port.device);
    if (folder.empty()) continue;
    if (const auto node = transport::numa_node_of(system, folder)) {
      nodes.insert(*node);
    } else {
      ++untold;
    }
  }
  return nodes;
}

Finding placement(const SystemTree& system, const Numbers& nodes) {
  Finding f{.part = "processor", .what = "NUMA placement"};
  int untold = 0;
  const Numbers devices = nodes_of_devices(system, untold);
  const Numbers own = nodes_of_process(system, nodes);
  f.found = fmt::format("nodes {}; this process may run on {}; RDMA devices are on {}", text_of(nodes), text_of(own),
                        text_of(devices));
  if (untold > 0) {
    f.level = Level::warning;
    f.found += fmt::format("; {} of them with unknown node", untold);
    f.why = "ranks cannot choose the device beside their memory";
    f.mend = "turn on NUMA (or off 'node interleaving') in the firmware's menu";
    return f;
  }
  const bool beside = devices.empty() || own.empty() ||
                      std::ranges::any_of(own, [&](std::int64_t node) { return devices.contains(node); });
  if (beside) return f;
  f.level = Level::warning;
  f.why = "every byte crosses the link between the processors";
  f.mend = fmt::format("numactl --cpunodebind={} --membind={} COMMAND", *devices.begin(), *devices.begin());
  return f;
}

Finding balancing(const SystemTree& system) {
  const bool on = system.number("/proc/sys/kernel/numa_balancing").value_or(0) != 0;
  Finding f{.part = "processor", .what = "NUMA balancing", .found = on ? "on" : "off"};
  if (!on) return f;
  f.level = Level::warning;
  f.why = "the kernel unmaps pages to see which threads use them: an aggregator's thread stops at each";
  f.mend = "sysctl kernel.numa_balancing=0";
  return f;
}

}  // namespace

Findings check_processor(const SystemTree& system) {
  Findings findings{governor(system)};
  const Numbers nodes = nodes_of_host(system);
  if (nodes.size() < 2) return findings;
  findings.push_back(placement(system, nodes));
  findings.push_back(balancing(system));
  return findings;
}

}  // namespace tributary::cli::doctor
