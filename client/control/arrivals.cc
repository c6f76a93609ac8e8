#include "client/control/arrivals.h"

#include <algorithm>

#include "client/control/control_link.h"
#include "client/control/mutual_proof.h"
#include "tributary/transport/source.h"

namespace tributary::client {

namespace {
std::int64_t nanoseconds(transport::Duration time) {
  return std::chrono::nanoseconds(time).count();
}
std::size_t places_for(std::uint32_t nranks) {
  return std::min<std::size_t>(Arrivals::kStrangers + 2 * std::size_t{nranks}, Arrivals::kAtOnceMax);
}
}  // namespace

Arrivals::Arrivals(std::uint32_t nranks) : room_(places_for(nranks), nanoseconds(kProofLimit)) {}
Arrivals::~Arrivals() = default;

Arrival& Arrivals::enter(ArrivalUser& user, std::unique_ptr<transport::Channel> channel, transport::TimePoint now) {
  now_ = now;
  if (const auto displaced = room_.makes_room()) {
    ++counts_.displaced;
    drop(*displaced);
  }
  const WaitingRoom::Id id = next_++;
  const Source from = transport::source_of(channel->peer());
  auto& arrival = arrivals_[id];
  arrival = std::make_unique<Arrival>(user, *this, id, std::move(channel), make_nonce().value_or(""));
  room_.enter(id, from, nanoseconds(now.time_since_epoch()));
  arrival->challenge();
  return *arrival;
}

void Arrivals::drop(WaitingRoom::Id id) {
  room_.leave(id);
  arrivals_.erase(id);
}

void Arrivals::proved(WaitingRoom::Id id) {
  room_.leave(id);
}

void Arrivals::refuse(WaitingRoom::Id id, const std::string& reason) {
  if (leaving_.contains(id)) return;
  room_.leave(id);
  ++counts_.refused;
  transport::Channel& channel = *arrivals_.at(id)->channel();
  leaving_.emplace(id, now_ + kLastWordsLimit);
  if (leaving_.size() > room_.places()) return channel.close();
  arrivals_.at(id)->say_refusal(reason);
  channel.close_after_flush(kLastWordsLimit);
}

void Arrivals::closed(WaitingRoom::Id id) {
  room_.leave(id);
  closed_.push_back(id);
}

void Arrivals::tick(transport::TimePoint now) {
  now_ = now;
  for (const WaitingRoom::Id id : closed_) arrivals_.erase(id);
  closed_.clear();
  while (const auto late = room_.late(nanoseconds(now.time_since_epoch()))) {
    ++counts_.late;
    drop(*late);
  }
  std::erase_if(leaving_, [&](const auto& leaving) {
    const auto arrival = arrivals_.find(leaving.first);
    if (arrival != arrivals_.end() && now < leaving.second && !arrival->second->channel()->closed()) return false;
    if (arrival != arrivals_.end()) arrivals_.erase(arrival);
    return true;
  });
}

void Arrivals::resume() {
  for (auto& [id, arrival] : arrivals_) arrival->resume();
}

void Arrivals::excuse(transport::Duration absence) {
  room_.excuse(nanoseconds(absence));
}

}  // namespace tributary::client
