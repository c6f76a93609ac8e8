#pragma once
// The interfaces of an aggregator, and the rate with which it registers if its settings do not give one.
#include <cstdint>
#include <string>
#include <vector>

namespace tributary::aggregator {

/// Returns the sum of the rates of the interfaces with these addresses, in bits per second; 0 if one of the rates is
/// not known. The address that means all addresses is replaced by the address from which this host talks to the
/// manager, because the manager gives ranks that address. This function looks up the manager's name, which may take as
/// long as the system's resolver takes.
[[nodiscard]] std::uint64_t line_rate_of(const std::vector<std::string>& addresses, const std::string& manager_url);

struct InterfaceRate {
  std::string interface{};  // empty: no interface has the address
  std::string address{};
  std::uint64_t rate = 0;  // in bits per second; 0: not known
};

/// Returns the interfaces with these addresses, each once. All else is as in line_rate_of().
[[nodiscard]] std::vector<InterfaceRate> interfaces_of(const std::vector<std::string>& addresses,
                                                       const std::string& manager_url);

}  // namespace tributary::aggregator
