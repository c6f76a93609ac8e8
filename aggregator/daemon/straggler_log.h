#pragma once
// Logs which rank or aggregator is late, once for all lanes of a group.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "aggregator/worker/worker.h"

namespace tributary::aggregator {

/// Any thread may call it.
class StragglerLog {
 public:
  /// Calls `news` after a line of the log, but at most once a second, on the thread that calls note(). An empty function
  /// ends the calls: none is under way when on_news() returns.
  void on_news(std::function<void()> news);
  /// Logs a warning when a child becomes late in the first lane of its group, and a line when it is late in no lane.
  void note(const StragglerNotice& notice);

 private:
  /// Returns true if the notice is worth a line, and logs this line.
  [[nodiscard]] bool log(const StragglerNotice& notice);

  std::mutex mutex_;
  std::function<void()> news_;
  std::chrono::steady_clock::time_point news_at_{};
  /// The number of lanes in which a child is late; key: group, and the child's name. Has no zeros.
  std::map<std::pair<std::uint64_t, std::string>, std::uint32_t> late_;
};

/// Returns the sentence for the log.
[[nodiscard]] std::string text_of(const StragglerNotice& notice);

}  // namespace tributary::aggregator
