#pragma once
// The rate of this host's link, as the driver of its network interface gives it.
#include <cstdint>
#include <string>

namespace tributary::transport {

/// Returns the name of the interface that has this numeric address; empty: no interface has it. Any thread may call it.
[[nodiscard]] std::string interface_of(const std::string& address);

/// Returns the rate of the interface that has this numeric address, in bits per second in each direction. 0: no
/// interface has the address, its driver does not know the rate (loopback, many virtual machines), or the driver gives
/// a rate that is not the rate of a wire (veth, tun). Any thread may call it.
[[nodiscard]] std::uint64_t link_rate_of(const std::string& address);

}  // namespace tributary::transport
