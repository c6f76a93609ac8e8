// Streams (which are threads), their copies, and events.
#include <algorithm>
#include <cstring>

#include "tests/fakes/cuda/state.h"

namespace fake_cuda {
namespace {

void run_stream(Stream& stream) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.changed.wait(lock,
                   [&] { return (!stream.works.empty() && !s.held) || (stream.works.empty() && stream.closing); });
    if (stream.works.empty()) return;
    Work work = std::move(stream.works.front());
    stream.works.pop_front();
    stream.busy = true;
    if (work.run) {
      lock.unlock();
      for (int i = 0; i < 3; ++i) std::this_thread::yield();  // let other streams overtake this one
      lock.lock();
      if (s.breaking != kSuccess && s.sticky == kSuccess && s.break_after-- == 0) s.sticky = s.breaking;
      // Copy with the lock held, so that no thread frees the block during the copy.
      work.run(s.sticky == kSuccess);
    }
    if (work.event) work.event->reached = work.number;
    stream.busy = false;
    s.changed.notify_all();
  }
}

Stream* stream_of(void* handle) {
  return static_cast<Stream*>(handle);
}

}  // namespace
}  // namespace fake_cuda

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C names' side of it

extern "C" {

int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemcpyAsync")) return no;
  unsigned char* const target = touchable(s, to, bytes);
  unsigned char* const source = touchable(s, from, bytes);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  if (!s.streams.contains(stream_of(handle))) return kInvalidHandle;
  std::memset(target, kPoison, bytes);
  const bool to_device = block_of(s, to) != nullptr, from_device = block_of(s, from) != nullptr;
  const unsigned char* const host = to_device ? source : target;
  s.copying.insert(host);
  ++s.counts.copies_begun;
  stream_of(handle)->works.push_back({.run = [&s, to, from, bytes, host, to_device, from_device](bool good) {
    s.copying.erase(s.copying.find(host));
    if (!good) return;
    unsigned char* const into = touchable(s, to, bytes);
    const unsigned char* const out_of = touchable(s, from, bytes);
    if ((to_device && block_of(s, to) == nullptr) || (from_device && block_of(s, from) == nullptr)) {
      s.misused("device memory was freed while a copy used it");
      return;
    }
    std::memcpy(into, out_of, bytes);
    ++s.counts.copies;
    s.counts.bytes_copied += bytes;
    if (to_device != from_device) s.counts.bytes_staged += bytes;
  }});
  s.changed.notify_all();
  return kSuccess;
}
int cuStreamCreate(void** handle, unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuStreamCreate")) return no;
  auto stream = std::make_unique<Stream>();
  Stream* const raw = stream.get();
  raw->thread = std::thread([raw] { run_stream(*raw); });
  s.streams.emplace(raw, std::move(stream));
  ++s.counts.streams;
  *handle = raw;
  return kSuccess;
}
int cuStreamDestroy_v2(void* handle) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  const auto at = s.streams.find(stream_of(handle));
  if (at == s.streams.end()) return kInvalidHandle;
  const auto stream = std::move(at->second);
  s.streams.erase(at);
  --s.counts.streams;
  stream->closing = true;
  s.changed.notify_all();
  lock.unlock();
  stream->thread.join();
  return kSuccess;
}
int cuStreamSynchronize(void* handle) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (const int no = gate(s, "cuStreamSynchronize")) return no;
  Stream& stream = *stream_of(handle);
  s.changed.wait(lock, [&] { return stream.works.empty() && !stream.busy; });
  return s.sticky;
}
int cuEventCreate(void** handle, unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuEventCreate")) return no;
  auto event = std::make_shared<Event>();
  *handle = event.get();
  s.events.emplace(event.get(), std::move(event));
  ++s.counts.events;
  return kSuccess;
}
int cuEventDestroy_v2(void* handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.events.erase(static_cast<Event*>(handle)) == 0) return kInvalidHandle;
  --s.counts.events;
  return kSuccess;
}
int cuEventRecord(void* handle, void* stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuEventRecord")) return no;
  const auto event = s.events.at(static_cast<Event*>(handle));
  stream_of(stream)->works.push_back({.run = {}, .event = event, .number = ++event->recorded});
  s.changed.notify_all();
  return kSuccess;
}
int cuEventQuery(void* handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuEventQuery")) return no;
  const Event& event = *static_cast<Event*>(handle);
  return event.reached == event.recorded ? kSuccess : kNotReady;
}
int cuEventSynchronize(void* handle) {
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (const int no = gate(s, "cuEventSynchronize")) return no;
  const Event& event = *static_cast<Event*>(handle);
  s.changed.wait(lock, [&] { return event.reached == event.recorded || s.sticky != kSuccess; });
  return s.sticky;
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0;
  return kSuccess;
}
}  // extern "C"
