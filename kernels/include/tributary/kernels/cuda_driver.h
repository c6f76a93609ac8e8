#pragma once
// The CUDA driver, found at run time: a program that is linked with this loads and runs on a host that has no libcuda.
// No CUDA header is needed.
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

/// A CUresult: 0 is success, the rest numbered as in cuda.h.
enum class CudaResult : int { success = 0, not_ready = 600, not_supported = 801 };

enum class DeviceAttribute : int {
  multiprocessors = 16,
  capability_major = 75,
  capability_minor = 76,
  gpudirect_rdma = 116,            // its memory can be mapped by another device of the bus
  gpudirect_flush_options = 117,   // bit 0: flush_gpudirect_writes() works
  gpudirect_write_ordering = 118,  // 0: what a device of the bus wrote must be flushed before anybody else reads it;
                                   // 100: not before this GPU reads it; 200: before nobody does
  dma_buf = 124,
};

/// The driver's answer about an address of any memory.
struct PointerAttributes {
  enum class Memory : unsigned { unknown = 0, host = 1, device = 2, array = 3, unified = 4 };
  Memory memory = Memory::unknown;  // unknown: memory of the process that CUDA has not heard of
  int device = -1;
  bool managed = false;  // pages move between host and device: the processor may read it, too
};

/// The calls of the driver that we use, one to one, as its documentation describes them. Tests put a fake in its place.
/// Any thread.
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
                          StreamHandle stream) = 0;  // host or device, either way
  virtual CudaResult pointer_attributes(PointerAttributes& attributes, DeviceAddress address) = 0;
  virtual CudaResult address_range(DeviceAddress& begin, std::size_t& bytes, DeviceAddress within) = 0;
  /// Another one for every allocation that ever was, so that memory can be known again.
  virtual CudaResult buffer_id(std::uint64_t& id, DeviceAddress address) = 0;
  /// A dma-buf of device memory, for the caller to close. Both ends are multiples of the host's page. Not of every
  /// driver: CUDA_ERROR_NOT_SUPPORTED.
  virtual CudaResult dma_buf(int& descriptor, DeviceAddress begin, std::size_t bytes) = 0;
  /// Until the current context's device sees what other devices of the bus have written to it. As dma_buf().
  virtual CudaResult flush_gpudirect_writes() = 0;

  virtual CudaResult stream_create(StreamHandle& stream) = 0;
  virtual CudaResult stream_destroy(StreamHandle stream) = 0;
  virtual CudaResult stream_synchronize(StreamHandle stream) = 0;
  virtual CudaResult event_create(EventHandle& event) = 0;
  virtual CudaResult event_create_untimed(EventHandle& event) = 0;  // for order alone; who waits for it sleeps
  virtual CudaResult event_destroy(EventHandle event) = 0;
  virtual CudaResult event_record(EventHandle event, StreamHandle stream) = 0;
  virtual CudaResult event_query(EventHandle event) = 0;  // not_ready: not yet
  virtual CudaResult event_synchronize(EventHandle event) = 0;
  virtual CudaResult event_milliseconds(float& milliseconds, EventHandle from, EventHandle to) = 0;

  virtual const char* error_name(CudaResult result) = 0;  // "CUDA_ERROR_..."; never null
};

/// Where symbols are looked up, so that tests need no library: the address of `name`, or null.
class SymbolSource {
 public:
  virtual ~SymbolSource() = default;
  virtual void* find(const char* name) = 0;
};

/// The driver whose calls `symbols` has; it keeps the source. unsupported: a call is missing, which one is in the
/// message.
[[nodiscard]] Result<std::unique_ptr<CudaDriver>> bind_cuda_driver(std::unique_ptr<SymbolSource> symbols);

/// The driver of this host, from libcuda.so.1, initialised. unsupported: there is none, it is too old, or it sees no
/// device; the message says which.
[[nodiscard]] Result<std::unique_ptr<CudaDriver>> open_cuda_driver();

/// The driver that this process has loaded itself, as whoever has device memory has; it is neither loaded nor
/// initialised here. nullptr: there is none. Cheap enough to be asked for every call: the list of loaded libraries is
/// searched only when it has grown. Errc::unsupported, as bind_cuda_driver(). Lives as long as the process. Any thread.
[[nodiscard]] Result<CudaDriver*> cuda_driver_of_process();

/// `what` failed with `result`: exhausted for no memory, bad_argument for an invalid value, unsupported for code that
/// the device cannot run, else io.
[[nodiscard]] Error cuda_error(CudaDriver& driver, CudaResult result, std::string what);

}  // namespace tributary::kernels::cuda
