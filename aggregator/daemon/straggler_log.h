#pragma once
// Logs which rank or aggregator is late, once for all lanes of a group.
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "aggregator/worker/worker.h"

namespace tributary::aggregator {

/// Any thread may call it.
class StragglerLog {
 public:
  /// Logs a warning when a child becomes late in the first lane of its group, and a line when it is late in no lane.
  void note(const StragglerNotice& notice);

 private:
  std::mutex mutex_;
  /// The number of lanes in which a child is late; key: group, and the child's name. Has no zeros.
  std::map<std::pair<std::uint64_t, std::string>, std::uint32_t> late_;
};

/// Returns the sentence for the log.
[[nodiscard]] std::string text_of(const StragglerNotice& notice);

}  // namespace tributary::aggregator
