#pragma once
// Points in time and long times on the command line.
#include <cstdint>
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// Returns the seconds since 1970-01-01 UTC.
[[nodiscard]] std::int64_t unix_now();
/// Returns a text such as "2026-12-01 08:00:00 UTC".
[[nodiscard]] std::string utc_text(std::int64_t unix_seconds);

inline constexpr const char* kMomentForms = "2026-12-01T08:00 (UTC), or seconds since 1970-01-01 UTC";
/// Reads a point in time, and returns seconds since 1970-01-01 UTC.
[[nodiscard]] Result<std::int64_t> parse_moment(const std::string& text);

inline constexpr const char* kLongTimeForms = "1s to 366d, such as 90s, 2h or 30d";
/// Reads a time, and returns seconds.
[[nodiscard]] Result<std::int64_t> parse_long_time(const std::string& text);

}  // namespace tributary::cli
