#include "client/api/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <exception>
#include <memory>

#include "service-kit/log_formatter.h"

namespace tributary::client {
namespace {

constexpr const char* kComponent = "tributary";

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::trace:
      return spdlog::level::trace;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Returns the logger. It is not in spdlog's registry, which belongs to the process's own use of spdlog. It is never
// destroyed, because progress threads may still log while the process ends.
spdlog::logger& logger() {
  static spdlog::logger* const one = [] {
    auto made = std::make_unique<spdlog::logger>("tributary", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(std::make_unique<service::LogFormatter>(service::LogFormat::text, kComponent));
    made->set_level(spdlog::level::info);
    return made.release();
  }();
  return *one;
}

}  // namespace

void set_log_format(service::LogFormat format) noexcept {
  try {
    logger().set_formatter(std::make_unique<service::LogFormatter>(format, kComponent));
  } catch (const std::exception&) {
    // Keep the form of the lines: there is no memory for a formatter.
  }
}

void set_log_level(LogLevel level) noexcept {
  try {
    logger().set_level(to_spdlog(level));
  } catch (const std::exception&) {
    // Log no lines: there is no memory for a logger.
  }
}

bool logs(LogLevel level) noexcept {
  try {
    return logger().should_log(to_spdlog(level));
  } catch (const std::exception&) {
    return false;
  }
}

void log(LogLevel level, std::string_view line) noexcept {
  try {
    logger().log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
  } catch (const std::exception&) {
    // The line is lost, as log.h says.
  }
}

}  // namespace tributary::client
