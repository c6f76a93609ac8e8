#pragma once
// Memory, streams and times on a device, for tests and benchmarks: a failure throws, because no caller could use an
// Error.
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/cuda/context.h"
#include "tributary/kernels/cuda.h"

namespace tributary::kernels::cuda {

inline void require(CudaDriver& driver, CudaResult result, const char* what) {
  if (result != CudaResult::success) throw std::runtime_error(cuda_error(driver, result, what).message);
}
inline void require(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

/// The first device of this host with the kernels loaded; its primary context is current on the thread that opened it.
class Device {
 public:
  /// Returns the device, or a sentence with the reason why there is none.
  static Result<std::unique_ptr<Device>> open() {
    auto driver = open_cuda_driver();
    if (!driver) return std::unexpected(driver.error());
    auto kernels = CudaKernels::load(**driver, 0);
    if (!kernels) return std::unexpected(kernels.error());
    return std::unique_ptr<Device>(new Device(std::move(*driver), std::move(*kernels)));
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    driver_->stream_destroy(stream_);
    current_.reset();
    driver_->primary_context_release(0);
  }

  [[nodiscard]] CudaDriver& driver() noexcept { return *driver_; }
  [[nodiscard]] CudaKernels& kernels() noexcept { return *kernels_; }
  [[nodiscard]] StreamHandle stream() const noexcept { return stream_; }
  void synchronize() { require(*driver_, driver_->stream_synchronize(stream_), "waiting for the stream"); }
  [[nodiscard]] std::string name() {
    char name[256] = "";
    driver_->device_name(name, sizeof(name), 0);
    return name;
  }

 private:
  Device(std::unique_ptr<CudaDriver> driver, std::unique_ptr<CudaKernels> kernels)
      : driver_(std::move(driver)), kernels_(std::move(kernels)) {
    ContextHandle context = nullptr;
    require(*driver_, driver_->primary_context_retain(context, 0), "retaining the primary context");
    current_ = std::make_unique<CurrentContext>(*driver_, context);
    require(*driver_, driver_->stream_create(stream_), "making a stream");
  }

  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<CudaKernels> kernels_;
  std::unique_ptr<CurrentContext> current_;
  StreamHandle stream_ = nullptr;
};

/// Bytes in device memory, at an address with an offset from a multiple of 256.
class DeviceArray {
 public:
  DeviceArray(Device& device, std::size_t bytes, std::size_t misalignment = 0)
      : device_(&device), misalignment_(misalignment), bytes_(bytes) {
    require(device.driver(), device.driver().memory_allocate(base_, bytes + misalignment + 1),
            "allocating device memory");
  }
  DeviceArray(DeviceArray&& other) noexcept
      : device_(other.device_),
        base_(std::exchange(other.base_, 0)),
        misalignment_(other.misalignment_),
        bytes_(other.bytes_) {}
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() {
    if (base_ != 0) device_->driver().memory_free(base_);
  }

  [[nodiscard]] DeviceAddress address() const noexcept { return base_ + misalignment_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void upload(const void* from) { transfer(address(), reinterpret_cast<DeviceAddress>(from), bytes_); }
  void download(void* to) const { download(to, bytes_); }
  void download(void* to, std::size_t bytes) const { transfer(reinterpret_cast<DeviceAddress>(to), address(), bytes); }

 private:
  void transfer(DeviceAddress to, DeviceAddress from, std::size_t bytes) const {
    if (bytes == 0) return;
    require(device_->driver(), device_->driver().copy(to, from, bytes, device_->stream()), "copying");
    device_->synchronize();
  }

  Device* device_;
  DeviceAddress base_ = 0;
  std::size_t misalignment_;
  std::size_t bytes_;
};

/// Pinned host memory that the device reads and writes in place.
class MappedArray {
 public:
  MappedArray(Device& device, std::size_t bytes) : driver_(device.driver()) {
    require(driver_, driver_.host_allocate(pointer_, bytes), "allocating pinned host memory");
    require(driver_, driver_.host_device_address(address_, pointer_), "mapping pinned host memory");
  }
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;
  ~MappedArray() { driver_.host_free(pointer_); }
  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(pointer_); }
  [[nodiscard]] DeviceAddress address() const noexcept { return address_; }

 private:
  CudaDriver& driver_;
  void* pointer_ = nullptr;
  DeviceAddress address_ = 0;
};

/// Measures the milliseconds between two points of a stream.
class Timer {
 public:
  explicit Timer(Device& device) : device_(device) {
    require(device.driver(), device.driver().event_create(from_), "making an event");
    require(device.driver(), device.driver().event_create(to_), "making an event");
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    device_.driver().event_destroy(from_);
    device_.driver().event_destroy(to_);
  }

  template <class Work>
  [[nodiscard]] double seconds(Work&& work) {
    CudaDriver& driver = device_.driver();
    require(driver, driver.event_record(from_, device_.stream()), "recording an event");
    work();
    require(driver, driver.event_record(to_, device_.stream()), "recording an event");
    device_.synchronize();
    float milliseconds = 0;
    require(driver, driver.event_milliseconds(milliseconds, from_, to_), "reading a time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  Device& device_;
  EventHandle from_ = nullptr;
  EventHandle to_ = nullptr;
};

}  // namespace tributary::kernels::cuda
