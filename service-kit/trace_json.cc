#include "service-kit/trace_json.h"

#include <sys/stat.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <fstream>

namespace tributary::service {
namespace {

void append(std::string& to, std::uint64_t number, char after) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  to.append(digits.data(), end);
  to += after;
}

/// Returns a text that is equal for all processes with the same kernel and namespace of times.
std::string clock_name() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(in, boot);
  struct stat times{};
  if (::stat("/proc/self/ns/time", &times) != 0) return boot;  // a kernel without such namespaces
  return boot + "/" + std::to_string(times.st_ino);
}

template <class Time>
std::string nanoseconds(Time at) {
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count());
}

}  // namespace

std::string clock_members() {
  return "\"format\":" + std::to_string(kTraceFormat) + ",\"clock\":\"" + clock_name() +
         "\",\"steady_ns\":" + nanoseconds(std::chrono::steady_clock::now()) +
         ",\"calendar_ns\":" + nanoseconds(std::chrono::system_clock::now());
}

std::string segment_members(const SegmentTrace::Recording& recording) {
  constexpr std::size_t kBytesOfOne = 80;
  std::string text = "\"segments_lost\":" + std::to_string(recording.lost) + ",\"segments\":[";
  text.reserve(text.size() + recording.events.size() * kBytesOfOne);
  for (const SegmentEvent& e : recording.events) {
    text += text.back() == '[' ? "[" : ",[";
    append(text, static_cast<std::uint64_t>(e.moment), ',');
    append(text, static_cast<std::uint64_t>(e.at_ns), ',');
    append(text, e.group, ',');
    append(text, e.epoch, ',');
    append(text, e.lane, ',');
    append(text, e.sequence, ',');
    append(text, e.operation, ',');
    append(text, e.bytes, ',');
    append(text, e.member, ']');
  }
  return text + "]";
}

}  // namespace tributary::service
