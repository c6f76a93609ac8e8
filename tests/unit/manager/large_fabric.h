#pragma once
// A cluster of any number of racks and pods, and a lower bound of the time of every plan on it.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/manager/fabrics.h"

namespace tributary::manager {

/// Racks of 32 hosts, pods of 64 racks, with an aggregator host in each rack, `per_pod` aggregator hosts in each pod
/// and `at_core` above the pods.
struct ClusterShape {
  int hosts = 100'000;
  int per_pod = 16;
  int at_core = 187;
  std::uint64_t rack_uplink_gbit = 3200;
  std::uint64_t host_gbit = 100;
  std::uint64_t aggregator_gbit = 400;

  static constexpr int kHostsPerRack = 32;
  static constexpr int kRacksPerPod = 64;
  [[nodiscard]] int racks() const { return (hosts + kHostsPerRack - 1) / kHostsPerRack; }
  [[nodiscard]] int pods() const { return (racks() + kRacksPerPod - 1) / kRacksPerPod; }
  [[nodiscard]] int aggregators() const { return racks() + pods() * per_pod + at_core; }
};

inline std::string cluster_yaml(const ClusterShape& shape) {
  const auto rate = [](std::uint64_t gbit) { return std::to_string(gbit) + "Gbit/s"; };
  const auto range = [](const std::string& name, int low, int high) {
    return "\"" + name + "[" + std::to_string(low) + "-" + std::to_string(high) + "]\"";
  };
  std::string places = "fabric: nested\nplaces:\n  - {name: core}\n", hosts = "hosts:\n";
  const auto host = [&](const std::string& names, const std::string& in, std::uint64_t gbit) {
    hosts += "  - {name: " + names + ", in: " + in + ", rate: " + rate(gbit) + "}\n";
  };
  for (int pod = 0; pod < shape.pods(); ++pod) {
    const std::string name = "pod-" + std::to_string(pod);
    const int first = pod * ClusterShape::kRacksPerPod;
    const int last = std::min(first + ClusterShape::kRacksPerPod, shape.racks()) - 1;
    const auto uplink = shape.rack_uplink_gbit * static_cast<std::uint64_t>(last - first + 1);
    places += "  - {name: " + name + ", in: core, uplink: " + rate(uplink) + "}\n";
    places += "  - {name: " + range("rack-", first, last) + ", in: " + name +
              ", uplink: " + rate(shape.rack_uplink_gbit) + "}\n";
    if (shape.per_pod > 0) host(range("agg-" + name + "-", 0, shape.per_pod - 1), name, shape.aggregator_gbit);
  }
  for (int rack = 0; rack < shape.racks(); ++rack) {
    const std::string name = "rack-" + std::to_string(rack);
    const int first = rack * ClusterShape::kHostsPerRack;
    host(range("node-", first, std::min(first + ClusterShape::kHostsPerRack, shape.hosts) - 1), name, shape.host_gbit);
    host("agg-" + name, name, shape.aggregator_gbit);
  }
  if (shape.at_core > 0) host(range("agg-core-", 0, shape.at_core - 1), "core", shape.aggregator_gbit);
  return places + hosts;
}

inline std::vector<PlanAggregator> cluster_aggregators(const ClusterShape& shape) {
  std::vector<PlanAggregator> list;
  const auto add = [&](const std::string& host) { list.push_back(aggregator_on(host, 64ULL << 30)); };
  for (int rack = 0; rack < shape.racks(); ++rack) add("agg-rack-" + std::to_string(rack));
  for (int pod = 0; pod < shape.pods(); ++pod) {
    for (int a = 0; a < shape.per_pod; ++a) add("agg-pod-" + std::to_string(pod) + "-" + std::to_string(a));
  }
  for (int a = 0; a < shape.at_core; ++a) add("agg-core-" + std::to_string(a));
  return list;
}

/// Returns a lower bound of the time of an operation of `bytes`, for every plan for one rank on each of these hosts.
/// Each rank sends all bytes by its own link. Each byte goes through an aggregator of the cluster. Each byte from a
/// rack that does not hold all members goes by the rack's uplink or through the rack's own aggregator. A tree has as
/// few levels as its width allows.
inline double seconds_bound(const ClusterShape& shape, const std::vector<std::string>& hosts, std::uint64_t bytes) {
  constexpr double kGiga = 1e9, kLevelSeconds = 20e-6;
  const auto ranks = static_cast<double>(hosts.size());
  const auto aggregator = static_cast<double>(shape.aggregator_gbit);
  double seconds_per_gbit =
      std::max(1 / static_cast<double>(shape.host_gbit), ranks / aggregator / shape.aggregators());
  std::map<int, double> members_of_rack;
  for (const std::string& host : hosts) ++members_of_rack[std::stoi(host.substr(5)) / ClusterShape::kHostsPerRack];
  for (const auto& [rack, members] : members_of_rack) {
    if (members_of_rack.size() == 1) break;
    seconds_per_gbit = std::max(seconds_per_gbit, members / (aggregator + static_cast<double>(shape.rack_uplink_gbit)));
  }
  double levels = 0;
  for (std::size_t width = 1; width < hosts.size(); width *= kChildrenMax) ++levels;
  return static_cast<double>(bytes) * 8 / kGiga * seconds_per_gbit + levels * kLevelSeconds;
}

}  // namespace tributary::manager
