#pragma once
// The plugin's log, through NCCL's own logger: NCCL_DEBUG decides which lines are shown, and where.
#include <source_location>
#include <string>

#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// Sets the logger; the newest communicator's counts. Any thread.
void set_logger(abi::Logger logger) noexcept;

/// Shown with NCCL_DEBUG=INFO. Any thread.
void info(const std::string& line, unsigned long subsystems = abi::log_subsystem::kInit | abi::log_subsystem::kNet,
          std::source_location where = std::source_location::current()) noexcept;
/// Shown with NCCL_DEBUG=WARN, which NCCL itself recommends to all users. Any thread.
void warn(const std::string& line, std::source_location where = std::source_location::current()) noexcept;

}  // namespace tributary::nccl
