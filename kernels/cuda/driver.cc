// The real driver: it makes every call through its symbol in libcuda.so.1.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "tributary/kernels/cuda_driver.h"
#include "tributary/protocol/assert.h"

namespace tributary::kernels::cuda {
namespace {

using Code = int;

// The symbols' names have the version suffixes that cuda.h's macros add.
struct Calls {
  Code (*init)(unsigned);
  Code (*driver_version)(int*);
  Code (*device_count)(int*);
  Code (*device_name)(char*, int, int);
  Code (*device_attribute)(int*, int, int);
  Code (*device_bus_id)(char*, int, int);
  Code (*primary_context_retain)(ContextHandle*, int);
  Code (*primary_context_release)(int);
  Code (*context_push)(ContextHandle);
  Code (*context_pop)(ContextHandle*);
  Code (*module_load)(ModuleHandle*, const void*);
  Code (*module_unload)(ModuleHandle);
  Code (*module_function)(FunctionHandle*, ModuleHandle, const char*);
  Code (*resident_blocks)(int*, FunctionHandle, int, std::size_t);
  Code (*launch)(FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, StreamHandle,
                 void**, void**);
  Code (*memory_allocate)(DeviceAddress*, std::size_t);
  Code (*memory_free)(DeviceAddress);
  Code (*host_allocate)(void**, std::size_t, unsigned);
  Code (*host_free)(void*);
  Code (*host_device_address)(DeviceAddress*, void*, unsigned);
  Code (*copy)(DeviceAddress, DeviceAddress, std::size_t, StreamHandle);
  Code (*pointer_attributes)(unsigned, int*, void**, DeviceAddress);
  Code (*address_range)(DeviceAddress*, std::size_t*, DeviceAddress);
  Code (*dma_buf)(void*, DeviceAddress, std::size_t, int, unsigned long long);  // may be null
  Code (*flush_gpudirect_writes)(int, int);                                     // may be null
  Code (*stream_create)(StreamHandle*, unsigned);
  Code (*stream_destroy)(StreamHandle);
  Code (*stream_synchronize)(StreamHandle);
  Code (*event_create)(EventHandle*, unsigned);
  Code (*event_destroy)(EventHandle);
  Code (*event_record)(EventHandle, StreamHandle);
  Code (*event_query)(EventHandle);
  Code (*event_synchronize)(EventHandle);
  Code (*event_milliseconds)(float*, EventHandle, EventHandle);
  Code (*error_name)(Code, const char**);
};

constexpr unsigned kHostPortableAndMapped = 1 | 2;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventBlockingSyncAndUntimed = 1 | 2;
constexpr int kPointerMemoryType = 2, kPointerBufferId = 7, kPointerIsManaged = 8, kPointerDevice = 9;
constexpr int kHandleIsDmaBuf = 1;
constexpr int kFlushCurrentContext = 0, kFlushToOwner = 100;

class BoundDriver final : public CudaDriver {
 public:
  BoundDriver(std::unique_ptr<SymbolSource> symbols, const Calls& calls)
      : symbols_(std::move(symbols)), calls_(calls) {}

  CudaResult init() override { return result(calls_.init(0)); }
  CudaResult driver_version(int& version) override { return result(calls_.driver_version(&version)); }
  CudaResult device_count(int& count) override { return result(calls_.device_count(&count)); }
  CudaResult device_name(char* name, int bytes, int device) override {
    return result(calls_.device_name(name, bytes, device));
  }
  CudaResult device_attribute(int& value, DeviceAttribute attribute, int device) override {
    return result(calls_.device_attribute(&value, static_cast<int>(attribute), device));
  }
  CudaResult device_bus_id(char* id, int bytes, int device) override {
    return result(calls_.device_bus_id(id, bytes, device));
  }
  CudaResult primary_context_retain(ContextHandle& context, int device) override {
    return result(calls_.primary_context_retain(&context, device));
  }
  CudaResult primary_context_release(int device) override { return result(calls_.primary_context_release(device)); }
  CudaResult context_push(ContextHandle context) override { return result(calls_.context_push(context)); }
  CudaResult context_pop() override {
    ContextHandle popped = nullptr;
    return result(calls_.context_pop(&popped));
  }
  CudaResult module_load(ModuleHandle& module, const void* image) override {
    return result(calls_.module_load(&module, image));
  }
  CudaResult module_unload(ModuleHandle module) override { return result(calls_.module_unload(module)); }
  CudaResult module_function(FunctionHandle& function, ModuleHandle module, const char* name) override {
    return result(calls_.module_function(&function, module, name));
  }
  CudaResult resident_blocks(int& per_multiprocessor, FunctionHandle function, int threads) override {
    return result(calls_.resident_blocks(&per_multiprocessor, function, threads, 0));
  }
  CudaResult launch(FunctionHandle function, unsigned blocks, unsigned threads, StreamHandle stream,
                    void** arguments) override {
    return result(calls_.launch(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, nullptr));
  }
  CudaResult memory_allocate(DeviceAddress& address, std::size_t bytes) override {
    return result(calls_.memory_allocate(&address, bytes));
  }
  CudaResult memory_free(DeviceAddress address) override { return result(calls_.memory_free(address)); }
  CudaResult host_allocate(void*& pointer, std::size_t bytes) override {
    return result(calls_.host_allocate(&pointer, bytes, kHostPortableAndMapped));
  }
  CudaResult host_free(void* pointer) override { return result(calls_.host_free(pointer)); }
  CudaResult host_device_address(DeviceAddress& address, void* pointer) override {
    return result(calls_.host_device_address(&address, pointer, 0));
  }
  CudaResult copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, StreamHandle stream) override {
    return result(calls_.copy(to, from, bytes, stream));
  }
  CudaResult pointer_attributes(PointerAttributes& attributes, DeviceAddress address) override {
    unsigned memory = 0, managed = 0;
    int device = -1;
    int wanted[] = {kPointerMemoryType, kPointerIsManaged, kPointerDevice};
    void* answers[] = {&memory, &managed, &device};
    const CudaResult outcome = result(calls_.pointer_attributes(3, wanted, answers, address));
    attributes = {static_cast<PointerAttributes::Memory>(memory), device, managed != 0};
    return outcome;
  }
  CudaResult address_range(DeviceAddress& begin, std::size_t& bytes, DeviceAddress within) override {
    return result(calls_.address_range(&begin, &bytes, within));
  }
  CudaResult buffer_id(std::uint64_t& id, DeviceAddress address) override {
    int wanted[] = {kPointerBufferId};
    unsigned long long answer = 0;
    void* answers[] = {&answer};
    const CudaResult outcome = result(calls_.pointer_attributes(1, wanted, answers, address));
    id = answer;
    return outcome;
  }
  CudaResult dma_buf(int& descriptor, DeviceAddress begin, std::size_t bytes) override {
    if (calls_.dma_buf == nullptr) return CudaResult::not_supported;
    return result(calls_.dma_buf(&descriptor, begin, bytes, kHandleIsDmaBuf, 0));
  }
  CudaResult flush_gpudirect_writes() override {
    if (calls_.flush_gpudirect_writes == nullptr) return CudaResult::not_supported;
    return result(calls_.flush_gpudirect_writes(kFlushCurrentContext, kFlushToOwner));
  }
  CudaResult stream_create(StreamHandle& stream) override {
    return result(calls_.stream_create(&stream, kStreamNonBlocking));
  }
  CudaResult stream_destroy(StreamHandle stream) override { return result(calls_.stream_destroy(stream)); }
  CudaResult stream_synchronize(StreamHandle stream) override { return result(calls_.stream_synchronize(stream)); }
  CudaResult event_create(EventHandle& event) override { return result(calls_.event_create(&event, 0)); }
  CudaResult event_create_untimed(EventHandle& event) override {
    return result(calls_.event_create(&event, kEventBlockingSyncAndUntimed));
  }
  CudaResult event_destroy(EventHandle event) override { return result(calls_.event_destroy(event)); }
  CudaResult event_record(EventHandle event, StreamHandle stream) override {
    return result(calls_.event_record(event, stream));
  }
  CudaResult event_query(EventHandle event) override { return result(calls_.event_query(event)); }
  CudaResult event_synchronize(EventHandle event) override { return result(calls_.event_synchronize(event)); }
  CudaResult event_milliseconds(float& milliseconds, EventHandle from, EventHandle to) override {
    return result(calls_.event_milliseconds(&milliseconds, from, to));
  }
  const char* error_name(CudaResult code) override {
    const char* name = nullptr;
    calls_.error_name(static_cast<Code>(code), &name);
    return name != nullptr ? name : "an unknown CUDA error";
  }

 private:
  static CudaResult result(Code code) noexcept { return static_cast<CudaResult>(code); }
  std::unique_ptr<SymbolSource> symbols_;  // keeps the library loaded
  Calls calls_;
};

/// Fills in the calls, and remembers the name of the first missing call.
class Binder {
 public:
  explicit Binder(SymbolSource& symbols) : symbols_(symbols) {}

  template <class Function>
  Binder& operator()(Function*& call, const char* name) {
    call = reinterpret_cast<Function*>(symbols_.find(name));
    if (call == nullptr && missing_ == nullptr) missing_ = name;
    return *this;
  }
  /// Fills in a call that older drivers lack, and that the program does not need.
  template <class Function>
  void optional(Function*& call, const char* name) {
    call = reinterpret_cast<Function*>(symbols_.find(name));
  }
  [[nodiscard]] const char* missing() const { return missing_; }

 private:
  SymbolSource& symbols_;
  const char* missing_ = nullptr;
};

class SharedLibrary final : public SymbolSource {
 public:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  // Never closed: the driver starts threads and registers handlers that outlive every owner of this object.
  ~SharedLibrary() override = default;
  void* find(const char* name) override { return dlsym(handle_, name); }

 private:
  void* handle_;
};

}  // namespace

Result<std::unique_ptr<CudaDriver>> bind_cuda_driver(std::unique_ptr<SymbolSource> symbols) {
  TRIBUTARY_ASSERT(symbols != nullptr, "the CUDA driver is bound to no symbols");
  Calls calls{};
  Binder bind(*symbols);
  bind(calls.init, "cuInit")(calls.driver_version, "cuDriverGetVersion")(calls.device_count, "cuDeviceGetCount");
  bind(calls.device_name, "cuDeviceGetName")(calls.device_attribute, "cuDeviceGetAttribute");
  bind(calls.device_bus_id, "cuDeviceGetPCIBusId");
  bind(calls.primary_context_retain, "cuDevicePrimaryCtxRetain")(calls.primary_context_release,
                                                                 "cuDevicePrimaryCtxRelease_v2");
  bind(calls.context_push, "cuCtxPushCurrent_v2")(calls.context_pop, "cuCtxPopCurrent_v2");
  bind(calls.module_load, "cuModuleLoadData")(calls.module_unload, "cuModuleUnload")(calls.module_function,
                                                                                     "cuModuleGetFunction");
  bind(calls.resident_blocks, "cuOccupancyMaxActiveBlocksPerMultiprocessor")(calls.launch, "cuLaunchKernel");
  bind(calls.memory_allocate, "cuMemAlloc_v2")(calls.memory_free, "cuMemFree_v2");
  bind(calls.host_allocate, "cuMemHostAlloc")(calls.host_free, "cuMemFreeHost")(calls.host_device_address,
                                                                                "cuMemHostGetDevicePointer_v2");
  bind(calls.copy, "cuMemcpyAsync")(calls.stream_create, "cuStreamCreate")(calls.stream_destroy, "cuStreamDestroy_v2");
  bind(calls.stream_synchronize, "cuStreamSynchronize")(calls.event_create, "cuEventCreate")(calls.event_destroy,
                                                                                             "cuEventDestroy_v2");
  bind(calls.event_record, "cuEventRecord")(calls.event_milliseconds, "cuEventElapsedTime")(calls.error_name,
                                                                                            "cuGetErrorName");
  bind(calls.pointer_attributes, "cuPointerGetAttributes")(calls.address_range, "cuMemGetAddressRange_v2");
  bind(calls.event_query, "cuEventQuery")(calls.event_synchronize, "cuEventSynchronize");
  bind.optional(calls.dma_buf, "cuMemGetHandleForAddressRange");
  bind.optional(calls.flush_gpudirect_writes, "cuFlushGPUDirectRDMAWrites");
  if (bind.missing() != nullptr) {
    return fail(Errc::unsupported, std::string("the CUDA driver library has no ") + bind.missing() +
                                       ": install an NVIDIA driver for CUDA 13 (580) or later");
  }
  return std::make_unique<BoundDriver>(std::move(symbols), calls);
}

Result<std::unique_ptr<CudaDriver>> open_cuda_driver() {
  void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return fail(Errc::unsupported, std::string("GPU memory cannot be used: this host has no NVIDIA driver (") +
                                       (reason != nullptr ? reason : "libcuda.so.1 did not load") +
                                       "); host memory works without one");
  }
  auto driver = bind_cuda_driver(std::make_unique<SharedLibrary>(handle));
  if (!driver) return driver;
  if (const CudaResult result = (*driver)->init(); result != CudaResult::success) {
    return fail(Errc::unsupported, std::string("GPU memory cannot be used: the NVIDIA driver did not start (") +
                                       (*driver)->error_name(result) + "); see whether nvidia-smi lists a device");
  }
  return driver;
}

Result<CudaDriver*> cuda_driver_of_process() {
  static std::atomic<CudaDriver*> found{nullptr};
  static std::atomic<unsigned long long> loads_seen{0};
  if (CudaDriver* const driver = found.load(std::memory_order_acquire)) return driver;
  unsigned long long loads = 0;  // number of libraries loaded since the process began
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<unsigned long long*>(out) = info->dlpi_adds;
        return 1;
      },
      &loads);
  if (loads == loads_seen.load(std::memory_order_acquire)) return nullptr;

  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (CudaDriver* const driver = found.load(std::memory_order_acquire)) return driver;
  void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) {
    loads_seen.store(loads, std::memory_order_release);
    return nullptr;
  }
  auto driver = bind_cuda_driver(std::make_unique<SharedLibrary>(handle));
  if (!driver) return std::unexpected(driver.error());
  found.store(driver->get(), std::memory_order_release);
  return driver->release();  // never destroyed: threads may use it until the process ends
}

Error cuda_error(CudaDriver& driver, CudaResult result, std::string what) {
  constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200, kNoBinaryForGpu = 209, kInvalidPtx = 218,
                kUnsupportedPtx = 222, kNotSupported = 801;
  const auto code = [&] {
    switch (static_cast<int>(result)) {
      case kInvalidValue:
        return Errc::bad_argument;
      case kOutOfMemory:
        return Errc::exhausted;
      case kInvalidImage:
      case kNoBinaryForGpu:
      case kInvalidPtx:
      case kUnsupportedPtx:
      case kNotSupported:
        return Errc::unsupported;
      default:
        return Errc::io;
    }
  }();
  return {code, std::move(what) + " failed: " + driver.error_name(result)};
}

}  // namespace tributary::kernels::cuda
