#include "tree-manager/replicas/member.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tributary::manager {

Member::Member(Election& election, const Clock& clock, LeadershipSettings settings, MemberWork work,
               LeaderChanged changed)
    : work_(std::move(work)),
      changed_(std::move(changed)),
      clock_(clock),
      follow_every_(settings.look_every),
      leadership_(election, *this, clock, settings) {}

Member::~Member() {
  stop();
}

void Member::start() {
  election_thread_ = std::jthread([this](const std::stop_token& stop) { run_election(stop); });
  keeper_thread_ = std::jthread([this](const std::stop_token& stop) { run_keeper(stop); });
}

void Member::stop() {
  if (!election_thread_.joinable()) return;
  election_thread_.request_stop();
  keeper_thread_.request_stop();
  election_thread_.join();
  leadership_.resign();
  keeper_thread_.join();
}

void Member::run_election(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "election");
  while (!stop.stop_requested()) {
    const Clock::TimePoint next = turn();
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, stop, next, [] { return false; });
  }
}

void Member::run_keeper(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "keeper");
  while (!stop.stop_requested()) {
    static_cast<void>(keep());
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, stop, follow_every_, [this] { return term_.has_value() && !opened_; });
  }
}

bool Member::keep() {
  std::optional<Term> wanted;
  {
    const std::lock_guard lock(mutex_);
    if (term_ && opened_) return false;
    wanted = term_;
    opened_ = wanted.has_value();
  }
  if (wanted) {
    open(*wanted);
  } else if (work_.follow) {
    work_.follow();
  }
  return true;
}

/// Opens the leadership's store and cluster, and shows them unless the leadership has ended meanwhile.
void Member::open(const Term& term) {
  const auto started = clock_.now();
  auto opened = work_.open(term);
  Status ok = opened ? Status{} : std::unexpected(opened.error());
  const std::shared_ptr<Reign> reign = opened ? std::shared_ptr<Reign>(std::move(*opened)) : nullptr;
  if (ok && work_.begin) ok = work_.begin(*reign->cluster);
  const std::lock_guard lock(mutex_);
  const bool still = term_ && term_->revision == term.revision;
  if (!still) return;
  if (!ok) {
    spdlog::error("this manager won the election and cannot lead: {}", ok.error().message);
    failed_ = true;
    return;
  }
  reign_ = reign;
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - started);
  spdlog::info("this manager serves as leader, {} ms after it won; fence {}", took.count(), reign->store->fence());
}

std::shared_ptr<Cluster> Member::cluster() const {
  std::shared_ptr<Reign> reign;
  {
    const std::lock_guard lock(mutex_);
    reign = reign_;
  }
  if (!reign || reign->lost() || !leadership_.leads()) return nullptr;
  return {reign, reign->cluster.get()};
}

std::optional<LeaderSeen> Member::leader() const {
  const std::lock_guard lock(mutex_);
  return leader_;
}

void Member::lead(const Term& term) {
  {
    const std::lock_guard lock(mutex_);
    term_ = term;
    opened_ = false;
    failed_ = false;
    leader_.reset();
    last_revision_ = term.revision;
  }
  ++leaders_seen_;
  wake_.notify_all();
  changed_();
}

void Member::follow(const std::optional<LeaderSeen>& leader) {
  std::shared_ptr<Reign> ended;  // ends after the lock, if no request uses it
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    is_news = term_.has_value() || leader_ != leader;
    term_.reset();
    failed_ = false;
    ended = std::exchange(reign_, nullptr);
    leader_ = leader;
    if (leader && leader->revision != last_revision_) {
      last_revision_ = leader->revision;
      ++leaders_seen_;
      spdlog::info("the manager at {} leads, since revision {}", leader->url, leader->revision);
    }
  }
  if (is_news) changed_();
}

bool Member::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_ || (reign_ && reign_->lost());
}

}  // namespace tributary::manager
