#include "tributary/transport/rails.h"

#include <sched.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

/// Reads the whole number at the beginning of the text. Returns 0 if the text begins with no number.
template <class Number>
Number number_in(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) parts.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return parts;
}

std::string state_of(const SystemTree& system, const std::string& port) {
  const std::string text = system.read(port + "/state").value_or("");  // "4: ACTIVE"
  const auto colon = text.find(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

bool is_named(const Rail& rail, const std::string& name) {
  return name == rail.device || name == rail.device + ":" + std::to_string(rail.port);
}

Result<std::vector<Rail>> named_rails(const std::vector<Rail>& all, const std::vector<std::string>& names) {
  std::vector<Rail> chosen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find_if(all, [&](const Rail& rail) { return is_named(rail, name); });
    if (found == all.end()) {
      std::string list;
      for (const Rail& rail : all)
        list += (list.empty() ? "" : ", ") + rail.device + ":" + std::to_string(rail.port) + " at " + rail.address;
      return fail(Errc::bad_config, "'" + name +
                                        "' is no RDMA device of this host with an active port that has an IP " +
                                        "address; it has " + (list.empty() ? "none" : list));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

Distance distance_to(const SystemTree& system, const Rail& rail, const RailWish& wish) {
  const std::string theirs = folder_of_rdma_device(system, rail.device);
  const auto node = numa_node_of(system, theirs);
  if (!wish.gpu.empty()) {
    const std::string ours = folder_of_function(system, wish.gpu);
    return distance(ours, numa_node_of(system, ours), theirs, node);
  }
  if (!wish.node || !node) return Distance::unknown;
  return *wish.node == *node ? Distance::same_node : Distance::other_node;
}

}  // namespace

std::vector<RdmaPort> active_ports(const SystemTree& system) {
  std::vector<RdmaPort> ports;
  for (const std::string& device : system.list("/sys/class/infiniband")) {
    for (const std::string& number : system.list("/sys/class/infiniband/" + device + "/ports")) {
      const std::string folder = "/sys/class/infiniband/" + device + "/ports/" + number;
      if (state_of(system, folder) != "ACTIVE") continue;
      ports.push_back({device, number_in<int>(number), system.read(folder + "/link_layer") == "Ethernet"});
    }
  }
  return ports;
}

Distance distance(const std::string& one, std::optional<std::int64_t> node_of_one, const std::string& other,
                  std::optional<std::int64_t> node_of_other) {
  const auto a = parts_of(one), b = parts_of(other);
  if (a.empty() || b.empty()) return Distance::unknown;
  std::size_t shared = 0;
  while (shared < a.size() && shared < b.size() && a[shared] == b[shared]) ++shared;
  // sys, devices, pci0000:3a (the root), 0000:3a:00.0 (its port), 0000:3b:00.0 (a switch), ...
  constexpr std::size_t kRoot = 3, kSwitch = 4;
  if (shared > kSwitch) return Distance::same_switch;
  if (shared >= kRoot) return Distance::same_root;
  if (!node_of_one || !node_of_other) return a[0] == b[0] ? Distance::same_node : Distance::unknown;
  return *node_of_one == *node_of_other ? Distance::same_node : Distance::other_node;
}

const char* to_string(Distance distance) noexcept {
  switch (distance) {
    case Distance::same_switch:
      return "below one switch";
    case Distance::same_root:
      return "below one root complex";
    case Distance::same_node:
      return "in one NUMA node";
    case Distance::other_node:
      return "in another NUMA node";
    case Distance::unknown:
      return "distance unknown";
  }
  return "?";
}

std::optional<std::int64_t> numa_node_of(const SystemTree& system, const std::string& folder) {
  const auto node = system.number(folder + "/numa_node");
  return node && *node >= 0 ? node : std::nullopt;  // -1: the system has one node only
}

std::string folder_of_function(const SystemTree& system, const std::string& bus_id) {
  std::string id = bus_id;
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return system.resolved("/sys/bus/pci/devices/" + id);
}

std::string folder_of_rdma_device(const SystemTree& system, const std::string& device) {
  return system.resolved("/sys/class/infiniband/" + device + "/device");
}

Result<std::vector<Rail>> choose_rails(const SystemTree& system, const std::vector<Rail>& all, const RailWish& wish) {
  if (!wish.names.empty()) return named_rails(all, wish.names);
  if (all.empty()) return fail(Errc::unsupported, "no RDMA port of this host has an IP address that can be found");
  std::vector<Distance> distances;
  for (const Rail& rail : all) distances.push_back(distance_to(system, rail, wish));
  const Distance best = *std::ranges::min_element(distances);
  std::vector<Rail> nearest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (distances[i] == best) nearest.push_back(all[i]);
  }
  TRIBUTARY_ASSERT(!nearest.empty(), "none of {} rails is the nearest", all.size());
  std::ranges::rotate(nearest, nearest.begin() + static_cast<std::ptrdiff_t>(wish.turn % nearest.size()));
  return nearest;
}

std::vector<std::string> names_of_rails(std::string_view list) {
  std::vector<std::string> names;
  if (list == "auto") return names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

std::optional<std::int64_t> node_of_this_thread(const SystemTree& system) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::nullopt;
  const auto nodes = system.list("/sys/devices/system/node");
  std::optional<std::int64_t> only;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &set)) continue;
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    const auto node = std::ranges::find_if(
        nodes, [&](const std::string& name) { return name.starts_with("node") && system.exists(folder + name); });
    if (node == nodes.end()) return std::nullopt;
    const auto number = number_in<std::int64_t>(std::string_view(*node).substr(4));
    if (only.value_or(number) != number) return std::nullopt;
    only = number;
  }
  return only;
}

}  // namespace tributary::transport
