#pragma once
// Copies from, to or within a GPU's memory, one after the other. A line has its own stream, and a thread that submits
// copies to the stream and waits for its events. While copies wait, the stream is never empty; no thread waits for the
// whole device.
#include <array>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/gpu/context.h"
#include "client/gpu/copy_rate.h"

namespace tributary::client::gpu {

/// Returns the driver's address of this memory. The host's memory and the GPU's share one address space.
[[nodiscard]] inline DeviceAddress address_of(const void* pointer) noexcept {
  return reinterpret_cast<DeviceAddress>(pointer);
}

class CopyLine {
 public:
  struct Copy {
    DeviceAddress to = 0;
    DeviceAddress from = 0;
    std::size_t bytes = 0;  // 0: nothing is copied, but `done` is called in turn
    bool flush = false;     // before the copy, make the network's writes visible to the GPU
    std::string what;       // name for messages, such as "copying a result to GPU 0"
    /// Called on the line's thread, in the order of the copies, when the copy has ended, with or without an error.
    std::function<void(const Status&)> done;
  };

  /// `name` names the thread.
  [[nodiscard]] static Result<std::unique_ptr<CopyLine>> open(std::shared_ptr<Context> context, const char* name);
  CopyLine(const CopyLine&) = delete;
  CopyLine& operator=(const CopyLine&) = delete;
  /// Waits for all submitted copies.
  ~CopyLine();

  /// Adds a copy to the line. Any thread may call it.
  void submit(Copy copy);
  /// Waits until all copies that were submitted before have ended. Do not call it on the line's thread.
  void drain();
  /// Returns the rate of the copies until now, in bytes per microsecond; 0: not known yet. Any thread may call it.
  [[nodiscard]] double bytes_per_us() const noexcept { return rate_.bytes_per_us(); }

 private:
  static constexpr std::size_t kInFlight = 4;
  struct Flying {
    Copy copy;
    kernels::cuda::EventHandle event;
    CopyRate::TimePoint launched;
  };

  explicit CopyLine(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  [[nodiscard]] Status prepare();
  void run();
  [[nodiscard]] bool take(Copy& copy, bool may_wait);
  void launch(Copy copy);
  void land(Flying flying);
  [[nodiscard]] CudaResult wait_for(kernels::cuda::EventHandle event);
  void end(Copy copy, CudaResult result);

  const std::shared_ptr<Context> context_;
  CopyRate rate_;
  kernels::cuda::StreamHandle stream_ = nullptr;
  std::array<kernels::cuda::EventHandle, kInFlight> events_{};
  // Members that only the line's thread uses.
  CudaResult current_ = CudaResult::success;  // success if the context is current on the thread
  std::deque<Flying> flying_;
  std::deque<kernels::cuda::EventHandle> free_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> waiting_;      // guarded by mutex_
  std::uint64_t unfinished_ = 0;  // guarded by mutex_: number of submitted copies whose `done` has not returned
  bool closing_ = false;          // guarded by mutex_
  std::thread thread_;            // last member: it uses the other members
};

}  // namespace tributary::client::gpu
