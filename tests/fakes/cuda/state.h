#pragma once
// The state of the fake driver, which its parts share: memory.cc, streams.cc, devices.cc, and fake_cuda.cc, which the
// tests call. One mutex guards the whole state.
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "tests/fakes/cuda/fake_cuda.h"

namespace fake_cuda {

inline constexpr int kSuccess = 0, kInvalidValue = 1, kNotInitialized = 3, kInvalidDevice = 101, kInvalidContext = 201,
                     kInvalidHandle = 400, kNotFound = 500, kNotReady = 600;
inline constexpr unsigned char kPoison = 0xA5;
inline constexpr std::size_t kPage = 65536;

struct DeviceBlock {
  std::uint64_t base;    // the address that the process sees; no code can read there
  unsigned char* alias;  // the mapping that the driver reads and writes
  std::size_t bytes, mapped;
  int descriptor, device;
  std::uint64_t id;  // number of the block; the driver never uses it for another block
};

struct Event {
  std::uint64_t recorded = 0, reached = 0;
};

struct Work {
  std::function<void(bool good)> run;  // false: the context is broken, so do nothing
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
  std::multiset<const unsigned char*> copying;  // host sides of the copies in progress
  std::map<Stream*, std::unique_ptr<Stream>> streams;
  std::map<Event*, std::shared_ptr<Event>> events;
  std::map<int, int> retained;
  Counts counts;
  std::string misuse;

  void misused(const std::string& what) {
    if (counts.misuses++ == 0) misuse = what;
  }
};

State& state();
/// The devices whose contexts are current on this thread.
std::deque<int>& contexts();

// ---- Call these with the lock held

/// Returns the error that the call must return; kSuccess if the call may go on.
int gate(State& s, const char* call, bool needs_context = true);
DeviceBlock* block_of(State& s, std::uint64_t address);
/// Returns the place where the processor can read and write this address of a copy; null if a part of the range is not
/// mapped.
unsigned char* touchable(State& s, std::uint64_t address, std::size_t bytes);
/// Returns 0 if no memory is left.
std::uint64_t make_device_block(State& s, std::size_t bytes, int device);
int free_device_block(State& s, std::uint64_t address);

}  // namespace fake_cuda
