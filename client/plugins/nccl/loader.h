#pragma once
// Finds the library that has loaded the plugin: NCCL or RCCL. Both have the same tables, but some number formats
// differ.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// Call it in init(): the logger is a function of the calling library. Any thread may call it.
void note_loader(abi::Logger logger);

/// Returns true if RCCL has called init(). Its 8-bit floats have another format on some GPUs (FNUZ: another bias, no
/// infinity, no -0), and no call says which format is used. So the plugin does not sum 8-bit floats for RCCL.
[[nodiscard]] bool loaded_by_rccl() noexcept;

}  // namespace tributary::nccl
