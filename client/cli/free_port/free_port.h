#pragma once
// Finds a TCP port for a program whose port must be known before it listens.
#include <cstdint>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// Returns a TCP port of 127.0.0.1 at which no process listens. It is below the ports that the system uses for outgoing
/// connections, so it stays free unless a process asks for it by number.
[[nodiscard]] Result<std::uint16_t> free_port();

}  // namespace tributary::cli
