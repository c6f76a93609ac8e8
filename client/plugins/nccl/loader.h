#pragma once
// The library that has loaded the plugin: NCCL, or RCCL, which has the same tables but not the same numbers.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// Belongs to init(), whose logger is a function of the library that calls. Any thread.
void note_loader(abi::Logger logger);

/// RCCL has called init(). Its 8-bit floats are of another format on some GPUs (FNUZ: another bias, no infinity, no
/// -0), and nothing in a call tells which: so they are not summed for it.
[[nodiscard]] bool loaded_by_rccl() noexcept;

}  // namespace tributary::nccl
