#include "tree-manager/service/leadership.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

// The part of its lease by which a leader gives up early: the store counts the lease by another clock.
constexpr int kMarginOf = 8;  // an eighth of the lease
constexpr int kRenewalsInLease = 3;
constexpr std::chrono::seconds kComplainEvery{30};

}  // namespace

Leadership::Leadership(Election& election, LeadershipUser& user, const Clock& clock, LeadershipSettings settings)
    : election_(election), user_(user), clock_(clock), settings_(settings) {}

Clock::TimePoint Leadership::turn() {
  return term_ ? lead_turn() : follow_turn();
}

/// Counts the lease from the time before the call: the store begins to count later.
void Leadership::extend(Clock::TimePoint asked_at) {
  const auto until = asked_at + settings_.lease - settings_.lease / kMarginOf;
  leads_until_.store(until.time_since_epoch().count());
  renew_at_ = asked_at + settings_.lease / kRenewalsInLease;
}

Clock::TimePoint Leadership::follow_turn() {
  const auto seen = election_.look();
  if (!seen) {
    if (may_complain()) spdlog::warn("nobody knows who leads: {}", seen.error().message);
    user_.follow(std::nullopt);
    return clock_.now() + settings_.look_every;
  }
  const bool mine = spare_ && clock_.now() < spare_until_;
  if (*seen && !mine) {
    spare_.reset();
    user_.follow(*seen);
    return clock_.now() + settings_.look_every;
  }
  if (clock_.now() < stand_at_) {
    user_.follow(std::nullopt);
    return std::min(stand_at_, clock_.now() + settings_.look_every);
  }
  return stand(clock_.now());
}

/// Stands for leader with the lease of the last attempt, if the attempt's outcome is not known: the leader's key may be
/// this manager's own.
Clock::TimePoint Leadership::stand(Clock::TimePoint asked_at) {
  if (!spare_ || clock_.now() >= spare_until_) {
    const auto lease = election_.make_lease(settings_.lease);
    if (!lease) {
      spdlog::warn("this manager cannot stand for leader: {}", lease.error().message);
      user_.follow(std::nullopt);
      return clock_.now() + settings_.look_every;
    }
    spare_ = *lease;
    spare_until_ = asked_at + settings_.lease - settings_.lease / kMarginOf;
  }
  const Clock::TimePoint lease_until = spare_until_;
  const auto won = election_.stand(*spare_);
  if (!won) {
    spdlog::warn("nobody knows whether this manager leads: {}", won.error().message);
    user_.follow(std::nullopt);
    return soon();
  }
  const LeaseId lease = *std::exchange(spare_, std::nullopt);
  if (!*won || clock_.now() >= lease_until) {
    election_.resign(lease);
    return clock_.now();
  }
  term_ = **won;
  leads_until_.store(lease_until.time_since_epoch().count());
  renew_at_ = clock_.now();
  spdlog::info("this manager leads, since revision {}", term_->revision);
  user_.lead(*term_);
  return renew_at_;
}

Clock::TimePoint Leadership::lead_turn() {
  if (user_.failed()) {
    stand_at_ = clock_.now() + settings_.lease;
    return step_down();
  }
  if (!leads()) return step_down();
  const Clock::TimePoint asked_at = clock_.now();
  if (asked_at >= renew_at_) {
    const auto renewed = election_.renew(term_->lease);
    if (renewed && !*renewed) return step_down();
    if (renewed) {
      extend(asked_at);
    } else {
      spdlog::warn("the leader's lease was not renewed: {}", renewed.error().message);
      renew_at_ = soon();
    }
  }
  return leads() ? std::min(renew_at_, soon()) : step_down();
}

Clock::TimePoint Leadership::step_down() {
  TRIBUTARY_ASSERT(term_.has_value(), "a manager without a term steps down at {}", leads_until_.load());
  leads_until_.store(0);
  spdlog::warn("this manager no longer leads; it led since revision {}", term_->revision);
  const LeaseId lease = term_->lease;
  term_.reset();
  user_.follow(std::nullopt);
  election_.resign(lease);
  return clock_.now();
}

/// The store may be away for hours, and is asked twice a second.
bool Leadership::may_complain() {
  if (clock_.now() < complain_at_) return false;
  complain_at_ = clock_.now() + kComplainEvery;
  return true;
}

void Leadership::resign() {
  if (term_) static_cast<void>(step_down());
}

}  // namespace tributary::manager
