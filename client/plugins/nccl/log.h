#pragma once
// What the plugin says, through NCCL's own logger: NCCL_DEBUG decides what is seen, and where.
#include <source_location>
#include <string>

#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// The newest communicator's logger counts. Any thread.
void set_logger(abi::Logger logger) noexcept;

/// With NCCL_DEBUG=INFO. Any thread.
void info(const std::string& line, unsigned long subsystems = abi::log_subsystem::kInit | abi::log_subsystem::kNet,
          std::source_location where = std::source_location::current()) noexcept;
/// With NCCL_DEBUG=WARN, which NCCL itself recommends to all. Any thread.
void warn(const std::string& line, std::source_location where = std::source_location::current()) noexcept;

}  // namespace tributary::nccl
