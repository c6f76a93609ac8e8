// The interface of the fake driver to the tests, and the driver's state.
#include "tests/fakes/cuda/fake_cuda.h"

#include <sys/mman.h>

#include <cstring>

#include "tests/fakes/cuda/state.h"

namespace fake_cuda {

// The program never destroys the state, because streams of a failed test may still run.
State& state() {
  static State* const s = new State;
  return *s;
}

std::deque<int>& contexts() {
  thread_local std::deque<int> current;
  return current;
}

int gate(State& s, const char* call, bool needs_context) {
  if (!s.initialized) return kNotInitialized;
  if (needs_context && contexts().empty()) return kInvalidContext;
  if (s.sticky != kSuccess) return s.sticky;
  const auto failure = s.failures.find(call);
  if (failure == s.failures.end()) return kSuccess;
  if (failure->second.after == 0) return failure->second.code;
  --failure->second.after;
  return kSuccess;
}

void reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.settings = {};
  s.failures.clear();
  s.sticky = s.breaking = kSuccess;
  s.break_after = 0;
  s.held = false;
  s.misuse.clear();
  const Counts before = s.counts;
  s.counts = {};
  s.counts.contexts = before.contexts;
  s.counts.pushed = before.pushed;
  s.counts.streams = before.streams;
  s.counts.events = before.events;
  s.counts.host_blocks = before.host_blocks;
  s.counts.device_blocks = before.device_blocks;
  s.changed.notify_all();
}

Settings& settings() {
  return state().settings;
}

void fail(const std::string& call, int code, std::uint64_t after) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.failures[call] = {code, after};
}

void break_context_in_copy(int code, std::uint64_t after) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.breaking = code;
  s.break_after = after;
}

void hold() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.held = true;
}

void release() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.held = false;
  s.changed.notify_all();
}

Counts counts() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.counts;
}

std::string misuse() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.misuse;
}

Opened::Opened(std::uint64_t address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const DeviceBlock* const block = block_of(s, address);
  if (block == nullptr || address + bytes > block->base + block->mapped) return;
  begin_ = reinterpret_cast<void*>(block->base);
  bytes_ = block->mapped;
  mprotect(begin_, bytes_, PROT_READ | PROT_WRITE);
}

Opened::~Opened() {
  if (begin_ != nullptr) mprotect(begin_, bytes_, PROT_NONE);
}

std::uint64_t allocate(std::size_t bytes, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.initialized = true;  // device memory implies that CUDA is initialised
  return make_device_block(s, bytes, device);
}

void free(std::uint64_t address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  free_device_block(s, address);
}

void write(std::uint64_t address, const void* from, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (bytes > 0) std::memcpy(touchable(s, address, bytes), from, bytes);
}

void read(std::uint64_t address, void* to, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (bytes > 0) std::memcpy(to, touchable(s, address, bytes), bytes);
}

}  // namespace fake_cuda
