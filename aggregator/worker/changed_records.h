#pragma once
// Sealed connections that ended because their bytes make no sense under the seal: somebody changed them on their way,
// or the process at the other end is wrong. Workers add them; the control thread logs them, so that no worker waits for
// a log.
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tributary::aggregator {

/// Any thread may call it.
class ChangedRecords {
 public:
  static constexpr std::size_t kSentencesMax = 8;  // sentences that are kept until the next take(); more are counted

  void add(std::string sentence) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (news_.sentences.size() < kSentencesMax) {
      news_.sentences.push_back(std::move(sentence));
    } else {
      ++news_.more;
    }
  }
  struct News {
    std::vector<std::string> sentences;
    std::uint64_t more = 0;  // connections without a sentence here
  };
  /// Returns the connections since the last call.
  [[nodiscard]] News take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(news_, {});
  }
  [[nodiscard]] std::uint64_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  mutable std::mutex mutex_;
  News news_;
  std::uint64_t count_ = 0;
};

}  // namespace tributary::aggregator
