#pragma once
// The CUDA driver, found at run time: a program linked with this library starts and runs on a host without libcuda. It
// needs no CUDA header.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tributary/protocol/error.h"

namespace tributary::kernels::cuda {

using DeviceAddress = std::uint64_t;       // a CUdeviceptr
using StreamHandle = struct CUstream_st*;  // a CUstream or cudaStream_t; null is the default stream
using EventHandle = struct CUevent_st*;
using ContextHandle = struct CUctx_st*;
using ModuleHandle = struct CUmod_st*;
using FunctionHandle = struct CUfunc_st*;

/// A CUresult: 0 is success; other values have the numbers of cuda.h.
enum class CudaResult : int { success = 0, not_ready = 600, not_supported = 801 };

enum class DeviceAttribute : int {
  multiprocessors = 16,
  capability_major = 75,
  capability_minor = 76,
  gpudirect_rdma = 116,           // other devices of the bus can map this device's memory
  gpudirect_flush_options = 117,  // bit 0: flush_gpudirect_writes() works
  // Tells which readers must flush the writes of another device of the bus before they read. 0: all readers; 100: all
  // except this GPU; 200: none.
  gpudirect_write_ordering = 118,
  dma_buf = 124,
};

/// The driver's answer about an address of any memory.
struct PointerAttributes {
  enum class Memory : unsigned { unknown = 0, host = 1, device = 2, array = 3, unified = 4 };
  Memory memory = Memory::unknown;  // unknown: memory of the process that CUDA does not know
  int device = -1;
  bool managed = false;  // pages move between host and device, so the processor may read it, too
};

/// The calls of the driver that the project uses, one to one, as CUDA's documentation describes them. Tests use a fake
/// instead. Any thread may call it.
class CudaDriver {
 public:
  virtual ~CudaDriver() = default;

  virtual CudaResult init() = 0;
  virtual CudaResult driver_version(int& version) = 0;  // 1000 major + 10 minor
  virtual CudaResult device_count(int& count) = 0;
  virtual CudaResult device_name(char* name, int bytes, int device) = 0;
  virtual CudaResult device_attribute(int& value, DeviceAttribute attribute, int device) = 0;
  virtual CudaResult device_bus_id(char* id, int bytes, int device) = 0;  // "0000:3b:00.0"

  virtual CudaResult primary_context_retain(ContextHandle& context, int device) = 0;
  virtual CudaResult primary_context_release(int device) = 0;
  virtual CudaResult context_push(ContextHandle context) = 0;
  virtual CudaResult context_pop() = 0;

  virtual CudaResult module_load(ModuleHandle& module, const void* image) = 0;
  virtual CudaResult module_unload(ModuleHandle module) = 0;
  virtual CudaResult module_function(FunctionHandle& function, ModuleHandle module, const char* name) = 0;
  virtual CudaResult resident_blocks(int& per_multiprocessor, FunctionHandle function, int threads) = 0;
  virtual CudaResult launch(FunctionHandle function, unsigned blocks, unsigned threads, StreamHandle stream,
                            void** arguments) = 0;

  virtual CudaResult memory_allocate(DeviceAddress& address, std::size_t bytes) = 0;
  virtual CudaResult memory_free(DeviceAddress address) = 0;
  virtual CudaResult host_allocate(void*& pointer, std::size_t bytes) = 0;  // pinned, and mapped for every context
  virtual CudaResult host_free(void* pointer) = 0;
  virtual CudaResult host_device_address(DeviceAddress& address, void* pointer) = 0;
  virtual CudaResult copy(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                          StreamHandle stream) = 0;  // copies from and to memory of the host or of a device
  virtual CudaResult pointer_attributes(PointerAttributes& attributes, DeviceAddress address) = 0;
  virtual CudaResult address_range(DeviceAddress& begin, std::size_t& bytes, DeviceAddress within) = 0;
  /// Returns a number that no other allocation ever has, so that the caller can recognize the memory.
  virtual CudaResult buffer_id(std::uint64_t& id, DeviceAddress address) = 0;
  /// Returns a dma-buf of device memory, which the caller closes. Both ends are multiples of the host's page. A driver
  /// without this call returns not_supported.
  virtual CudaResult dma_buf(int& descriptor, DeviceAddress begin, std::size_t bytes) = 0;
  /// Waits until the current context's device sees the writes of other devices of the bus. A driver without this call
  /// returns not_supported.
  virtual CudaResult flush_gpudirect_writes() = 0;

  virtual CudaResult stream_create(StreamHandle& stream) = 0;
  virtual CudaResult stream_destroy(StreamHandle stream) = 0;
  virtual CudaResult stream_synchronize(StreamHandle stream) = 0;
  virtual CudaResult event_create(EventHandle& event) = 0;
  virtual CudaResult event_create_untimed(EventHandle& event) = 0;  // an event without a time; a waiting thread sleeps
  virtual CudaResult event_destroy(EventHandle event) = 0;
  virtual CudaResult event_record(EventHandle event, StreamHandle stream) = 0;
  virtual CudaResult event_query(EventHandle event) = 0;  // not_ready: the event has not happened yet
  virtual CudaResult event_synchronize(EventHandle event) = 0;
  virtual CudaResult event_milliseconds(float& milliseconds, EventHandle from, EventHandle to) = 0;

  virtual const char* error_name(CudaResult result) = 0;  // "CUDA_ERROR_..."; never null
};

/// Looks symbols up, so that tests need no library. find() returns the address of `name`, or null.
class SymbolSource {
 public:
  virtual ~SymbolSource() = default;
  virtual void* find(const char* name) = 0;
};

/// Returns the driver with the calls of `symbols`, which it keeps. Errc::unsupported: a call is missing; the message
/// names it.
[[nodiscard]] Result<std::unique_ptr<CudaDriver>> bind_cuda_driver(std::unique_ptr<SymbolSource> symbols);

/// Returns this host's driver from libcuda.so.1, initialised. Errc::unsupported: there is no driver, it is too old, or
/// it does not start; the message names the reason.
[[nodiscard]] Result<std::unique_ptr<CudaDriver>> open_cuda_driver();

/// Returns the driver that this process has loaded already, as every process with device memory has. It never loads or
/// initialises the driver. nullptr: the process has loaded none. It is cheap enough for every call: it searches the
/// list of loaded libraries only when the list has grown. Errc::unsupported as in bind_cuda_driver(). The driver lives
/// as long as the process. Any thread may call it.
[[nodiscard]] Result<CudaDriver*> cuda_driver_of_process();

/// Returns the error for `what`, which failed with `result`: exhausted if memory ran out, bad_argument for an invalid
/// value, unsupported for code that the device cannot run, else io.
[[nodiscard]] Error cuda_error(CudaDriver& driver, CudaResult result, std::string what);

}  // namespace tributary::kernels::cuda
