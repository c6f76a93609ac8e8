#pragma once
// Reads quantities that people write in a configuration: a number and a unit, such as "4GiB", "100Gbit/s" or "10s". It
// refuses a number without a unit, because its reader would have to guess the unit.
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "tributary/protocol/error.h"

namespace tributary::service {

/// Reads numbers with B, KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of 1000). Errc::bad_config says
/// what is wrong, and lists the units.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);
/// Reads numbers with bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (powers of 1000), and returns bits per second.
[[nodiscard]] Result<std::uint64_t> parse_rate(std::string_view text);
/// Reads numbers with us, ms, s, min, h.
[[nodiscard]] Result<std::chrono::microseconds> parse_duration(std::string_view text);

/// Returns the number that `text` contains; nullopt if `text` is no number.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns `result`, with "'text': " before the message of an error. Use it for errors that do not name the value.
template <class T>
[[nodiscard]] Result<T> naming(std::string_view text, Result<T> result) {
  if (result) return result;
  return fail(result.error().code, "'" + std::string(text) + "': " + result.error().message);
}

/// Return a text that the functions above can read, in the largest unit in which the value is exact.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
[[nodiscard]] std::string rate_text(std::uint64_t bits_per_second);
[[nodiscard]] std::string duration_text(std::chrono::microseconds duration);

}  // namespace tributary::service
