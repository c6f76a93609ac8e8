#pragma once
// Puts the calls of a wrapped plugin into the net tables of this plugin.
#include "client/plugins/nccl/wrapped/conversion.h"
#include "client/plugins/nccl/wrapped/other_plugin.h"

namespace tributary::nccl {

/// Fills a table from the other plugin's table of this version, or else of the newest older version. Leaves the table
/// as it is if the other plugin has none of them: net::init() then reports it.
template <int kTo, int kFrom = kTo>
void wrap(abi::NetTable<kTo>& to, const OtherPlugin& other) {
  if (const auto* const from = other.table<kFrom>(); from != nullptr) {
    Conversion<kTo, kFrom>::wrap(to, *from, other.name().c_str());
  } else if constexpr (kFrom > abi::kNetVersionOldest) {
    wrap<kTo, kFrom - 1>(to, other);
  }
}

}  // namespace tributary::nccl
