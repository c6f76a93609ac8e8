#pragma once
// The source of a channel: listeners give each source a share of their places.
#include <string_view>

#include "tributary/protocol/waiting_room.h"

namespace tributary::transport {

/// Returns the source for the text of Channel::peer(): "10.0.0.1:7471", "[2001:db8::1]:7471"; the same without a port.
/// A name, such as the simulator's hosts have, is a source of its own.
[[nodiscard]] Source source_of(std::string_view peer) noexcept;

}  // namespace tributary::transport
