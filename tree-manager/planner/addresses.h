#pragma once
// The addresses at which an aggregator takes connections, one for each of its devices, and the choice of an address for
// each lane.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"

namespace tributary::manager {

inline constexpr std::size_t kDataAddressesMax = 16;  // one for each possible lane

struct DataAddress {
  Endpoint at;
  bool live = true;  // the aggregator's last report
  friend bool operator==(const DataAddress&, const DataAddress&) = default;
};
using DataAddresses = std::vector<DataAddress>;

/// Writes a list such as "10.0.0.1:7471, 10.1.0.1:7471 (down)".
[[nodiscard]] std::string to_string(const DataAddresses& addresses);

/// Returns the address to which the ranks of this lane connect: the (lane mod n)th of n addresses, so that a lane keeps
/// its network even if other addresses fail. If that address is down, returns the next live address; nullptr if none is
/// live.
[[nodiscard]] const Endpoint* address_for_lane(const DataAddresses& addresses, std::uint32_t lane) noexcept;

/// Returns the parent's address to which an aggregator of this lane connects. Chooses as address_for_lane() does. If
/// child and parent have the same number of addresses, the ith addresses of both are a pair on their own network; a
/// pair of live addresses then comes first.
[[nodiscard]] const Endpoint* address_between(const DataAddresses& child, const DataAddresses& parent,
                                              std::uint32_t lane) noexcept;

}  // namespace tributary::manager
