#include "fake_cuda.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace fake_cuda {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotInitialized = 3, kInvalidDevice = 101, kInvalidContext = 201,
              kInvalidHandle = 400, kNotFound = 500, kNotReady = 600;
constexpr unsigned char kPoison = 0xA5;
constexpr std::size_t kPage = 65536;

struct DeviceBlock {
  std::uint64_t base;    // what the process is told; nothing can be read there
  unsigned char* alias;  // where it is
  std::size_t bytes, mapped;
  int descriptor, device;
  std::uint64_t id;  // of no other block that ever was
};

struct Event {
  std::uint64_t recorded = 0, reached = 0;
};

struct Work {
  std::function<void(bool good)> run;  // not good: the context is broken, and nothing happens any more
  std::shared_ptr<Event> event;
  std::uint64_t number = 0;
};

struct Stream {
  std::deque<Work> works;
  bool busy = false, closing = false;
  std::thread thread;
};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  Settings settings;
  bool initialized = false, held = false;
  int sticky = kSuccess;
  int breaking = kSuccess;
  std::uint64_t break_after = 0;
  struct Failure {
    int code;
    std::uint64_t after;
  };
  std::map<std::string, Failure> failures;
  std::map<std::uint64_t, DeviceBlock> device_blocks;
  std::uint64_t next_block_id = 1;
  std::map<unsigned char*, std::size_t> host_blocks;
  std::multiset<const unsigned char*> copying;  // host ends of copies that have not ended
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<Event*, std::shared_ptr<Event>> events;
  std::map<int, int> retained;
  Counts counts;
  std::string misuse;

  void misused(const std::string& what) {
    if (counts.misuses++ == 0) misuse = what;
  }
};

// Never destroyed: streams of a test that failed may still run.
State& state() {
  static State* const s = new State;
  return *s;
}

thread_local std::deque<int> contexts;

/// Whether the call may go on; under the lock.
int gate(State& s, const char* call, bool needs_context = true) {
  if (!s.initialized) return kNotInitialized;
  if (needs_context && contexts.empty()) return kInvalidContext;
  if (s.sticky != kSuccess) return s.sticky;
  const auto failure = s.failures.find(call);
  if (failure == s.failures.end()) return kSuccess;
  if (failure->second.after == 0) return failure->second.code;
  --failure->second.after;
  return kSuccess;
}

DeviceBlock* block_of(State& s, std::uint64_t address) {
  auto at = s.device_blocks.upper_bound(address);
  if (at == s.device_blocks.begin()) return nullptr;
  --at;
  DeviceBlock& block = at->second;
  return address < block.base + block.bytes ? &block : nullptr;
}

/// Where an address of a copy can be touched; null: the range is not all there.
unsigned char* touchable(State& s, std::uint64_t address, std::size_t bytes) {
  DeviceBlock* block = block_of(s, address);
  if (block == nullptr) return reinterpret_cast<unsigned char*>(address);
  if (address + bytes > block->base + block->bytes) return nullptr;
  return block->alias + (address - block->base);
}

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
      for (int i = 0; i < 3; ++i) std::this_thread::yield();  // others overtake it
      lock.lock();
      if (s.breaking != kSuccess && s.sticky == kSuccess && s.break_after-- == 0) s.sticky = s.breaking;
      // Under the lock, so that a block cannot go meanwhile.
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

std::uint64_t make_device_block(State& s, std::size_t bytes, int device) {
  const std::size_t mapped = (std::max<std::size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  const int descriptor = memfd_create("device memory", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(mapped)) != 0) return 0;
  void* alias = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  void* base = mmap(nullptr, mapped, PROT_NONE, MAP_SHARED, descriptor, 0);
  const auto address = reinterpret_cast<std::uint64_t>(base);
  s.device_blocks[address] = {address,          static_cast<unsigned char*>(alias), bytes, mapped, descriptor, device,
                              s.next_block_id++};
  ++s.counts.device_blocks;
  return address;
}

int free_device_block(State& s, std::uint64_t address) {
  const auto at = s.device_blocks.find(address);
  if (at == s.device_blocks.end()) return kInvalidValue;
  munmap(at->second.alias, at->second.mapped);
  munmap(reinterpret_cast<void*>(at->second.base), at->second.mapped);
  close(at->second.descriptor);
  s.device_blocks.erase(at);
  --s.counts.device_blocks;
  return kSuccess;
}

}  // namespace

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
  s.initialized = true;  // whoever has device memory has initialised CUDA
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

using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C names' side of it

extern "C" {

int cuInit(unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.initialized = true;
  return gate(s, "cuInit", false);
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  *count = s.settings.devices;
  return gate(s, "cuDeviceGetCount", false);
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* id, int bytes, int) {
  std::strncpy(id, "0000:01:00.0", static_cast<std::size_t>(bytes));
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (device < 0 || device >= s.settings.devices) return kInvalidDevice;
  switch (attribute) {
    case 16:
      *value = 132;
      break;
    case 75:
      *value = 9;
      break;
    case 116:
      *value = s.settings.gpudirect ? 1 : 0;
      break;
    case 117:
      *value = s.settings.flush_options;
      break;
    case 118:
      *value = s.settings.write_ordering;
      break;
    case 124:
      *value = s.settings.dma_buf ? 1 : 0;
      break;
    default:
      *value = 0;
  }
  return gate(s, "cuDeviceGetAttribute", false);
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuDevicePrimaryCtxRetain", false)) return no;
  if (device < 0 || device >= s.settings.devices) return kInvalidDevice;
  ++s.retained[device];
  ++s.counts.contexts;
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  --s.retained[device];
  --s.counts.contexts;
  if (s.retained[device] < 0) s.misused("a context was released more often than it was retained");
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.initialized) return kNotInitialized;  // and not the error of a broken context: what is left must be given back
  const int device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  if (s.retained[device] < 1) return kInvalidContext;
  contexts.push_back(device);
  ++s.counts.pushed;
  return kSuccess;
}
int cuCtxPopCurrent_v2(void** context) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (contexts.empty()) return kInvalidContext;
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(contexts.back()) + 1);
  contexts.pop_back();
  --s.counts.pushed;
  return kSuccess;
}

int cuModuleLoadData(void**, const void*) {
  return kNotSupported;
}
int cuModuleUnload(void*) {
  return kNotSupported;
}
int cuModuleGetFunction(void**, void*, const char*) {
  return kNotFound;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, std::size_t) {
  return kNotSupported;
}
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) {
  return kNotSupported;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemAlloc")) return no;
  *address = make_device_block(s, bytes, contexts.back());
  return *address != 0 ? kSuccess : kOutOfMemory;
}
int cuMemFree_v2(std::uint64_t address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return free_device_block(s, address);
}
int cuMemHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemHostAlloc")) return no;
  std::size_t pinned = bytes;
  for (const auto& [block, size] : s.host_blocks) pinned += size;
  if (pinned > s.settings.host_bytes_max) return kOutOfMemory;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kOutOfMemory;
  std::memset(memory, kPoison, std::min<std::size_t>(bytes, kPage));
  s.host_blocks[static_cast<unsigned char*>(memory)] = bytes;
  ++s.counts.host_blocks;
  *pointer = memory;
  return kSuccess;
}
int cuMemFreeHost(void* pointer) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto at = s.host_blocks.find(static_cast<unsigned char*>(pointer));
  if (at == s.host_blocks.end()) return kInvalidValue;
  const auto first = s.copying.lower_bound(at->first);
  if (first != s.copying.end() && *first < at->first + at->second)
    s.misused("pinned memory was freed while a copy used it");
  munmap(at->first, at->second);
  s.host_blocks.erase(at);
  --s.counts.host_blocks;
  return kSuccess;
}
int cuMemHostGetDevicePointer_v2(std::uint64_t* address, void* pointer, unsigned) {
  *address = reinterpret_cast<std::uint64_t>(pointer);
  return kSuccess;
}

int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemcpyAsync")) return no;
  unsigned char* const target = touchable(s, to, bytes);
  unsigned char* const source = touchable(s, from, bytes);
  if (target == nullptr || source == nullptr) return kInvalidValue;
  if (s.streams.count(stream_of(handle)) == 0) return kInvalidHandle;
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
int cuPointerGetAttributes(unsigned count, const int* attributes, void** data, std::uint64_t address) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuPointerGetAttributes", false)) return no;
  const DeviceBlock* block = block_of(s, address);
  const bool pinned = std::ranges::any_of(s.host_blocks, [&](const auto& host) {
    const auto begin = reinterpret_cast<std::uint64_t>(host.first);
    return address >= begin && address < begin + host.second;
  });
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 2:
        *static_cast<unsigned*>(data[i]) = block != nullptr ? 2 : (pinned ? 1 : 0);
        break;
      case 7:
        *static_cast<unsigned long long*>(data[i]) = block != nullptr ? block->id : 0;
        break;
      case 8:
        *static_cast<unsigned*>(data[i]) = 0;
        break;
      case 9:
        *static_cast<int*>(data[i]) = block != nullptr ? block->device : -2;
        break;
      default:
        return kInvalidValue;
    }
  }
  return kSuccess;
}
int cuMemGetAddressRange_v2(std::uint64_t* begin, std::size_t* bytes, std::uint64_t within) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemGetAddressRange", false)) return no;
  const DeviceBlock* block = block_of(s, within);
  if (block == nullptr) return kInvalidValue;
  *begin = block->base;
  *bytes = block->bytes;
  return kSuccess;
}
int cuMemGetHandleForAddressRange(void* handle, std::uint64_t begin, std::size_t bytes, int kind, unsigned long long) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuMemGetHandleForAddressRange")) return no;
  const DeviceBlock* block = block_of(s, begin);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (!s.settings.dma_buf) return kNotSupported;
  if (kind != 1 || block == nullptr || begin % page != 0 || bytes % page != 0 ||
      begin + bytes > block->base + block->mapped)
    return kInvalidValue;
  *static_cast<int*>(handle) = dup(block->descriptor);
  ++s.counts.descriptors;
  return kSuccess;
}
int cuFlushGPUDirectRDMAWrites(int, int) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const int no = gate(s, "cuFlushGPUDirectRDMAWrites")) return no;
  ++s.counts.flushes;
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
int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kSuccess;
    case kLaunchFailed:
      *name = "CUDA_ERROR_LAUNCH_FAILED";
      return kSuccess;
    case kNotSupported:
      *name = "CUDA_ERROR_NOT_SUPPORTED";
      return kSuccess;
    default:
      *name = "CUDA_ERROR_OF_THE_FAKE";
      return kSuccess;
  }
}

}  // extern "C"
