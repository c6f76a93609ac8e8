#pragma once
// The peer's messages that are not read yet. This class puts them in the order of their numbers, and reads them record
// by record.
//
// With several queue pairs a message may come before a message with a lower number. Early messages wait in the entry of
// their number. There is an entry for each number that may come (credit.h).
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "transport/verbs/wire.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

/// A used receive, as its completion reports it.
struct Came {
  bool here = false;
  bool written = false;  // true: a write with this immediate used it; false: a send
  std::uint32_t queue_pair = 0;
  std::uint32_t index = 0;  // number of the receive
  std::uint32_t immediate = 0;
  std::uint32_t bytes = 0;
};

/// A message, or a payload that was written without a message.
struct Arrived {
  enum class Where : std::uint8_t { ring, cell, place };
  Where where = Where::ring;
  std::uint32_t queue_pair = 0;     // queue pair by which it came
  std::uint32_t index = 0;          // number of the receive, the cell or the place
  std::uint32_t bytes = 0;          // length of the message
  std::uint32_t payload_bytes = 0;  // length of the payload in the cell, until it is served
  std::uint32_t revoking = 0;       // MemoryWindows::revoking() at the arrival: serve the message
                                    // after these revocations
};

class Inbox {
 public:
  // ---- The order of the numbers
  /// The number of messages that were taken in order, which is also the number of the next message.
  [[nodiscard]] std::uint32_t came() const noexcept { return came_; }
  void take_next() noexcept { ++came_; }
  /// Keeps a message that comes too early, by `early` numbers (at least one). Returns false if a message of that number
  /// waits already.
  [[nodiscard]] bool keep_early(std::uint32_t early, const Came& what) noexcept {
    TRIBUTARY_ASSERT(early > 0 && early < early_.size(), "a message is {} numbers early, of at most {}", early,
                     early_.size() - 1);
    Came& entry = early_[(came_ + early) & kNumberMask];
    if (entry.here) return false;
    entry = what;
    ++early_count_;
    return true;
  }
  /// Takes the next message, if it came early.
  [[nodiscard]] std::optional<Came> next_early() noexcept {
    if (early_count_ == 0 || !early_[came_ & kNumberMask].here) return std::nullopt;
    --early_count_;
    return std::exchange(early_[came_ & kNumberMask], {});
  }

  // ---- Messages to read
  void push(const Arrived& what) { arrived_.push_back(what); }
  [[nodiscard]] bool empty() const noexcept { return arrived_.empty(); }
  [[nodiscard]] Arrived& first() noexcept {
    TRIBUTARY_ASSERT(!arrived_.empty(), "no message has arrived, and the first one is read");
    return arrived_.front();
  }
  [[nodiscard]] const Arrived& first() const noexcept { return arrived_.front(); }
  /// Removes the first message, which was read completely.
  Arrived pop() noexcept {
    const Arrived over = first();
    arrived_.pop_front();
    read_to_ = record_end_ = 0;
    return over;
  }
  /// Drops the rest of the first message unread.
  void clear() noexcept {
    arrived_.clear();
    read_to_ = record_end_ = 0;
  }

  /// True if the peer's last message has come, even if it is not read yet.
  [[nodiscard]] bool has_last() const noexcept { return has_last_; }
  void note_last() noexcept { has_last_ = true; }
  /// True if the first message is the peer's last.
  [[nodiscard]] bool first_is_last() const noexcept { return has_last_ && arrived_.size() == 1; }

  // ---- Records of the first message
  /// The position of the next record; the first one is behind the prefix.
  [[nodiscard]] std::size_t read_to() noexcept {
    if (read_to_ == 0) read_to_ = sizeof(MessagePrefix);
    return read_to_;
  }
  void begin_record(std::size_t end) noexcept {
    TRIBUTARY_ASSERT(end > read_to_, "a record ends at {}, before its beginning at {}", end, read_to_);
    record_end_ = end;
  }
  [[nodiscard]] std::size_t record_end() const noexcept { return record_end_; }
  void end_record() noexcept {
    TRIBUTARY_ASSERT(record_end_ >= read_to_, "a record ends at {}, before its beginning at {}", record_end_, read_to_);
    read_to_ = record_end_;
  }

 private:
  std::uint32_t came_ = 0;
  std::array<Came, kNumberMask + 1> early_;  // early messages, by number
  std::uint32_t early_count_ = 0;
  std::deque<Arrived> arrived_;
  std::size_t read_to_ = 0;
  std::size_t record_end_ = 0;  // end of the record that is being read
  bool has_last_ = false;
};

}  // namespace tributary::transport::verbs
