#pragma once
// The plugin's log. It uses NCCL's own logger: NCCL_DEBUG decides which lines NCCL writes, and where.
#include <source_location>
#include <string>

#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// Sets the logger. Each new communicator's logger replaces the earlier logger. Any thread may call it.
void set_logger(abi::Logger logger) noexcept;

/// Writes a line that NCCL shows with NCCL_DEBUG=INFO. Any thread may call it.
void info(const std::string& line, unsigned long subsystems = abi::log_subsystem::kInit | abi::log_subsystem::kNet,
          std::source_location where = std::source_location::current()) noexcept;
/// Writes a line that NCCL shows with NCCL_DEBUG=WARN; NCCL recommends this level to all users. Any thread may call it.
void warn(const std::string& line, std::source_location where = std::source_location::current()) noexcept;

}  // namespace tributary::nccl
