#include "tributary/transport/rdma_path.h"

#include <array>
#include <bit>
#include <charconv>

namespace tributary::transport {
namespace {

constexpr std::string_view kAuto = "auto";

/// Parses a decimal number, or a hexadecimal one after 0x.
std::optional<std::uint32_t> to_number(std::string_view value) {
  const bool hexadecimal = value.starts_with("0x");
  if (hexadecimal) value.remove_prefix(2);
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return number;
}

template <class Number>
bool set(Number& member, std::string_view value, std::uint32_t most) {
  const auto number = to_number(value);
  if (!number || *number > most) return false;
  member = static_cast<Number>(*number);
  return true;
}

template <class Number>
bool set(std::optional<Number>& member, std::string_view value, std::uint32_t most, std::uint32_t least = 0) {
  member.reset();
  if (value == kAuto) return true;
  const auto number = to_number(value);
  if (!number || *number < least || *number > most) return false;
  member = static_cast<Number>(*number);
  return true;
}

template <class Number>
std::string text_of(const std::optional<Number>& member) {
  return member ? std::to_string(*member) : std::string(kAuto);
}

bool set_mtu(RdmaPath& path, std::string_view value) {
  if (value == kAuto) {
    path.mtu = 0;
    return true;
  }
  const auto number = to_number(value);
  if (!number || *number < 256 || *number > 4096 || !std::has_single_bit(*number)) return false;
  path.mtu = *number;
  return true;
}

constexpr std::array<RdmaPathSetting, 8> kSettings{{
    {"rdma_traffic_class", "TRIBUTARY_RDMA_TRAFFIC_CLASS", "0", "a number from 0 to 255",
     "Where transport is verbs: DSCP (times four) and ECN bits of RoCE packets, by which switches choose a queue: "
     "106 is DSCP 26 with ECN. 0: the system's value.",
     [](RdmaPath& path, std::string_view value) { return set(path.traffic_class, value, 255); },
     [](const RdmaPath& path) { return std::to_string(path.traffic_class); }},
    {"rdma_service_level", "TRIBUTARY_RDMA_SERVICE_LEVEL", "auto", "auto, or a number from 0 to 15",
     "Where transport is verbs: the service level of InfiniBand packets. auto: the level that the subnet manager "
     "gives.",
     [](RdmaPath& path, std::string_view value) { return set(path.service_level, value, 15); },
     [](const RdmaPath& path) { return text_of(path.service_level); }},
    {"rdma_partition_key", "TRIBUTARY_RDMA_PARTITION_KEY", "auto", "auto, or a number from 0x1 to 0xffff",
     "Where transport is verbs: the partition of connections, the same on every side. auto: the partition of the "
     "interface "
     "whose address is used.",
     [](RdmaPath& path, std::string_view value) { return set(path.partition_key, value, 0xFFFF, 1); },
     [](const RdmaPath& path) { return text_of(path.partition_key); }},
    {"rdma_mtu", "TRIBUTARY_RDMA_MTU", "auto", "auto, 256, 512, 1024, 2048 or 4096",
     "Where transport is verbs: the longest payload of a packet, in bytes. auto: the path's MTU.", set_mtu,
     [](const RdmaPath& path) { return path.mtu == 0 ? std::string(kAuto) : std::to_string(path.mtu); }},
    {"rdma_ack_timeout", "TRIBUTARY_RDMA_ACK_TIMEOUT", "auto", "auto, or a number from 0 to 31",
     "Where transport is verbs: the device sends an unacknowledged packet again after 4.096 us x 2^n; 0: never. auto: "
     "the time that the connection manager finds.",
     [](RdmaPath& path, std::string_view value) { return set(path.ack_timeout, value, 31); },
     [](const RdmaPath& path) { return text_of(path.ack_timeout); }},
    {"rdma_retry_count", "TRIBUTARY_RDMA_RETRY_COUNT", "6", "a number from 0 to 7",
     "Where transport is verbs: how often the device sends a packet again before the other side counts as gone.",
     [](RdmaPath& path, std::string_view value) { return set(path.retry_count, value, 7); },
     [](const RdmaPath& path) { return std::to_string(path.retry_count); }},
    {"rdma_rnr_retry_count", "TRIBUTARY_RDMA_RNR_RETRY_COUNT", "6", "a number from 0 to 7",
     "Where transport is verbs: how often the device sends a message again if the other side's device says that it has "
     "no receive posted. Tributary always posts one, so only a device that loses it needs this. 7: for ever.",
     [](RdmaPath& path, std::string_view value) { return set(path.rnr_retry_count, value, 7); },
     [](const RdmaPath& path) { return std::to_string(path.rnr_retry_count); }},
    {"rdma_rnr_timer", "TRIBUTARY_RDMA_RNR_TIMER", "auto", "auto, or a number from 0 to 31",
     "Where transport is verbs: how long the device waits before it sends such a message again, in InfiniBand's code: "
     "1 means 10 us, 12 means 0.64 ms, 31 means 0.49 s, and 0 means 0.66 s, the longest time. auto: the time that "
     "the connection manager finds.",
     [](RdmaPath& path, std::string_view value) { return set(path.rnr_timer, value, 31); },
     [](const RdmaPath& path) { return text_of(path.rnr_timer); }},
}};

}  // namespace

std::span<const RdmaPathSetting> rdma_path_settings() noexcept {
  return kSettings;
}

}  // namespace tributary::transport
