#pragma once
// What point-to-point messages travel over: what the collectives use, where that suits them.
#include <cstdint>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::nccl {

/// Numbers that NCCL carries to other processes, within handles.
enum class Wire : std::uint32_t { tcp = 0, verbs = 1 };
[[nodiscard]] std::string_view to_string(Wire wire) noexcept;

/// By libtributary's settings (TRIBUTARY_TRANSPORT) and what works on this host; decided once for the process. Where
/// the collectives use UDP, messages go over TCP: packets want somebody who answers at any time, and NCCL lets a
/// connection move on only while it waits for something. An error is a setting that makes no sense, or cannot be had.
[[nodiscard]] const Result<Wire>& wire();

}  // namespace tributary::nccl
