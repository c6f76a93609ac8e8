#pragma once
// Items that one thread gives to one other thread, in order, without a lock.
//
// The ring has a fixed size. If the ring is full, the giver keeps further items, and a later flush() puts them into the
// ring. So put() neither blocks nor fails. In steady state neither side allocates.
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::transport::io_threads {

template <class Item>
class HandOver {
 public:
  /// `capacity` is a power of two.
  explicit HandOver(std::size_t capacity) : items_(capacity) {
    TRIBUTARY_ASSERT(std::has_single_bit(capacity), "a ring of {} items", capacity);
  }
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // ---- Calls of the giver
  void put(Item item) {
    if (kept_.empty() && has_room()) return write(std::move(item));
    kept_.push_back(std::move(item));
  }
  /// Puts into the ring the items that found no room before.
  void flush() {
    while (!kept_.empty() && has_room()) {
      write(std::move(kept_.front()));
      kept_.pop_front();
    }
  }
  [[nodiscard]] bool keeps_some() const noexcept { return !kept_.empty(); }

  // ---- Calls of the taker
  /// Hands over the items that are there now; `handle` may put items into other rings, but not into this one. Returns
  /// the number of items.
  template <class Handle>
  std::size_t take(Handle handle) {
    const std::uint64_t end = written_.load(std::memory_order_acquire);  // pairs with write()
    std::uint64_t next = taken_.load(std::memory_order_relaxed);
    TRIBUTARY_ASSERT(end - next <= items_.size(), "{} items lie in a ring of {}", end - next, items_.size());
    const std::size_t number = end - next;
    while (next != end) {
      Item item = std::move(at(next));
      taken_.store(++next, std::memory_order_release);  // pairs with has_room()
      handle(item);
    }
    return number;
  }
  [[nodiscard]] bool empty() const noexcept {
    return written_.load(std::memory_order_acquire) == taken_.load(std::memory_order_relaxed);
  }

 private:
  Item& at(std::uint64_t number) noexcept { return items_[number & (items_.size() - 1)]; }
  [[nodiscard]] bool has_room() noexcept {
    const std::uint64_t next = written_.load(std::memory_order_relaxed);
    if (next - taken_seen_ < items_.size()) return true;
    taken_seen_ = taken_.load(std::memory_order_acquire);  // pairs with take(): the item was moved out
    return next - taken_seen_ < items_.size();
  }
  void write(Item item) {
    const std::uint64_t next = written_.load(std::memory_order_relaxed);
    at(next) = std::move(item);
    written_.store(next + 1, std::memory_order_release);
  }

  static constexpr std::size_t kLine = 64;
  std::vector<Item> items_;
  // State of the giver
  alignas(kLine) std::atomic<std::uint64_t> written_ = 0;
  std::uint64_t taken_seen_ = 0;
  std::deque<Item> kept_;
  // State of the taker
  alignas(kLine) std::atomic<std::uint64_t> taken_ = 0;
};

}  // namespace tributary::transport::io_threads
