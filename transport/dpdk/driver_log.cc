#include "transport/dpdk/driver_log.h"

#include <rte_log.h>

#include <deque>
#include <mutex>
#include <utility>

namespace tributary::transport::dpdk {
namespace {

constexpr std::size_t kKeptLines = 6;

/// Every thread that runs a driver's code may write here. In steady state no thread does, because drivers are silent.
class LastLines {
 public:
  void append(std::string_view text) {
    const std::lock_guard lock(mutex_);
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      line_ += text.substr(0, end);
      if (end == std::string_view::npos) return;
      if (!line_.empty()) lines_.push_back(std::exchange(line_, {}));
      if (lines_.size() > kKeptLines) lines_.pop_front();
      text.remove_prefix(end + 1);
    }
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    std::string all;
    for (const std::string& line : lines_) all += (all.empty() ? "" : "; ") + line;
    lines_.clear();
    return all;
  }

 private:
  std::mutex mutex_;
  std::string line_;
  std::deque<std::string> lines_;
};

LastLines& last_lines() {
  static LastLines lines;
  return lines;
}

ssize_t keep(void*, const char* text, std::size_t bytes) {
  last_lines().append({text, bytes});
  return static_cast<ssize_t>(bytes);
}

}  // namespace

void capture_driver_log() {
  static std::FILE* const stream = [] {
    std::FILE* const opened =
        ::fopencookie(nullptr, "w", {.read = nullptr, .write = keep, .seek = nullptr, .close = nullptr});
    if (opened != nullptr) {
      std::setvbuf(opened, nullptr, _IOLBF, BUFSIZ);
      ::rte_openlog_stream(opened);
    }
    return opened;
  }();
  static_cast<void>(stream);
}

std::string take_driver_log() {
  return last_lines().take();
}

}  // namespace tributary::transport::dpdk
