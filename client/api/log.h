#pragma once
// The log on standard error, from the level of TRIBUTARY_LOG on. The library prints only this log.
#include <cstdint>
#include <string_view>

#include "service-kit/log_format.h"

namespace tributary::client {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };

/// Sets the level for the whole process: the setting of the last communicator holds. Any thread may call it.
void set_log_level(LogLevel level) noexcept;
/// Sets the form of the log's lines for the whole process. Call it while no other thread logs: before the first
/// communicator.
void set_log_format(service::LogFormat format) noexcept;
[[nodiscard]] bool logs(LogLevel level) noexcept;
/// Writes a line. Any thread may call it. Never throws: a line that cannot be written is lost.
void log(LogLevel level, std::string_view line) noexcept;

}  // namespace tributary::client
