#include "client/gpu/memory_kind.h"

namespace tributary::client::gpu {

using kernels::cuda::CudaResult;
using kernels::cuda::PointerAttributes;

Result<std::optional<int>> device_of(const void* pointer) {
  auto driver = kernels::cuda::cuda_driver_of_process();
  if (!driver) return std::unexpected(driver.error());
  if (*driver == nullptr) return std::nullopt;
  return device_of(**driver, pointer);
}

std::optional<int> device_of(kernels::cuda::CudaDriver& driver, const void* pointer) {
  PointerAttributes attributes;
  const auto address = reinterpret_cast<kernels::cuda::DeviceAddress>(pointer);
  // After an error this is no device memory: the driver is not initialised, or the pointer does not belong to CUDA.
  if (driver.pointer_attributes(attributes, address) != CudaResult::success) return std::nullopt;
  if (attributes.memory != PointerAttributes::Memory::device || attributes.managed) return std::nullopt;
  return attributes.device;
}

}  // namespace tributary::client::gpu
