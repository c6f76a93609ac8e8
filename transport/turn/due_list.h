#pragma once
// Items that wait for a turn, each once, in the order in which they asked for it.
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::transport::turn {

/// `Mark` is a bool member of the item that is true while the item is in this list. `Pointer` is a raw pointer, or a
/// shared pointer that keeps the item alive until its turn is over. Allocates only while the list grows.
template <class Pointer, auto Mark>
class DueList {
 public:
  template <class Item>
  void add(Item& item) {
    if (std::exchange(item.*Mark, true)) return;
    if constexpr (std::is_pointer_v<Pointer>) {
      waiting_.push_back(&item);
    } else {
      waiting_.push_back(item.shared_from_this());
    }
  }
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty() && held_.empty(); }

  /// True if items wait that the last run has not passed over.
  [[nodiscard]] bool has_waiting() const noexcept { return !waiting_.empty(); }

  /// Gives each item its turn. If an item asks for a turn meanwhile, it gets the turn in the next run().
  template <class Turn>
  void run(Turn turn) {
    run_if([](auto&) { return true; }, std::move(turn));
  }
  /// Gives each item its turn for which `may_go` is true, as run() does. The other items stay, ahead of all items that
  /// ask later.
  template <class MayGo, class Turn>
  void run_if(MayGo may_go, Turn turn) {
    TRIBUTARY_ASSERT(running_.empty(), "a turn runs the list that it is in, with {} items", running_.size());
    running_.swap(held_.empty() ? waiting_ : held_);
    running_.insert(running_.end(), std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.end()));
    waiting_.clear();
    for (Rest rest{running_}; rest.next < running_.size();) {
      auto& next = running_[rest.next++];
      auto& item = *next;
      if (!may_go(item)) {
        held_.push_back(std::move(next));
        continue;
      }
      item.*Mark = false;
      turn(item);
    }
  }
  /// Gives each item its turn. If an item asks for a turn meanwhile, it gets the turn in this run.
  template <class Turn>
  void run_all(Turn turn) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      const Pointer item = waiting_[i];
      (*item).*Mark = false;
      turn(*item);
    }
    waiting_.clear();
  }
  /// Takes all items off the list, without a turn.
  void clear() noexcept {
    waiting_.clear();
    held_.clear();
  }

 private:
  /// The items that have had no turn yet. If a turn throws, these items leave the list, and may ask again.
  struct Rest {
    std::vector<Pointer>& items;
    std::size_t next = 0;
    ~Rest() {
      for (; next < items.size(); ++next) (*items[next]).*Mark = false;
      items.clear();
    }
  };

  std::vector<Pointer> waiting_;
  std::vector<Pointer> held_;  // items that the last run has passed over
  std::vector<Pointer> running_;
};

}  // namespace tributary::transport::turn
