#pragma once
// A CUDA driver without a GPU, for tests. Its shared object is called libcuda.so.1 and has the CUDA calls that
// Tributary uses, over host memory.
//
//   - Device memory lies at addresses that the processor cannot read: code that uses it as host memory ends by a
//     signal.
//   - Streams are threads. No copy runs before its turn; until then its destination holds poison. If a source changes
//     before the turn of its copy, the copy has wrong bytes, as on a device.
//   - Calls that need a context fail without one. Freeing memory while a copy uses it counts as a misuse.
#include <cstddef>
#include <cstdint>
#include <string>

namespace fake_cuda {

inline constexpr int kOutOfMemory = 2, kNotSupported = 801, kIllegalAddress = 700, kLaunchFailed = 719;

/// Sets one device and no failures, as before the first use. Existing memory and streams stay, and the counts include
/// them.
void reset();

struct Settings {
  int devices = 1;
  bool dma_buf = true;                    // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED; gives descriptors
  bool gpudirect = true;                  // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
  int flush_options = 1;                  // ..._FLUSH_WRITES_OPTIONS
  int write_ordering = 100;               // ..._WRITES_ORDERING
  std::size_t host_bytes_max = SIZE_MAX;  // greatest amount of memory that can be pinned at once
};
Settings& settings();

/// Lets the call of this name ("cuMemcpyAsync") succeed `after` more times and then answer `code`, until reset().
void fail(const std::string& call, int code, std::uint64_t after = 0);
/// Breaks the context of the next copy that gets its turn, like a fault in a CUDA kernel: every later call answers
/// `code`.
void break_context_in_copy(int code, std::uint64_t after = 0);
/// Stops all streams until release().
void hold();
void release();

/// Counts of the objects that exist now, and of the calls so far.
struct Counts {
  std::int64_t contexts = 0, pushed = 0, streams = 0, events = 0, host_blocks = 0, device_blocks = 0;
  std::uint64_t copies = 0, bytes_copied = 0, flushes = 0, descriptors = 0;
  std::uint64_t bytes_staged = 0;  // copied between device and host
  std::uint64_t copies_begun = 0;  // handed to a stream
  std::uint64_t misuses = 0;
  std::int64_t host_blocks_made = 0;  // freed ones included
};
Counts counts();
std::string misuse();  // describes the first misuse

/// During its lifetime, other devices of the bus have access to this device memory, as with a kernel module for peer
/// access: its addresses are mapped. A device that has the memory's pages keeps them afterwards.
class Opened {
 public:
  Opened(std::uint64_t address, std::size_t bytes);
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened();
  /// Returns false if the range is not device memory.
  [[nodiscard]] explicit operator bool() const noexcept { return begin_ != nullptr; }

 private:
  void* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Allocates, writes and reads device memory directly, without streams.
std::uint64_t allocate(std::size_t bytes, int device = 0);
void free(std::uint64_t address);
void write(std::uint64_t address, const void* from, std::size_t bytes);
void read(std::uint64_t address, void* to, std::size_t bytes);

}  // namespace fake_cuda
