#pragma once
// The forms of log lines.
#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary::service {

enum class LogFormat : std::uint8_t { text, json };
inline constexpr const char* kLogFormats = "text or json";

[[nodiscard]] inline std::optional<LogFormat> parse_log_format(std::string_view name) noexcept {
  if (name == "text") return LogFormat::text;
  if (name == "json") return LogFormat::json;
  return std::nullopt;
}

}  // namespace tributary::service
