#include "client/cli/doctor/pci.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <charconv>

namespace tributary::cli::doctor {
namespace {

using transport::SystemTree;

constexpr const char* kDevices = "/sys/bus/pci/devices/";
constexpr const char* kNvidia = "0x10de";
constexpr const char* kAmd = "0x1002";

std::string text_in(const SystemTree& system, const std::string& path) {
  return system.read(path).value_or("");
}

/// Returns the ids in a folder's path, from the root port to the device: "0000:3a:00.0" and so on.
std::vector<std::string> functions_in(const std::string& folder) {
  std::vector<std::string> ids;
  for (std::size_t at = 0; at < folder.size();) {
    const std::size_t slash = std::min(folder.find('/', at), folder.size());
    const std::string name = folder.substr(at, slash - at);
    if (name.size() >= 12 && name[name.size() - 2] == '.' && name[name.size() - 5] == ':') ids.push_back(name);
    at = slash + 1;
  }
  return ids;
}

std::size_t shared_length(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

double leading_number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// Returns the sizes that a resizable BAR offers: bit n of the number stands for 2^n MiB.
std::uint64_t largest_of_mask(const SystemTree& system, const std::string& folder, std::size_t index) {
  const auto mask = system.read(folder + "/resource" + std::to_string(index) + "_resize");
  if (!mask) return 0;
  const std::uint64_t bits = hexadecimal(*mask) & 0xFFFFFFFFU;
  return bits == 0 ? 0 : (std::uint64_t{1} << 20) << (std::bit_width(bits) - 1);
}

template <class T>
T little_endian(std::string_view bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<unsigned char>(bytes[at + i])) << (8 * i));
  return value;
}

}  // namespace

bool is_nvidia(const SystemTree& system, const std::string& id) {
  return text_in(system, kDevices + id + "/vendor") == kNvidia;
}

std::vector<std::string> gpus_of(const SystemTree& system) {
  std::vector<std::string> ids;
  for (const std::string& id : system.list("/sys/bus/pci/devices")) {
    const std::string vendor = text_in(system, kDevices + id + "/vendor");
    const std::string kind = text_in(system, kDevices + id + "/class");
    const bool shows = kind.starts_with("0x03"), computes = kind.starts_with("0x12");  // display, accelerator
    if ((vendor == kNvidia && shows) || (vendor == kAmd && (shows || computes))) ids.push_back(id);
  }
  return ids;
}

const char* to_string(PciDistance distance) noexcept {
  switch (distance) {
    case PciDistance::pix:
      return "PIX";
    case PciDistance::pxb:
      return "PXB";
    case PciDistance::phb:
      return "PHB";
    case PciDistance::node:
      return "NODE";
    case PciDistance::sys:
      return "SYS";
    case PciDistance::unknown:
      return "distance unknown";
  }
  return "?";
}

std::vector<std::string> bridges_between(const std::string& one, const std::string& other) {
  const auto a = functions_in(one), b = functions_in(other);
  const std::size_t shared = shared_length(a, b);
  std::vector<std::string> bridges;
  for (const auto* path : {&a, &b}) {
    for (std::size_t i = shared; i + 1 < path->size(); ++i) bridges.push_back((*path)[i]);
  }
  return bridges;
}

PciDistance pci_distance(const SystemTree& system, const std::string& one, const std::string& other) {
  switch (
      transport::distance(one, transport::numa_node_of(system, one), other, transport::numa_node_of(system, other))) {
    case transport::Distance::same_switch:
      // Count the bridges: a switch has one bridge on each side of the way through it.
      return bridges_between(one, other).size() <= 2 ? PciDistance::pix : PciDistance::pxb;
    case transport::Distance::same_root:
      return PciDistance::phb;
    case transport::Distance::same_node:
      return PciDistance::node;
    case transport::Distance::other_node:
      return PciDistance::sys;
    case transport::Distance::unknown:
      break;
  }
  return PciDistance::unknown;
}

double PciLink::part() const {
  const double most = gigatransfers_max * static_cast<double>(width_max);
  return most > 0 ? gigatransfers * static_cast<double>(width) / most : 1;
}

std::string PciLink::text() const {
  const std::string now = fmt::format("{:g} GT/s x{}", gigatransfers, width);
  return part() >= 1 ? now : fmt::format("{} of {:g} GT/s x{}", now, gigatransfers_max, width_max);
}

std::optional<PciLink> link_of(const SystemTree& system, const std::string& folder) {
  PciLink link{.gigatransfers = leading_number(text_in(system, folder + "/current_link_speed")),
               .gigatransfers_max = leading_number(text_in(system, folder + "/max_link_speed")),
               .width = system.number(folder + "/current_link_width").value_or(0),
               .width_max = system.number(folder + "/max_link_width").value_or(0)};
  if (link.gigatransfers <= 0 || link.width <= 0 || link.width_max <= 0 || link.width_max > 32) return std::nullopt;
  // Use the slot's limits, too: a slot may do less than its card, and no change on this host would make the link
  // faster.
  const std::string above = folder.substr(0, folder.rfind('/'));
  const double speed = leading_number(text_in(system, above + "/max_link_speed"));
  const auto width = system.number(above + "/max_link_width").value_or(0);
  if (speed > 0) link.gigatransfers_max = std::min(link.gigatransfers_max, speed);
  if (width > 0) link.width_max = std::min(link.width_max, width);
  return link;
}

std::optional<Bar> largest_bar(const SystemTree& system, const std::string& folder) {
  constexpr std::uint64_t kPrefetchable = 0x2000;
  const std::string text = text_in(system, folder + "/resource");
  std::optional<Bar> largest;
  std::size_t index = 0;
  for (std::size_t at = 0; at < text.size() && index < 6; ++index) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::size_t second = line.find(' '), third = line.rfind(' ');
    if (second == std::string_view::npos || second == third) continue;
    const std::uint64_t first = hexadecimal(line), last = hexadecimal(line.substr(second + 1));
    if (last <= first || (hexadecimal(line.substr(third + 1)) & kPrefetchable) == 0) continue;
    if (largest && largest->bytes >= last - first + 1) continue;
    largest = Bar{.bytes = last - first + 1, .bytes_max = largest_of_mask(system, folder, index)};
  }
  return largest;
}

Acs acs_of(const SystemTree& system, const std::string& id) {
  constexpr std::size_t kWithoutRoot = 64, kExtended = 0x100;
  constexpr std::uint16_t kCapability = 0x000D;
  constexpr std::uint16_t kRedirects = 0x0004 | 0x0008;  // P2P request redirect, P2P completion redirect
  const std::string config = text_in(system, kDevices + id + "/config");
  if (config.size() <= kWithoutRoot) return Acs::unreadable;
  std::size_t at = kExtended;
  for (int i = 0; i < 64 && at >= kExtended && at + 8 <= config.size(); ++i) {
    const auto head = little_endian<std::uint32_t>(config, at);
    if ((head & 0xFFFFU) == kCapability)
      return (little_endian<std::uint16_t>(config, at + 6) & kRedirects) != 0 ? Acs::redirects : Acs::off;
    at = head >> 20;
  }
  return Acs::off;
}

}  // namespace tributary::cli::doctor
