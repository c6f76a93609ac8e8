// Devices, their contexts, and the calls that are the same for every driver. There are no kernels.
#include <cstring>

#include "tests/fakes/cuda/state.h"

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C names' side of it

extern "C" {

int cuInit(unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.initialized = true;
  return gate(s, "cuInit", false);
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  *count = s.settings.devices;
  return gate(s, "cuDeviceGetCount", false);
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* id, int bytes, int) {
  std::strncpy(id, "0000:01:00.0", static_cast<std::size_t>(bytes));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (device < 0 || device >= s.settings.devices) return kInvalidDevice;
  switch (attribute) {
    case 16:
      *value = 132;
      break;
    case 75:
      *value = 9;
      break;
    case 116:
      *value = s.settings.gpudirect ? 1 : 0;
      break;
    case 117:
      *value = s.settings.flush_options;
      break;
    case 118:
      *value = s.settings.write_ordering;
      break;
    case 124:
      *value = s.settings.dma_buf ? 1 : 0;
      break;
    default:
      *value = 0;
  }
  return gate(s, "cuDeviceGetAttribute", false);
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuDevicePrimaryCtxRetain", false)) return no;
  if (device < 0 || device >= s.settings.devices) return kInvalidDevice;
  ++s.retained[device];
  ++s.counts.contexts;
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  --s.retained[device];
  --s.counts.contexts;
  if (s.retained[device] < 0) s.misused("a context was released more often than it was retained");
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  // Do not return the error of a broken context here: the caller must be able to free its memory.
  if (!s.initialized) return kNotInitialized;
  const int device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  if (s.retained[device] < 1) return kInvalidContext;
  contexts().push_back(device);
  ++s.counts.pushed;
  return kSuccess;
}
int cuCtxPopCurrent_v2(void** context) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (contexts().empty()) return kInvalidContext;
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(contexts().back()) + 1);
  contexts().pop_back();
  --s.counts.pushed;
  return kSuccess;
}

int cuModuleLoadData(void**, const void*) {
  return kNotSupported;
}
int cuModuleUnload(void*) {
  return kNotSupported;
}
int cuModuleGetFunction(void**, void*, const char*) {
  return kNotFound;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, std::size_t) {
  return kNotSupported;
}
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) {
  return kNotSupported;
}

int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kSuccess;
    case kLaunchFailed:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      return kSuccess;
    case kNotSupported:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      return kSuccess;
    default:
      *name = "CUDA_ERROR_OF_THE_FAKE";
      return kSuccess;
  }
}

}  // extern "C"
