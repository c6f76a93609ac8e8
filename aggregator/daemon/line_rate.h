#pragma once
// The rate that an aggregator registers with, where its settings do not tell it.
#include <cstdint>
#include <string>
#include <vector>

namespace tributary::aggregator {

/// Returns the rates of the interfaces with these addresses together, in bits per second; 0 if one of them is not
/// known. The address that stands for all counts as that from which this host talks to the manager, because the manager
/// tells ranks that address. A manager's name is looked up, which may take as long as the system's resolver does.
[[nodiscard]] std::uint64_t line_rate_of(const std::vector<std::string>& addresses, const std::string& manager_url);

}  // namespace tributary::aggregator
