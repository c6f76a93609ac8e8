#include "aggregator/daemon/listen_places.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tributary::aggregator {

using transport::TimePoint;

ListenPlaces::ListenPlaces(const std::vector<Endpoint>& wanted, ListenWays ways)
    : ways_(std::move(ways)), places_(wanted.size()) {
  for (std::size_t i = 0; i < wanted.size(); ++i) places_[i].shown.at = wanted[i];
}

Status ListenPlaces::open() {
  std::string reasons;
  bool any = false;
  for (Place& place : places_) {
    const auto ok = listen_at(place);
    show(place, ok.has_value(), ok ? "" : ok.error().message);
    any = any || ok;
    if (ok) continue;
    reasons += (reasons.empty() ? "" : " ") + ok.error().message;
    // Port 0 makes the system choose a port: without a chosen port, there is no address to give to the manager.
    if (place.shown.at.port == 0) return ok;
  }
  if (!any) return fail(Errc::io, reasons);
  for (const Place& place : places_) {
    if (!place.shown.live)
      spdlog::warn("{} The aggregator serves at the other addresses, and tries again", place.shown.why_not);
  }
  return {};
}

Status ListenPlaces::listen_at(Place& place) {
  if (place.listener) return {};
  auto listener = ways_.open(place.shown.at);
  if (!listener) return std::unexpected(listener.error());
  place.listener = std::move(*listener);
  const std::lock_guard lock(mutex_);
  place.shown.at.port = place.listener->local().port;
  return {};
}

void ListenPlaces::tick(TimePoint now) {
  if (now < next_probe_) return;
  next_probe_ = now + kProbePeriod;
  for (Place& place : places_) look_at(place, now);
  if (!std::exchange(changed_, false)) return;
  const std::lock_guard lock(call_mutex_);
  if (call_) call_();
}

void ListenPlaces::look_at(Place& place, TimePoint now) {
  const auto ok = ways_.probe(place.shown.at.host);
  if (place.shown.live) {
    if (!place.since) place.since = now;
    if (!ok) dies(place, ok.error().message, now);
    return;
  }
  if (!ok) {
    place.back_since.reset();
    return show(place, false, ok.error().message);
  }
  if (!place.back_since) place.back_since = now;
  if (now - *place.back_since < place.stay) return;
  if (const auto opened = listen_at(place); !opened) {
    place.back_since.reset();
    return show(place, false, opened.error().message);
  }
  lives(place, now);
}

void ListenPlaces::dies(Place& place, const std::string& why, TimePoint now) {
  spdlog::warn(
      "no more connections at {}: {}. The aggregator tells the manager, and looks for the address until it is back",
      to_string(place.shown.at), why);
  if (now - *place.since >= kCalm) place.stay = kStayMin;
  place.since.reset();
  place.back_since.reset();
  if (ways_.reopens) place.listener.reset();
  show(place, false, why);
  changed_ = true;
}

void ListenPlaces::lives(Place& place, TimePoint now) {
  spdlog::info("connections come in at {} again", to_string(place.shown.at));
  place.since = now;
  place.stay = std::min(2 * place.stay, kStayMax);
  show(place, true, "");
  changed_ = true;
}

void ListenPlaces::show(Place& place, bool live, const std::string& why_not) {
  const std::lock_guard lock(mutex_);
  place.shown.live = live;
  place.shown.why_not = why_not;
}

std::vector<ListenPlace> ListenPlaces::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<ListenPlace> list;
  list.reserve(places_.size());
  for (const Place& place : places_) list.push_back(place.shown);
  return list;
}

void ListenPlaces::on_change(std::function<void()> call) {
  const std::lock_guard lock(call_mutex_);
  call_ = std::move(call);
}

}  // namespace tributary::aggregator
