#pragma once
// The command `tributary explain`: it names the path of an operation, and the reason.
#include <cstdint>
#include <optional>
#include <string>

#include "tributary/protocol/numerics.h"
#include "tributary/protocol/types.h"

namespace tributary::cli {

struct ExplainOptions {
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;  // bytes of the larger buffer
  std::uint32_t ranks = 8;
  DType dtype = DType::float32;
  std::optional<Numerics> numerics;        // how sums of floats are rounded; nullopt: use TRIBUTARY_NUMERICS
  std::string tuning;                      // auto, model, off or a file; empty: use TRIBUTARY_TUNING
  std::optional<std::uint64_t> link_bits;  // bits per second; 0: no link; nullopt: use the figures
  std::uint32_t cores = 0;                 // 0: use the figures, or this machine's number
  std::uint32_t ranks_per_host = 0;        // 0: use the figures, or 1
  bool json = false;
};

/// Returns the exit code of the process.
[[nodiscard]] int explain(const ExplainOptions& options);

}  // namespace tributary::cli
