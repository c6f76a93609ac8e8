#pragma once
// This manager among those that share a store. One thread takes part in the election: it must always have time for it,
// because a lease that nobody renews ends. Another thread, the keeper, does what takes longer: it opens a leadership's
// store and cluster, and while this manager follows, it reads what followers must know.
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

/// The keeper's work. Called on the keeper's thread alone, one call at a time; unset calls are left out.
struct MemberWork {
  std::function<Result<std::unique_ptr<Reign>>(const Term&)> open;
  /// Takes over what the cluster's store says, before anybody sees the cluster; an error ends the leadership.
  std::function<Status(Cluster&)> begin;
  std::function<void()> follow;  // again and again while another manager leads, or none
};
/// Called on the election's thread when this manager leads no more, or when another leads than before. Must not block.
using LeaderChanged = std::function<void()>;

/// Any thread, except turn() and keep().
class Member final : public LeadershipUser {
 public:
  /// Election and clock must outlive it.
  Member(Election& election, const Clock& clock, LeadershipSettings settings, MemberWork work, LeaderChanged changed);
  ~Member() override;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  /// Starts both threads. Without it, a test calls turn() and keep().
  void start();
  /// Ends both threads, and the leadership, so that another manager need not wait for the lease's end.
  void stop();
  /// Takes part in the election, and returns when to call again.
  Clock::TimePoint turn() { return leadership_.turn(); }
  /// Does the keeper's work that is due, and returns whether there was any.
  bool keep();

  /// Returns the cluster if this manager leads now and has opened its leadership, else nullptr. The answer is good for
  /// this moment: who writes or signs asks once more afterwards.
  [[nodiscard]] std::shared_ptr<Cluster> cluster() const;
  [[nodiscard]] bool leads() const { return cluster() != nullptr; }
  /// Returns another manager that leads, as far as this one knows.
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
  bool opened_ = false;           // the keeper has seen to `term_`
  std::shared_ptr<Reign> reign_;  // while this manager leads
  std::optional<LeaderSeen> leader_;
  std::uint64_t last_revision_ = 0;  // revision of the last leadership that this member saw
  bool failed_ = false;
  std::atomic<std::uint64_t> leaders_seen_{0};
  std::jthread election_thread_, keeper_thread_;
};

}  // namespace tributary::manager
