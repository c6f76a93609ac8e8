// Checks RDMA devices, their ports, and the kernel's interfaces for programs.
#include <algorithm>

#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {
namespace {

std::string after_colon(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

/// Returns the numbers of a port's addresses by kind, as a text such as "2 RoCE v2, 2 IB/RoCE v1".
struct Gids {
  std::string text;
  bool roce_v2 = false;
};
Gids gids(const SystemTree& system, const std::string& port) {
  std::vector<std::pair<std::string, int>> kinds;
  for (const std::string& index : system.list(port + "/gids")) {
    const auto gid = system.read(port + "/gids/" + index);
    const auto kind = system.read(port + "/gid_attrs/types/" + index);
    if (!gid || !kind || kind->empty() || gid->find_first_not_of("0:") == std::string::npos) continue;
    const auto known = std::ranges::find(kinds, *kind, &std::pair<std::string, int>::first);
    if (known == kinds.end()) {
      kinds.emplace_back(*kind, 1);
    } else {
      ++known->second;
    }
  }
  Gids all;
  for (const auto& [kind, count] : kinds) {
    all.text += (all.text.empty() ? "" : ", ") + std::to_string(count) + " " + kind;
    all.roce_v2 = all.roce_v2 || kind == "RoCE v2";
  }
  return all;
}

Finding port(const SystemTree& system, const std::string& device, const std::string& number) {
  const std::string folder = "/sys/class/infiniband/" + device + "/ports/" + number;
  Finding f{.part = "rdma", .what = device + " port " + number};
  const std::string state = after_colon(system.read(folder + "/state").value_or("unknown"));
  const std::string layer = system.read(folder + "/link_layer").value_or("unknown");
  const Gids addresses = gids(system, folder);
  f.found = state + ", " + (layer == "Ethernet" ? "RoCE or iWARP" : layer) + ", " +
            system.read(folder + "/rate").value_or("rate unknown") +
            ", GIDs: " + (addresses.text.empty() ? "none" : addresses.text);
  if (state != "ACTIVE") {
    f.level = Level::warning;
    f.why = "no job can use it";
    f.mend = layer == "InfiniBand" ? "check the cable and the switch, and that a subnet manager runs: ibstat " + device
                                   : "check the cable and the switch; set its interface up with ip link";
  } else if (layer == "Ethernet" && !addresses.roce_v2) {
    f.level = Level::bad;
    f.why = "RoCE version 2 makes its GIDs from IP addresses: without one, no connection over this port opens";
    f.mend = "give its interface an IP address: ip addr add ADDRESS/BITS dev INTERFACE";
  }
  return f;
}

Finding without_devices(bool asked_for) {
  Finding f{.part = "rdma", .what = "devices", .found = "none: the transport verbs cannot be used"};
  if (!asked_for) return f;
  f.level = Level::bad;
  f.why = "TRIBUTARY_TRANSPORT asks for verbs";
  f.mend =
      "load the device's driver (package rdma-core); without a device, make one on Ethernet (modprobe rdma_rxe, "
      "then rdma link add), or remove verbs from TRIBUTARY_TRANSPORT";
  return f;
}

Finding module(const SystemTree& system, const char* what, const char* path, const char* name) {
  Finding f{.part = "rdma", .what = what, .found = "there"};
  if (system.exists(path)) return f;
  f.level = Level::bad;
  f.found = "missing";
  f.why = "no program can use the RDMA devices without it";
  f.mend = std::string("modprobe ") + name;
  return f;
}

}  // namespace

Findings check_rdma(const SystemTree& system, const std::string& wanted) {
  const auto devices = system.list("/sys/class/infiniband");
  if (devices.empty()) return {without_devices(wanted.contains("verbs"))};
  Findings findings;
  for (const std::string& device : devices) {
    for (const std::string& number : system.list("/sys/class/infiniband/" + device + "/ports"))
      findings.push_back(port(system, device, number));
  }
  if (transport::active_ports(system).empty()) {
    findings.push_back({.part = "rdma",
                        .what = "ports",
                        .level = Level::bad,
                        .found = "no port of any device is active",
                        .why = "ranks fall back to TCP",
                        .mend = "check the ports listed above; rdma link shows them, too"});
  }
  findings.push_back(module(system, "verbs for programs", "/sys/class/infiniband_verbs/abi_version", "ib_uverbs"));
  findings.push_back(module(system, "connection manager", "/sys/class/misc/rdma_cm", "rdma_ucm"));
  return findings;
}

}  // namespace tributary::cli::doctor
