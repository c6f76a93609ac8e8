#include "client/plugins/nccl/log.h"

#include <atomic>
#include <cstring>

namespace tributary::nccl {
namespace {

std::atomic<abi::Logger> g_logger{nullptr};

/// Returns the file's name without its folder, as NCCL's own lines show it: the folder belongs to a build machine.
const char* name_of(const std::source_location& where) noexcept {
  const char* const slash = std::strrchr(where.file_name(), '/');
  return slash == nullptr ? where.file_name() : slash + 1;
}

void write(abi::LogLevel level, unsigned long subsystems, const std::string& line,
           const std::source_location& where) noexcept {
  const abi::Logger logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  logger(level, subsystems, name_of(where), static_cast<int>(where.line()), "NET/Tributary : %s", line.c_str());
}

}  // namespace

void set_logger(abi::Logger logger) noexcept {
  if (logger != nullptr) g_logger.store(logger, std::memory_order_release);
}

void info(const std::string& line, unsigned long subsystems, std::source_location where) noexcept {
  write(abi::LogLevel::info, subsystems, line, where);
}

void warn(const std::string& line, std::source_location where) noexcept {
  write(abi::LogLevel::warn, abi::log_subsystem::kAll, line, where);
}

}  // namespace tributary::nccl
