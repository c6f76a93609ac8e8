#pragma once
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::aggregator {

/// True for an IPv4 or IPv6 address; false for a name, and for the address that means all addresses.
[[nodiscard]] bool is_one_address(const std::string& host);

/// Checks that connections over the system's network can reach this address: an interface has it, and is up with a
/// link. A name, or the address that means all addresses, always passes. Errc::unreachable has the reason why an
/// address does not pass.
[[nodiscard]] Status host_address_lives(const std::string& host);

}  // namespace tributary::aggregator
