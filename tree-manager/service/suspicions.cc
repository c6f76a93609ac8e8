#include "tree-manager/service/suspicions.h"

#include <algorithm>
#include <utility>

namespace tributary::manager {

bool Suspicions::report(const std::string& aggregator, const Suspicion& suspicion, Clock::TimePoint now) {
  Doubt& doubt = doubts_[aggregator];
  if (doubt.now || now < doubt.trusted_until) return false;
  doubt.now = suspicion;
  return true;
}

bool Suspicions::renewed(const std::string& aggregator, Clock::TimePoint now) {
  const auto found = doubts_.find(aggregator);
  if (found == doubts_.end() || !found->second.now) return false;
  Doubt& doubt = found->second;
  doubt.now.reset();
  // Forgets earlier doubts if no group has doubted this aggregator for a long time.
  if (now - doubt.trusted_until > kTrustedLast) doubt.trusted_next = kTrustedFirst;
  doubt.trusted_until = now + doubt.trusted_next;
  doubt.trusted_next = std::min(2 * doubt.trusted_next, kTrustedLast);
  return true;
}

bool Suspicions::registered(const std::string& aggregator) {
  const auto found = doubts_.find(aggregator);
  return found != doubts_.end() && std::exchange(found->second.now, std::nullopt).has_value();
}

std::optional<Suspicion> Suspicions::of(const std::string& aggregator) const {
  const auto found = doubts_.find(aggregator);
  return found == doubts_.end() ? std::nullopt : found->second.now;
}

}  // namespace tributary::manager
