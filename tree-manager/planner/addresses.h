#pragma once
// The addresses at which an aggregator takes connections, one for each of its devices, and the one that each lane uses.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"

namespace tributary::manager {

inline constexpr std::size_t kDataAddressesMax = 16;  // one for each lane that there can be

struct DataAddress {
  Endpoint at;
  bool live = true;  // as the aggregator last said
  friend bool operator==(const DataAddress&, const DataAddress&) = default;
};
using DataAddresses = std::vector<DataAddress>;

/// Writes "10.0.0.1:7471, 10.1.0.1:7471 (down)".
[[nodiscard]] std::string to_string(const DataAddresses& addresses);

/// Returns the address to which the ranks of this lane connect: the (lane mod n)th of n, so that a lane keeps its rail
/// whatever becomes of the others; if that one is down, the next that lives. nullptr: none lives.
[[nodiscard]] const Endpoint* address_for_lane(const DataAddresses& addresses, std::uint32_t lane) noexcept;

/// Returns the parent's address to which an aggregator of this lane connects. The choice is the same, but where both
/// have as many addresses they are taken for pairs, each on a network of its own: then it falls on one whose
/// counterpart at the child lives, too, if there is any.
[[nodiscard]] const Endpoint* address_between(const DataAddresses& child, const DataAddresses& parent,
                                              std::uint32_t lane) noexcept;

}  // namespace tributary::manager
