#pragma once
// Copies of a GPU's memory, in one direction or within it, one after the other: a stream of its own, and a thread that
// feeds it and waits for its events. The stream is never empty while there is something to copy, and no one waits for
// the whole device.
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

namespace tributary::client::gpu {

/// The address by which the driver knows this memory. One address space holds the host's memory and the GPU's.
[[nodiscard]] inline DeviceAddress address_of(const void* pointer) noexcept {
  return reinterpret_cast<DeviceAddress>(pointer);
}

class CopyLine {
 public:
  struct Copy {
    DeviceAddress to = 0;
    DeviceAddress from = 0;
    std::size_t bytes = 0;  // 0: the copy only takes its turn
    bool flush = false;     // first make the GPU see what the network has written
    std::string what;       // for messages: "copying a result to GPU 0"
    /// Called on the line's thread, in the order of the copies, when the copy has ended; after an error, too.
    std::function<void(const Status&)> done;
  };

  /// `name` names the thread.
  [[nodiscard]] static Result<std::unique_ptr<CopyLine>> open(std::shared_ptr<Context> context, const char* name);
  CopyLine(const CopyLine&) = delete;
  CopyLine& operator=(const CopyLine&) = delete;
  /// Waits for all submitted copies.
  ~CopyLine();

  /// Any thread.
  void submit(Copy copy);
  /// Waits until all copies submitted before have ended. Must not be called on the line's thread.
  void drain();

 private:
  static constexpr std::size_t kInFlight = 4;
  struct Flying {
    Copy copy;
    kernels::cuda::EventHandle event;
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
  kernels::cuda::StreamHandle stream_ = nullptr;
  std::array<kernels::cuda::EventHandle, kInFlight> events_{};
  // Used by the thread alone.
  CudaResult current_ = CudaResult::success;  // whether the context is current on it
  std::deque<Flying> flying_;
  std::deque<kernels::cuda::EventHandle> free_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> waiting_;      // under mutex_
  std::uint64_t unfinished_ = 0;  // under mutex_: submitted, and done has not returned
  bool closing_ = false;          // under mutex_
  std::thread thread_;            // last: it uses the others
};

}  // namespace tributary::client::gpu
