#pragma once
// A CUDA driver that only records its calls, for tests of the host side's decisions.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "tributary/kernels/cuda_driver.h"

namespace tributary::kernels::test {

class FakeCudaDriver final : public cuda::CudaDriver {
 public:
  using Result = cuda::CudaResult;
  static constexpr Result kNotFound = static_cast<Result>(500);

  struct Launch {
    std::string kernel;
    unsigned blocks;
    unsigned threads;
    cuda::StreamHandle stream;
    bool in_context;  // true: the library's context was current
    void** arguments;
  };

  // Answers of the driver, for tests to change.
  int devices = 1;
  int capability_major = 9;
  int capability_minor = 0;
  int multiprocessors = 132;
  int blocks_per_multiprocessor = 4;
  std::string missing_kernel;
  std::map<std::string, Result> failures;  // by the method's name

  // Calls that the driver has seen.
  std::vector<Launch> launches;
  int contexts_retained = 0;
  int contexts_pushed = 0;
  int modules_loaded = 0;
  int allocations = 0;
  cuda::ReduceArguments last_reduce{};
  cuda::PartialArguments last_partial{};

  Result init() override { return outcome("init"); }
  Result driver_version(int& version) override {
    version = 12040;
    return outcome("driver_version");
  }
  Result device_count(int& count) override {
    count = devices;
    return outcome("device_count");
  }
  Result device_name(char* name, int bytes, int) override {
    std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
    return outcome("device_name");
  }
  Result device_attribute(int& value, cuda::DeviceAttribute attribute, int) override {
    switch (attribute) {
      case cuda::DeviceAttribute::capability_major:
        value = capability_major;
        break;
      case cuda::DeviceAttribute::capability_minor:
        value = capability_minor;
        break;
      case cuda::DeviceAttribute::multiprocessors:
        value = multiprocessors;
        break;
      default:
        value = 0;
        break;
    }
    return outcome("device_attribute");
  }

  Result device_bus_id(char* id, int bytes, int) override {
    std::strncpy(id, "0000:01:00.0", static_cast<std::size_t>(bytes));
    return outcome("device_bus_id");
  }

  Result primary_context_retain(cuda::ContextHandle& context, int) override {
    context = reinterpret_cast<cuda::ContextHandle>(&contexts_retained);
    return counted("primary_context_retain", contexts_retained, 1);
  }
  Result primary_context_release(int) override { return counted("primary_context_release", contexts_retained, -1); }
  Result context_push(cuda::ContextHandle) override { return counted("context_push", contexts_pushed, 1); }
  Result context_pop() override { return counted("context_pop", contexts_pushed, -1); }

  Result module_load(cuda::ModuleHandle& module, const void* image) override {
    module = static_cast<cuda::ModuleHandle>(const_cast<void*>(image));
    return counted("module_load", modules_loaded, 1);
  }
  Result module_unload(cuda::ModuleHandle) override { return counted("module_unload", modules_loaded, -1); }
  Result module_function(cuda::FunctionHandle& function, cuda::ModuleHandle, const char* name) override {
    if (name == missing_kernel) return kNotFound;
    const auto known = names_.emplace(name, name).first;
    function = reinterpret_cast<cuda::FunctionHandle>(&known->second);
    return outcome("module_function");
  }
  Result resident_blocks(int& blocks, cuda::FunctionHandle, int) override {
    blocks = blocks_per_multiprocessor;
    return outcome("resident_blocks");
  }
  Result launch(cuda::FunctionHandle function, unsigned blocks, unsigned threads, cuda::StreamHandle stream,
                void** arguments) override {
    const std::string& name = *reinterpret_cast<const std::string*>(function);
    launches.push_back({name, blocks, threads, stream, contexts_pushed > 0, arguments});
    if (name.starts_with("reduce_")) std::memcpy(&last_reduce, arguments[0], sizeof(last_reduce));
    if (name.starts_with("partial_")) std::memcpy(&last_partial, arguments[0], sizeof(last_partial));
    return outcome("launch");
  }

  Result memory_allocate(cuda::DeviceAddress& address, std::size_t) override {
    address = 0x1000;
    return counted("memory_allocate", allocations, 1);
  }
  Result memory_free(cuda::DeviceAddress) override { return counted("memory_free", allocations, -1); }
  Result host_allocate(void*& pointer, std::size_t) override {
    pointer = nullptr;
    return outcome("host_allocate");
  }
  Result host_free(void*) override { return outcome("host_free"); }
  Result host_device_address(cuda::DeviceAddress& address, void*) override {
    address = 0;
    return outcome("host_device_address");
  }
  Result copy(cuda::DeviceAddress, cuda::DeviceAddress, std::size_t, cuda::StreamHandle) override {
    return outcome("copy");
  }
  Result pointer_attributes(cuda::PointerAttributes& attributes, cuda::DeviceAddress) override {
    attributes = {};
    return outcome("pointer_attributes");
  }
  Result address_range(cuda::DeviceAddress& begin, std::size_t& bytes, cuda::DeviceAddress within) override {
    begin = within;
    bytes = 0;
    return outcome("address_range");
  }
  Result buffer_id(std::uint64_t& id, cuda::DeviceAddress address) override {
    id = address;
    return outcome("buffer_id");
  }
  Result dma_buf(int&, cuda::DeviceAddress, std::size_t) override { return Result::not_supported; }
  Result flush_gpudirect_writes() override { return Result::not_supported; }
  Result stream_create(cuda::StreamHandle& stream) override {
    stream = nullptr;
    return outcome("stream_create");
  }
  Result stream_destroy(cuda::StreamHandle) override { return outcome("stream_destroy"); }
  Result stream_synchronize(cuda::StreamHandle) override { return outcome("stream_synchronize"); }
  Result event_create(cuda::EventHandle& event) override {
    event = nullptr;
    return outcome("event_create");
  }
  Result event_create_untimed(cuda::EventHandle& event) override { return event_create(event); }
  Result event_destroy(cuda::EventHandle) override { return outcome("event_destroy"); }
  Result event_record(cuda::EventHandle, cuda::StreamHandle) override { return outcome("event_record"); }
  Result event_query(cuda::EventHandle) override { return outcome("event_query"); }
  Result event_synchronize(cuda::EventHandle) override { return outcome("event_synchronize"); }
  Result event_milliseconds(float& milliseconds, cuda::EventHandle, cuda::EventHandle) override {
    milliseconds = 0;
    return outcome("event_milliseconds");
  }
  const char* error_name(Result) override { return "CUDA_ERROR_FAKE"; }

 private:
  Result outcome(const char* method) {
    const auto failure = failures.find(method);
    return failure == failures.end() ? Result::success : failure->second;
  }
  Result counted(const char* method, int& counter, int change) {
    const Result result = outcome(method);
    if (result == Result::success) counter += change;
    return result;
  }
  std::map<std::string, std::string> names_;
};

}  // namespace tributary::kernels::test
