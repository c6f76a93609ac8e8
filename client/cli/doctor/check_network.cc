// Checks interfaces and RDMA devices.
#include <algorithm>

#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {
namespace {

constexpr std::int64_t kJumboFrom = 8000;        // bytes; jumbo frames are a little below 9000
constexpr std::int64_t kFastFromMbits = 10'000;  // from this rate on, small frames cost noticeable processor time

std::string after_colon(const std::string& text) {
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

Finding interface(const SystemTree& system, const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  Finding f{.part = "network", .what = name};
  const std::string state = system.read(folder + "/operstate").value_or("unknown");
  const auto mtu = system.number(folder + "/mtu").value_or(0);
  const auto speed = system.number(folder + "/speed").value_or(-1);
  f.says = state + ", MTU " + std::to_string(mtu);
  if (speed > 0) f.says += ", " + std::to_string(speed) + " Mbit/s";
  if (state == "down") {
    f.level = Level::note;
  } else if (speed >= kFastFromMbits && mtu < kJumboFrom) {
    f.level = Level::note;
    f.advice = "ip link set " + name + " mtu 9000, if every switch and host on the way has this MTU, too";
  }
  return f;
}

/// The kinds of the addresses that a port has, by number: "RoCE v2: 2, IB/RoCE v1: 2".
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
  f.says = state + ", " + (layer == "Ethernet" ? "RoCE or iWARP" : layer) + ", " +
           system.read(folder + "/rate").value_or("rate unknown") +
           ", GIDs: " + (addresses.text.empty() ? "none" : addresses.text);
  if (state != "ACTIVE") {
    f.level = Level::note;
    f.advice = layer == "InfiniBand" ? "check the cable and the switch, and that a subnet manager runs"
                                     : "check the cable and the switch; set its interface up with ip link";
  } else if (layer == "Ethernet" && !addresses.roce_v2) {
    f.level = Level::mend;
    f.advice = "give its interface an IP address: RoCE version 2 makes its GIDs from IP addresses";
  }
  return f;
}

}  // namespace

Findings check_network(const SystemTree& system) {
  Findings findings;
  for (const std::string& name : system.list("/sys/class/net")) {
    if (system.exists("/sys/class/net/" + name + "/device")) findings.push_back(interface(system, name));
  }
  if (findings.empty()) {
    findings.push_back({.part = "network",
                        .what = "interfaces",
                        .level = Level::note,
                        .says = "none belongs to a device: this is a container, or has only virtual interfaces",
                        .advice = {}});
  }
  findings.push_back({.part = "network", .what = "tcp", .says = "always available", .advice = {}});
  return findings;
}

Findings check_rdma(const SystemTree& system, const std::string& wanted) {
  const bool asked_for = wanted.contains("verbs");
  const auto devices = system.list("/sys/class/infiniband");
  if (devices.empty()) {
    return {{.part = "rdma",
             .what = "devices",
             .level = asked_for ? Level::mend : Level::note,
             .says = "none: the transport verbs cannot be used",
             .advice = asked_for
                           ? "load the device's driver (package rdma-core); without a device, make one on Ethernet "
                             "(modprobe rdma_rxe, then rdma link add), or remove verbs from TRIBUTARY_TRANSPORT"
                           : ""}};
  }
  Findings findings;
  for (const std::string& device : devices) {
    for (const std::string& number : system.list("/sys/class/infiniband/" + device + "/ports"))
      findings.push_back(port(system, device, number));
  }
  if (active_ports(system).empty()) {
    findings.push_back({.part = "rdma",
                        .what = "ports",
                        .level = Level::mend,
                        .says = "no port of any device is active",
                        .advice = "check the ports listed above; rdma link shows them, too"});
  }
  const auto module = [&](const char* what, const char* path, const char* name) {
    const bool there = system.exists(path);
    findings.push_back({.part = "rdma",
                        .what = what,
                        .level = there ? Level::good : Level::mend,
                        .says = there ? "there" : "missing",
                        .advice = there ? "" : std::string("modprobe ") + name});
  };
  module("verbs for programs", "/sys/class/infiniband_verbs/abi_version", "ib_uverbs");
  module("connection manager", "/sys/class/misc/rdma_cm", "rdma_ucm");
  return findings;
}

}  // namespace tributary::cli::doctor
