#pragma once
// A CUDA driver without a GPU, for tests: the shared object that this header belongs to is called libcuda.so.1, and has
// the calls that we use, over host memory.
//
//   - Device memory lies at addresses that the processor cannot read: whoever takes it for host memory ends by a
//   signal.
//   - Streams are threads. Nothing is copied before its turn; until then the destination holds poison. A source that
//     changes before its turn gives the wrong bits, as on a device.
//   - Calls that need a context fail without one. Memory that goes while a copy uses it is a misuse, which is counted.
#include <cstddef>
#include <cstdint>
#include <string>

namespace fake_cuda {

inline constexpr int kOutOfMemory = 2, kNotSupported = 801, kIllegalAddress = 700, kLaunchFailed = 719;

/// As before the first use: one device, no failures. What lives goes on, and is still counted.
void reset();

struct Settings {
  int devices = 1;
  bool dma_buf = true;                    // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, and descriptors
  bool gpudirect = true;                  // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  int flush_options = 1;                  // ..._FLUSH_WRITES_OPTIONS
  int write_ordering = 100;               // ..._WRITES_ORDERING
  std::size_t host_bytes_max = SIZE_MAX;  // that can be pinned at once
};
Settings& settings();

/// The call of this name ("cuMemcpyAsync") answers `code` once `after` more of it were good, until reset().
void fail(const std::string& call, int code, std::uint64_t after = 0);
/// The next copy that is in its turn breaks its context, as a fault of a kernel does: every later call answers `code`.
void break_context_in_copy(int code, std::uint64_t after = 0);
/// No stream goes on until release().
void hold();
void release();

/// What lives now, and what was done.
struct Counts {
  std::int64_t contexts = 0, pushed = 0, streams = 0, events = 0, host_blocks = 0, device_blocks = 0;
  std::uint64_t copies = 0, bytes_copied = 0, flushes = 0, descriptors = 0;
  std::uint64_t bytes_staged = 0;  // copied between device and host
  std::uint64_t copies_begun = 0;  // handed to a stream
  std::uint64_t misuses = 0;
};
Counts counts();
std::string misuse();  // the first, in words

/// While it lives other devices of the bus may be let at this device memory, as a kernel module for peers would: its
/// addresses are there. What has its pages then keeps them.
class Opened {
 public:
  Opened(std::uint64_t address, std::size_t bytes);
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened();
  /// False: it is no device memory.
  [[nodiscard]] explicit operator bool() const noexcept { return begin_ != nullptr; }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

/// For tests, without streams: device memory, and what is in it.
std::uint64_t allocate(std::size_t bytes, int device = 0);
void free(std::uint64_t address);
void write(std::uint64_t address, const void* from, std::size_t bytes);
void read(std::uint64_t address, void* to, std::size_t bytes);

}  // namespace fake_cuda
