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

/// The meeting of a process group's ranks: rank 0 leaves its unique id in the Store, and the other ranks fetch it.
///
/// The Store may outlive the processes: torchrun keeps it when it starts the ranks again, and the others then first
/// find the id that an earlier rank 0 left. So no rank trusts the id that it finds: rank 0 overwrites it, and a rank
/// that waits at an address looks again and again whether the Store has another id by now, and goes there. All ranks
/// end at the last rank 0's address, whatever they found first, and none has to know how often the job was started.
///
/// Each wait is short enough for signals, logs what it waits for, and ends with the group's time-out.
class Meeting {
 public:
  /// `check_signals` throws to end the wait. `store` belongs to this group alone.
  Meeting(c10d::Store& store, int rank, int size, std::chrono::milliseconds timeout,
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
  /// Looks at the clock and the signals; logs now and then.
  void look();
  [[noreturn]] void give_up() const;
  [[nodiscard]] double waited_seconds() const;

  c10d::Store& store_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  const std::function<void()> check_signals_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point give_up_at_;
  Clock::time_point log_at_;
  Clock::duration log_pause_;
  Clock::time_point look_at_store_at_ = began_;
  std::string waits_for_;
  std::vector<std::uint8_t> found_;  // the value from the Store that is being tried; empty: none
  std::exception_ptr stop_;          // why still_wanted() said no; nullptr: the Store has another id
};

}  // namespace tributary::torch
