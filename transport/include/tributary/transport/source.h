#pragma once
// The source of a channel: listeners give each source a share of their places.
#include <string_view>

#include "tributary/protocol/waiting_room.h"

namespace tributary::transport {

/// Returns the source for the text of Channel::peer(), such as "10.0.0.1:7471" or "[2001:db8::1]:7471": the text
/// without its port. A name, such as the name of a simulated host, is a source of its own.
[[nodiscard]] Source source_of(std::string_view peer) noexcept;

}  // namespace tributary::transport
