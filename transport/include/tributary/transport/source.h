#pragma once
// Where a channel comes from, as far as a listener's shares go.
#include <string_view>

#include "tributary/protocol/waiting_room.h"

namespace tributary::transport {

/// Takes what Channel::peer() gives: "10.0.0.1:7471", "[2001:db8::1]:7471"; the same without a port. A name, as the
/// simulator's hosts have, is a source of its own.
[[nodiscard]] Source source_of(std::string_view peer) noexcept;

}  // namespace tributary::transport
