#pragma once
// Quantities with explicit units, as people write them in configuration: "100Gbit/s", "256MiB", "10s". A bare number is
// never taken: its unit would be a guess.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::manager {

/// Bits per second from bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s (decimal), up to 1000Tbit/s. Errc::bad_config says what
/// is accepted.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);
/// Bytes from B, KiB, MiB, GiB, TiB (powers of 1024) or kB, MB, GB, TB (powers of 1000).
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);
/// From ms, s, min or h.
[[nodiscard]] Result<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The shortest exact text that the parsers read back.
[[nodiscard]] std::string rate_text(std::uint64_t bits_per_second);
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);

}  // namespace tributary::manager
