#pragma once
// Finds the library that has loaded the plugin: NCCL, or RCCL, which has the same tables but other numbers.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// Call it in init(), whose logger is a function of the calling library. Any thread.
void note_loader(abi::Logger logger);

/// True if RCCL has called init(). Its 8-bit floats have another format on some GPUs (FNUZ: another bias, no infinity,
/// no -0), and no call tells which: so the plugin does not sum them for RCCL.
[[nodiscard]] bool loaded_by_rccl() noexcept;

}  // namespace tributary::nccl
