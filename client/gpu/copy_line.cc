#include "client/gpu/copy_line.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::client::gpu {
namespace {

// The time to spin before sleeping: the copy of a small operation takes less time than a thread's sleep and wake-up.
constexpr auto kSpin = std::chrono::microseconds(30);

}  // namespace

Result<std::unique_ptr<CopyLine>> CopyLine::open(std::shared_ptr<Context> context, const char* name) {
  std::unique_ptr<CopyLine> line(new CopyLine(std::move(context)));
  if (auto ok = line->prepare(); !ok) return std::unexpected(ok.error());
  const transport::BlockedSignals blocked;
  line->thread_ = std::thread([raw = line.get()] { raw->run(); });
  pthread_setname_np(line->thread_.native_handle(), name);
  return line;
}

Status CopyLine::prepare() {
  CudaDriver& driver = context_->driver();
  const Context::Current current(*context_);
  const auto failed = [&](CudaResult result, const char* what) {
    return std::unexpected(cuda_error(driver, result, what + std::to_string(context_->device())));
  };
  if (current.result() != CudaResult::success) return failed(current.result(), "using the context of GPU ");
  if (const CudaResult result = driver.stream_create(stream_); result != CudaResult::success) {
    stream_ = nullptr;
    return failed(result, "making a stream on GPU ");
  }
  for (auto& event : events_) {
    if (const CudaResult result = driver.event_create_untimed(event); result != CudaResult::success) {
      event = nullptr;
      return failed(result, "making an event on GPU ");
    }
    free_.push_back(event);
  }
  return {};
}

CopyLine::~CopyLine() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  CudaDriver& driver = context_->driver();
  const Context::Current current(*context_);
  if (current.result() != CudaResult::success) return;  // the context is lost, with all its events and its stream
  for (const auto event : events_) {
    if (event != nullptr) driver.event_destroy(event);
  }
  if (stream_ != nullptr) driver.stream_destroy(stream_);
}

void CopyLine::submit(Copy copy) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(copy));
    ++unfinished_;
  }
  changed_.notify_all();
}

void CopyLine::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return unfinished_ == 0; });
}

void CopyLine::run() {
  const Context::Current current(*context_);
  current_ = current.result();
  for (;;) {
    Copy copy;
    while (flying_.size() < kInFlight && take(copy, flying_.empty())) launch(std::move(copy));
    if (flying_.empty()) return;  // take() returned false, because the line closes
    Flying oldest = std::move(flying_.front());
    flying_.pop_front();
    land(std::move(oldest));
  }
}

/// Takes the next copy. Returns false if no copy waits; with `may_wait`, only if the line closes.
bool CopyLine::take(Copy& copy, bool may_wait) {
  std::unique_lock lock(mutex_);
  if (may_wait) changed_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
  if (waiting_.empty()) return false;
  copy = std::move(waiting_.front());
  waiting_.pop_front();
  return true;
}

// Launches a copy. If that fails, the copy still ends in its turn: after all copies that were launched before it.
void CopyLine::launch(Copy copy) {
  CudaDriver& driver = context_->driver();
  CudaResult result = current_;
  const auto launched = std::chrono::steady_clock::now();
  if (result == CudaResult::success && copy.flush) result = driver.flush_gpudirect_writes();
  if (result == CudaResult::success && copy.bytes > 0) result = driver.copy(copy.to, copy.from, copy.bytes, stream_);
  if (result == CudaResult::success) {
    TRIBUTARY_ASSERT(!free_.empty(), "{} copies are under way, and hold every event", flying_.size());
    result = driver.event_record(free_.front(), stream_);
    if (result == CudaResult::success) {
      flying_.push_back({std::move(copy), free_.front(), launched});
      free_.pop_front();
      return;
    }
    driver.stream_synchronize(stream_);  // the copy is under way, and must end before `done` gets the error
  }
  while (!flying_.empty()) {
    Flying oldest = std::move(flying_.front());
    flying_.pop_front();
    land(std::move(oldest));
  }
  end(std::move(copy), result);
}

void CopyLine::land(Flying flying) {
  const CudaResult result = wait_for(flying.event);
  free_.push_back(flying.event);
  if (result == CudaResult::success) rate_.note(flying.copy.bytes, flying.launched, std::chrono::steady_clock::now());
  end(std::move(flying.copy), result);
}

CudaResult CopyLine::wait_for(kernels::cuda::EventHandle event) {
  CudaDriver& driver = context_->driver();
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    const CudaResult result = driver.event_query(event);
    if (result != CudaResult::not_ready) return result;
  } while (std::chrono::steady_clock::now() < until);
  return driver.event_synchronize(event);
}

// Ends a copy. Destroys `done` and all objects that it holds before drain() can return: `done` may own the line itself.
void CopyLine::end(Copy copy, CudaResult result) {
  std::exchange(copy.done, nullptr)(
      result == CudaResult::success ? Status{} : std::unexpected(cuda_error(context_->driver(), result, copy.what)));
  {
    const std::lock_guard lock(mutex_);
    TRIBUTARY_ASSERT(unfinished_ > 0, "'{}' has ended, and no copy was under way", copy.what);
    --unfinished_;
  }
  changed_.notify_all();
}

}  // namespace tributary::client::gpu
