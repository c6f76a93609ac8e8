#pragma once
// A box for lines about late ranks: the thread that drives a group in shared memory puts them in, and the thread that
// writes the log takes them out. Any thread may call its functions.
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tributary::client::local {

class LateLines {
 public:
  struct Line {
    std::string text;
    bool late = false;  // false: the rank is no longer late
  };
  void add(Line line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  [[nodiscard]] std::vector<Line> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Line> lines_;  // guarded by mutex_
};

}  // namespace tributary::client::local
