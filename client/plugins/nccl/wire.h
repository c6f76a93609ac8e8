#pragma once
// The network for point-to-point messages: the collectives' network, if it suits messages.
#include <cstdint>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::nccl {

/// Handles carry these numbers to other processes.
enum class Wire : std::uint32_t { tcp = 0, verbs = 1 };
[[nodiscard]] std::string_view to_string(Wire wire) noexcept;

/// The process's wire. libtributary's settings (TRIBUTARY_TRANSPORT) and the host's abilities decide it, once per
/// process. If the collectives use UDP, messages go over TCP: with UDP a process must be able to answer at any time,
/// but NCCL moves a connection on only while it waits for something. The error is a wrong setting, or a setting that
/// this host cannot fulfil.
[[nodiscard]] const Result<Wire>& wire();

}  // namespace tributary::nccl
