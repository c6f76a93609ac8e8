#pragma once
// One manager's part in the choice of the leader: a state machine that is driven by turn() and a clock.
//
// Safety does not rest on it. A manager that stood still, and believes that it leads, is refused by the store and by
// the aggregators. It sees to it that one leads soon, and that a manager knows early that it leads no more.
#include <atomic>
#include <chrono>
#include <optional>

#include "tree-manager/service/clock.h"
#include "tree-manager/store/election.h"

namespace tributary::manager {

struct LeadershipSettings {
  std::chrono::milliseconds lease{5000};  // how long a leader may be silent
  std::chrono::milliseconds look_every{500};
};

/// The fate of a leadership. Called by turn() alone.
class LeadershipUser {
 public:
  virtual ~LeadershipUser() = default;
  /// Begins to lead; must not block, because the lease has to be renewed meanwhile.
  virtual void lead(const Term& term) = 0;
  /// Leads no more. nullopt: nobody knows who leads.
  virtual void follow(const std::optional<LeaderSeen>& leader) = 0;
  /// Returns true if this leadership has come to nothing: the store refuses its writes, or it could not begin.
  [[nodiscard]] virtual bool failed() const = 0;
};

/// One thread, but for leads().
class Leadership {
 public:
  /// All must outlive it.
  Leadership(Election& election, LeadershipUser& user, const Clock& clock, LeadershipSettings settings);
  /// Does what is due, and returns when to call again. Blocks as long as calls of the election do.
  Clock::TimePoint turn();
  /// Ends this manager's leadership, if it leads, so that another need not wait for the lease's end.
  void resign();
  /// Returns true while no other manager can lead, as far as this one's clock can tell. Any thread.
  [[nodiscard]] bool leads() const { return clock_.now().time_since_epoch().count() < leads_until_.load(); }

 private:
  Clock::TimePoint follow_turn();
  Clock::TimePoint stand(Clock::TimePoint asked_at);
  Clock::TimePoint lead_turn();
  Clock::TimePoint step_down();
  void extend(Clock::TimePoint asked_at);
  [[nodiscard]] Clock::TimePoint soon() const { return clock_.now() + settings_.lease / 10; }

  Election& election_;
  LeadershipUser& user_;
  const Clock& clock_;
  const LeadershipSettings settings_;
  std::optional<Term> term_;  // while it leads
  Clock::TimePoint renew_at_{};
  Clock::TimePoint stand_at_{};   // not before, because the last leadership failed
  std::optional<LeaseId> spare_;  // a lease with which it stood without success, or nobody knows with which
  Clock::TimePoint spare_until_{};
  std::atomic<Clock::TimePoint::rep> leads_until_{0};
};

}  // namespace tributary::manager
