#pragma once
// The log on standard error, from TRIBUTARY_LOG's level on: the library prints nothing else.
#include <cstdint>
#include <string_view>

#include "service-kit/log_format.h"

namespace tributary::client {

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error, off };

/// Sets the level for the whole process: the last communicator's setting counts. Any thread.
void set_log_level(LogLevel level) noexcept;
/// Sets the form of the lines of the whole process, likewise. Call it while no other thread logs: before the first
/// communicator.
void set_log_format(service::LogFormat format) noexcept;
[[nodiscard]] bool logs(LogLevel level) noexcept;
/// Any thread. Never throws: a line that cannot be written is lost.
void log(LogLevel level, std::string_view line) noexcept;

}  // namespace tributary::client
