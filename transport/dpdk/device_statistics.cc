#include "transport/dpdk/device_statistics.h"

#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tributary::transport::dpdk {
namespace {

/// Words in names of counts. Drivers have hundreds of counts; counts with such a word show where packets are lost.
bool tells_of_loss(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords{"drop", "discard", "error", "miss", "no_mbuf", "out_of_buffer"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.contains(word); });
}

}  // namespace

DeviceCounters read_counters(std::uint16_t device) {
  DeviceCounters counters;
  rte_eth_stats basic{};
  if (::rte_eth_stats_get(device, &basic) == 0) {
    counters.received_packets = basic.ipackets;
    counters.received_bytes = basic.ibytes;
    counters.sent_packets = basic.opackets;
    counters.sent_bytes = basic.obytes;
    counters.receive_missed = basic.imissed;
    counters.receive_errors = basic.ierrors;
    counters.receive_no_buffer = basic.rx_nombuf;
    counters.send_errors = basic.oerrors;
  }
  const int count = ::rte_eth_xstats_get_names(device, nullptr, 0);
  if (count <= 0) return counters;
  std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
  std::vector<rte_eth_xstat> values(names.size());
  const auto room = static_cast<unsigned>(count);
  if (::rte_eth_xstats_get_names(device, names.data(), room) != count ||
      ::rte_eth_xstats_get(device, values.data(), room) != count) {
    return counters;  // the driver has changed its list between the two calls
  }
  for (const rte_eth_xstat& value : values) {
    if (value.value == 0 || value.id >= names.size() || !tells_of_loss(names[value.id].name)) continue;
    counters.others.emplace_back(names[value.id].name, value.value);
  }
  return counters;
}

}  // namespace tributary::transport::dpdk
