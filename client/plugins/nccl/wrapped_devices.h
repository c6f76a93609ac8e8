#pragma once
// The devices of a wrapped plugin. CollNet reports the same devices, because NCCL pairs both lists by names and
// indexes.
#include <vector>

#include "client/plugins/nccl/devices.h"

namespace tributary::nccl {

/// The calls of the wrapped plugin that list its devices.
struct WrappedCalls {
  abi::Result (*devices)(int* count) = nullptr;
  abi::Result (*properties)(int device, abi::PropertiesV12* properties) = nullptr;
};

/// Call it when the wrapped plugin has been initialised.
void note_wrapped(const WrappedCalls& calls);

/// Returns the wrapped plugin's devices, or nullptr if no plugin is wrapped. The first call reads the list, which then
/// stays: devices that NCCL makes later by fusing others have no partner in CollNet. NCCL keeps pointers to the names.
[[nodiscard]] const std::vector<NetDevice>* wrapped_devices();

}  // namespace tributary::nccl
