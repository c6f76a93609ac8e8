#pragma once
// This manager as one of the managers that share a store. One thread takes part in the election. It does no other
// work, because it must renew the lease in time. A second thread, the keeper, does the long work: it opens the store
// and the cluster of a leadership, and while this manager follows, it reads the texts that followers must know.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tree-manager/replicas/reign.h"
#include "tree-manager/service/leadership.h"

namespace tributary::manager {

/// The keeper's work. Only the keeper's thread makes these calls, and it skips calls that are not set.
struct MemberWork {
  std::function<Result<std::unique_ptr<Reign>>(const Term&)> open;
  /// Takes over the texts in the cluster's store, before other threads see the cluster; an error ends the leadership.
  std::function<Status(Cluster&)> begin;
  std::function<void()> follow;  // called again and again while this manager does not lead
};
/// Called on the election's thread when this manager has lost the lead, or another manager has won it. Must not block.
using LeaderChanged = std::function<void()>;

/// Any thread may call it, except turn() and keep().
class Member final : public LeadershipUser {
 public:
  /// Election and clock must outlive it.
  Member(Election& election, const Clock& clock, LeadershipSettings settings, MemberWork work, LeaderChanged changed);
  ~Member() override;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Starts both threads. A test that does not call this calls turn() and keep().
  void start();
  /// Ends both threads and the leadership, so that another manager need not wait for the lease's end.
  void stop();
  /// Takes part in the election, and returns the time of the next call.
  Clock::TimePoint turn() { return leadership_.turn(); }
  /// Does the keeper's work that is due, and returns whether work was due.
  bool keep();

  /// Returns the cluster if this manager leads now and has opened its leadership, else nullptr. The answer holds for
  /// this moment: a caller that writes or signs must ask once more afterwards.
  [[nodiscard]] std::shared_ptr<Cluster> cluster() const;
  [[nodiscard]] bool leads() const { return cluster() != nullptr; }
  /// Returns the other manager that leads, as far as this manager knows.
  [[nodiscard]] std::optional<LeaderSeen> leader() const;
  [[nodiscard]] std::uint64_t leaders_seen() const noexcept { return leaders_seen_.load(); }

  void lead(const Term& term) override;
  void follow(const std::optional<LeaderSeen>& leader) override;
  [[nodiscard]] bool failed() const override;

 private:
  void open(const Term& term);
  void run_election(const std::stop_token& stop);
  void run_keeper(const std::stop_token& stop);

  const MemberWork work_;
  const LeaderChanged changed_;
  const Clock& clock_;
  const std::chrono::milliseconds follow_every_;
  Leadership leadership_;
  mutable std::mutex mutex_;  // guards the members from here to failed_
  std::condition_variable_any wake_;
  std::optional<Term> term_;      // while this manager leads
  bool opened_ = false;           // the keeper has handled `term_`
  std::shared_ptr<Reign> reign_;  // while this manager leads
  std::optional<LeaderSeen> leader_;
  std::uint64_t last_revision_ = 0;  // revision of the last leadership that this member saw
  bool failed_ = false;
  std::atomic<std::uint64_t> leaders_seen_{0};
  std::jthread election_thread_, keeper_thread_;
};

}  // namespace tributary::manager
