#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "tributary/tributary.h"

namespace tributary::torch {

/// Settings of one group, as in tributary_config. An empty text: not set here.
struct GroupSettings {
  std::string numerics, check_values;
};

/// Returns these settings in the library's form; the texts stay with `settings`.
[[nodiscard]] tributary_config config_of(const GroupSettings& settings, std::chrono::milliseconds timeout);

/// Lets a process group's ranks meet: rank 0 writes its unique id to the Store, and the other ranks read it.
///
/// The Store may live longer than the processes: torchrun keeps it when it starts the ranks again. The other ranks then
/// first find the id of an earlier rank 0. So no rank trusts the id that it finds. Rank 0 overwrites the id. A rank
/// that waits at an address reads the Store again and again; if the Store has another id, it continues with this id. So
/// all ranks meet at the last rank 0's address, and no rank needs to know how often the job was started.
///
/// Each wait handles signals soon, logs the expected event, and ends with the group's time-out.
class Meeting {
 public:
  /// `check_signals` throws an exception to end the wait. Only this group uses `store`.
  Meeting(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout, GroupSettings settings,
          std::function<void()> check_signals);

  /// Blocks until all ranks have met.
  [[nodiscard]] tributary_comm* meet();

 private:
  using Clock = std::chrono::steady_clock;

  void publish(const tributary_unique_id& id, tributary_status status, const std::string& error);
  [[nodiscard]] tributary_comm* meet_as_rank_0();
  [[nodiscard]] tributary_comm* meet_rank_0();
  [[nodiscard]] std::vector<std::uint8_t> fetch_another_id(const std::vector<std::uint8_t>& than);
  [[nodiscard]] tributary_comm* try_to_meet(const tributary_unique_id& id, tributary_status& status);
  [[nodiscard]] bool still_wanted() noexcept;
  /// Checks signals and the clock; logs a line now and then.
  void look();
  [[noreturn]] void give_up() const;
  [[nodiscard]] double waited_seconds() const;

  c10d::Store& store_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const GroupSettings settings_;
  const std::function<void()> check_signals_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point give_up_at_;
  Clock::time_point log_at_;
  Clock::duration log_pause_;
  Clock::time_point look_at_store_at_ = began_;
  std::string waits_for_;
  std::vector<std::uint8_t> found_;  // value of the Store that the rank tries now; empty: none
  std::exception_ptr stop_;          // why still_wanted() returned false; nullptr: the Store has another id
};

}  // namespace tributary::torch
