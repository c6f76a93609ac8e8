#pragma once
// The source of a caller, for shares and limits of each address.
#include <string_view>

#include "tributary/protocol/waiting_room.h"

namespace tributary::service {

/// Returns the source of an address, such as "10.0.0.7", "2001:db8::1" or "fe80::1%eth0". Texts that are no address
/// have one source together.
[[nodiscard]] Source source_of_address(std::string_view address) noexcept;

}  // namespace tributary::service
