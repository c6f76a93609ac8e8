#pragma once
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::aggregator {

/// Whether connections over the system's network can come in by this address: an interface has it, and is up with a
/// link. Names, and what stands for every address, are taken for good. Errc::unreachable says why not.
[[nodiscard]] Status host_address_lives(const std::string& host);

}  // namespace tributary::aggregator
