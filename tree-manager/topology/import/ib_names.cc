#include "tree-manager/topology/import/ib_names.h"

#include <algorithm>
#include <array>

#include "service-kit/units.h"

namespace tributary::manager {
namespace {

struct Speed {
  std::string_view name;
  std::uint64_t lane_bits_per_second;
};

constexpr std::array kSpeeds = {
    Speed{"SDR", 2'000'000'000},    Speed{"DDR", 4'000'000'000},   Speed{"QDR", 8'000'000'000},
    Speed{"FDR10", 10'000'000'000}, Speed{"FDR", 13'640'000'000},  Speed{"EDR", 25'000'000'000},
    Speed{"HDR", 50'000'000'000},   Speed{"NDR", 100'000'000'000}, Speed{"XDR", 200'000'000'000},
};
constexpr std::array kWidths = {1U, 2U, 4U, 8U, 12U};
/// Words in descriptions that come from the makers of chips, not from the owners of hosts and switches.
constexpr std::array<std::string_view, 6> kChipWords = {"Mellanox",    "ConnectX", "InfiniScale",
                                                        "Infiniscale", "SwitchX",  "Quantum"};

bool tells_of_chip(std::string_view description) {
  return std::ranges::any_of(kChipWords, [&](std::string_view word) { return description.contains(word); });
}

}  // namespace

std::uint64_t ib_rate(std::string_view width, std::string_view speed) {
  if (!width.ends_with('x')) return 0;
  const auto lanes = service::parse_number<std::uint32_t>(width.substr(0, width.size() - 1));
  if (!lanes || std::ranges::find(kWidths, *lanes) == kWidths.end()) return 0;
  const auto* found = std::ranges::find(kSpeeds, speed, &Speed::name);
  return found == kSpeeds.end() ? 0 : *lanes * found->lane_bits_per_second;
}

std::uint64_t ib_rate(std::string_view text) {
  const std::size_t cross = text.find('x');
  if (cross == std::string_view::npos) return 0;
  return ib_rate(text.substr(0, cross + 1), text.substr(cross + 1));
}

std::string_view host_in_description(std::string_view description) {
  const std::string_view host = description.substr(0, description.find(' '));
  return tells_of_chip(description) || host == "localhost" ? std::string_view() : host;
}

std::string_view adapter_in_description(std::string_view description) {
  const std::size_t space = description.find(' ');
  if (space == std::string_view::npos || host_in_description(description).empty()) return {};
  description.remove_prefix(space + 1);
  return description.substr(0, description.find(' '));
}

bool is_aggregation_node(std::string_view description) {
  return description.contains("Aggregation Node");
}

std::string switch_in_description(std::string_view description) {
  constexpr std::string_view kManaged = "MF0;";
  if (!description.starts_with(kManaged)) return tells_of_chip(description) ? std::string() : std::string(description);
  description.remove_prefix(kManaged.size());
  const std::size_t colon = description.find(':');
  std::string name(description.substr(0, colon));
  if (colon == std::string_view::npos) return name;
  // A director switch has many chips: "MF0;director:CS8500/L01/U1". A switch with one chip ends in "/U1".
  const std::string_view model = description.substr(colon + 1);
  const std::size_t slash = model.find('/');
  if (slash == std::string_view::npos || model.substr(slash) == "/U1") return name;
  name += model.substr(slash);
  return name;
}

}  // namespace tributary::manager
