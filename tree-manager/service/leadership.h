#pragma once
// One manager's part in the choice of the leader: a state machine, driven by turn() and a clock.
//
// Safety does not depend on it: the store and the aggregators refuse a manager that stood still and believes that it
// leads. Its purpose is that a manager leads soon, and that a manager knows early that it no longer leads.
#include <atomic>
#include <chrono>
#include <optional>

#include "tree-manager/service/clock.h"
#include "tree-manager/store/election.h"

namespace tributary::manager {

struct LeadershipSettings {
  std::chrono::milliseconds lease{5000};  // time for which a leader may be silent
  std::chrono::milliseconds look_every{500};
};

/// The beginning and the end of a leadership. Only turn() calls it.
class LeadershipUser {
 public:
  virtual ~LeadershipUser() = default;
  /// Begins to lead. It must not block, because the lease must be renewed meanwhile.
  virtual void lead(const Term& term) = 0;
  /// Called when this manager no longer leads. nullopt: the leader is not known.
  virtual void follow(const std::optional<LeaderSeen>& leader) = 0;
  /// Returns true if this leadership has failed: the store refuses its writes, or it could not begin.
  [[nodiscard]] virtual bool failed() const = 0;
};

/// One thread calls it, except for leads().
class Leadership {
 public:
  /// All arguments must outlive the object.
  Leadership(Election& election, LeadershipUser& user, const Clock& clock, LeadershipSettings settings);
  /// Does the work that is due, and returns the time of the next call. Blocks as long as calls of the election block.
  Clock::TimePoint turn();
  /// Ends this manager's leadership, if it leads, so that another manager need not wait for the end of the lease.
  void resign();
  /// Returns true while no other manager can lead, by this manager's clock. Any thread may call it.
  [[nodiscard]] bool leads() const { return clock_.now().time_since_epoch().count() < leads_until_.load(); }

 private:
  Clock::TimePoint follow_turn();
  Clock::TimePoint stand(Clock::TimePoint asked_at);
  Clock::TimePoint lead_turn();
  Clock::TimePoint step_down();
  void extend(Clock::TimePoint asked_at);
  [[nodiscard]] bool may_complain();
  [[nodiscard]] Clock::TimePoint soon() const { return clock_.now() + settings_.lease / 10; }

  Election& election_;
  LeadershipUser& user_;
  const Clock& clock_;
  const LeadershipSettings settings_;
  std::optional<Term> term_;  // set while it leads
  Clock::TimePoint renew_at_{};
  Clock::TimePoint complain_at_{};  // earliest time of the next complaint about a silent store
  Clock::TimePoint stand_at_{};     // earliest time to stand again after a leadership that failed
  std::optional<LeaseId> spare_;    // lease of an attempt that failed, or whose outcome is not known
  Clock::TimePoint spare_until_{};
  std::atomic<Clock::TimePoint::rep> leads_until_{0};
};

}  // namespace tributary::manager
