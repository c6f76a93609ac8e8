#pragma once
// The network that point-to-point messages use: the same as for collectives, if it suits messages.
#include <cstdint>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::nccl {

/// NCCL carries these numbers to other processes, within handles.
enum class Wire : std::uint32_t { tcp = 0, verbs = 1 };
[[nodiscard]] std::string_view to_string(Wire wire) noexcept;

/// Chosen by libtributary's settings (TRIBUTARY_TRANSPORT) and by what works on this host; decided once for the
/// process. If the collectives use UDP, messages go over TCP: packets need a process that answers at any time, but NCCL
/// lets a connection move on only while it waits for something. An error is a wrong setting, or one that this host
/// cannot fulfil.
[[nodiscard]] const Result<Wire>& wire();

}  // namespace tributary::nccl
