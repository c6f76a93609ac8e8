#include "client/plugins/nccl/profiler_event.h"

#include <atomic>
#include <utility>

namespace tributary::nccl {
namespace {

std::atomic<abi::ProfilerCallback> g_callback{nullptr};

constexpr int kNoDescriptor = -1;  // a message may use several sockets, or none

}  // namespace

void set_profiler(abi::ProfilerCallback callback) noexcept {
  if (callback != nullptr) g_callback.store(callback, std::memory_order_release);
}

void ProfilerEvent::start(void* parent, Kind kind, std::size_t bytes) noexcept {
  const auto callback = g_callback.load(std::memory_order_acquire);
  if (callback == nullptr || parent == nullptr) return;
  abi::SocketEvent event{
      .type = abi::kSocketEvent, .descriptor = kNoDescriptor, .operation = static_cast<int>(kind), .bytes = bytes};
  callback(&handle_, abi::profiler::kStart, parent, abi::profiler::kSocketPlugin, &event);
}

void ProfilerEvent::stop() noexcept {
  if (handle_ == nullptr) return;
  const auto callback = g_callback.load(std::memory_order_acquire);
  if (callback != nullptr) callback(&handle_, abi::profiler::kStop, nullptr, 0, nullptr);
  handle_ = nullptr;
}

}  // namespace tributary::nccl
