#include "client/cli/topology/places.h"

#include <algorithm>
#include <numeric>

namespace tributary::cli {
namespace {

using manager::Link;
using manager::Topology;

constexpr std::uint32_t kNone = UINT32_MAX;

/// Builds the places: joins switches, level by level.
class PlaceBuilder {
 public:
  explicit PlaceBuilder(const Topology& topology)
      : topology_(topology), leader_(topology.switches.size()), own_(topology.switches.size(), kNone) {
    std::iota(leader_.begin(), leader_.end(), 0U);
  }

  std::vector<FabricPlace> build() {
    for (std::uint32_t level = 1; level <= manager::kSwitchLevelsMax; ++level) {
      for (const Link& link : topology_.links) {
        if (link.from_kind == Link::End::fabric_switch && level_of(link) == level) {
          leader_[find(link.from)] = find(link.to);
        }
      }
      add_places(level);
    }
    for (const Link& link : topology_.links) count(link);
    for (FabricPlace& place : places_) {  // inner places come before outer places
      for (const std::uint32_t inner : place.inside) {
        place.below_bits_per_second += places_[inner].below_bits_per_second;
      }
    }
    return std::move(places_);
  }

 private:
  /// Returns the level of a link: within a group of a dragonfly it is 2, between groups 3.
  [[nodiscard]] std::uint32_t level_of(const Link& link) const {
    const auto &a = topology_.switches[link.from], &b = topology_.switches[link.to];
    if (a.level != b.level) return std::max(a.level, b.level);
    return a.group == b.group ? 2 : 3;
  }

  [[nodiscard]] std::uint32_t find(std::uint32_t x) {
    while (leader_[x] != x) x = leader_[x] = leader_[leader_[x]];
    return x;
  }

  /// Makes a place of every component that contains a switch of this level, or that joins several places.
  void add_places(std::uint32_t level) {
    std::vector<std::uint32_t> parts(topology_.switches.size(), 0);  // by leader: a component with 2 or more is a place
    for (const auto& [member, place] : outermost_) ++parts[find(member)];
    for (std::uint32_t i = 0; i < own_.size(); ++i) {
      if (topology_.switches[i].level == level) parts[find(i)] += 2;
    }
    std::vector<std::uint32_t> made(topology_.switches.size(), kNone);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> still;
    const auto make = [&](std::uint32_t member) {
      std::uint32_t& place = made[find(member)];
      if (place == kNone) {
        place = static_cast<std::uint32_t>(places_.size());
        places_.push_back({.level = level, .switches = {}, .inside = {}, .hosts = {}});
        outer_.push_back(kNone);
        still.emplace_back(member, place);
      }
      return place;
    };
    for (std::uint32_t i = 0; i < own_.size(); ++i) {
      if (topology_.switches[i].level != level) continue;
      own_[i] = make(i);
      places_[own_[i]].switches.push_back(i);
    }
    for (const auto& [member, inner] : outermost_) {
      if (parts[find(member)] < 2) {
        still.emplace_back(member, inner);
        continue;
      }
      const std::uint32_t place = make(member);
      places_[place].inside.push_back(inner);
      places_[inner].outermost = false;
      outer_[inner] = place;
    }
    outermost_ = std::move(still);
  }

  void count(const Link& link) {
    if (link.from_kind == Link::End::host) {
      FabricPlace& home = places_[own_[link.to]];
      home.hosts.push_back(&link);
      home.below_bits_per_second += link.rate_bits_per_second;
      return;
    }
    // Add the link to every place that contains exactly one of its ends: the link leads out of this place.
    for (const auto& [end, other] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
      for (std::uint32_t place = own_[end]; place != kNone && !holds(place, other); place = outer_[place]) {
        ++places_[place].uplinks;
        places_[place].uplink_bits_per_second += link.rate_bits_per_second;
      }
    }
  }

  [[nodiscard]] bool holds(std::uint32_t place, std::uint32_t which) const {
    std::uint32_t outer = own_[which];
    while (outer != kNone && outer != place) outer = outer_[outer];
    return outer == place;
  }

  const Topology& topology_;
  std::vector<std::uint32_t> leader_;
  std::vector<std::uint32_t> own_;                                  // by switch: the innermost place
  std::vector<std::uint32_t> outer_;                                // by place: the place around it
  std::vector<std::pair<std::uint32_t, std::uint32_t>> outermost_;  // a switch inside, and the place
  std::vector<FabricPlace> places_;
};

}  // namespace

std::vector<FabricPlace> places_of(const Topology& topology) {
  return PlaceBuilder(topology).build();
}

}  // namespace tributary::cli
