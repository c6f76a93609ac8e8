#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tree-manager/service/cluster.h"
#include "tree-manager/service/credentials.h"
#include "tree-manager/topology/name_range.h"
#include "tributary/protocol/link_rate.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

constexpr std::uint64_t kMemoryMax = 1ULL << 50;
constexpr std::size_t kVersionBytesMax = 63;
constexpr std::uint64_t kClockStepMillisecondsMax = 24ULL * 3600 * 1000;

std::unexpected<Error> unknown(const std::string& name) {
  return fail(Errc::peer_gone, "no aggregator '" + name + "' has a lease here; register it again");
}

Status check_endpoint(const char* what, const Endpoint& endpoint) {
  if (auto ok = check_name(endpoint.host); !ok) {
    return fail(Errc::bad_argument, std::string(what) + ": " + ok.error().message);
  }
  if (endpoint.port == 0) return fail(Errc::bad_argument, std::string(what) + ": port 0 is no port to connect to");
  return {};
}

DataAddresses addresses_of(const AggregatorSpec& spec) {
  DataAddresses addresses{{.at = spec.data}};
  for (const Endpoint& more : spec.data_more) addresses.push_back({.at = more});
  return addresses;
}

Status check_addresses(const AggregatorSpec& spec) {
  if (spec.data_more.size() >= kDataAddressesMax) {
    return fail(Errc::bad_argument, "data_more has " + std::to_string(spec.data_more.size()) +
                                        " addresses: with data there are at most " + std::to_string(kDataAddressesMax));
  }
  if (auto ok = check_endpoint("data", spec.data); !ok) return ok;
  std::set<std::pair<std::string, std::uint16_t>> seen{{spec.data.host, spec.data.port}};
  for (std::size_t i = 0; i < spec.data_more.size(); ++i) {
    const Endpoint& more = spec.data_more[i];
    const std::string what = "data_more[" + std::to_string(i) + "]";
    if (auto ok = check_endpoint(what.c_str(), more); !ok) return ok;
    if (!seen.emplace(more.host, more.port).second) {
      return fail(Errc::bad_argument, what + ": " + to_string(more) + " is there twice");
    }
  }
  return {};
}

/// Returns true if the set of live addresses has changed.
Result<bool> set_down(DataAddresses& addresses, const std::vector<std::uint32_t>& down) {
  DataAddresses next = addresses;
  for (DataAddress& address : next) address.live = true;
  for (const std::uint32_t which : down) {
    if (which >= next.size()) {
      return fail(Errc::bad_argument, "data_down names address " + std::to_string(which) + ", and there are " +
                                          std::to_string(next.size()) + ", from 0 on");
    }
    next[which].live = false;
  }
  return std::exchange(addresses, next) != next;
}

/// Lists the groups of these late ranks, each once.
std::set<std::uint64_t> groups_of(const std::vector<LateRank>& before, const std::vector<LateRank>& now) {
  std::set<std::uint64_t> groups;
  for (const auto* late : {&before, &now}) {
    for (const LateRank& one : *late) groups.insert(one.group);
  }
  return groups;
}

/// Tells the late ranks of these groups, as all their aggregators now say. `late_of` returns those of a group.
void tell_late(ClusterEvents& events, std::int64_t now_ms, const std::set<std::uint64_t>& which, const auto& groups,
               const auto& late_of) {
  for (const std::uint64_t id : which) {
    const auto found = groups.find(id);
    if (found != groups.end()) events.late(now_ms, *found->second.record, late_of(found->second));
  }
}

Status check(const AggregatorSpec& spec, const ExchangeKey& exchange) {
  const auto bad = [](std::string why) -> Status { return fail(Errc::bad_argument, std::move(why)); };
  if (!spec.name.empty()) {
    if (auto ok = check_name(spec.name); !ok) return bad("name: " + ok.error().message);
  }
  if (auto ok = check_name(spec.host); !ok) return bad("host: " + ok.error().message);
  if (auto ok = check_addresses(spec); !ok) return ok;
  if (auto ok = check_endpoint("http", spec.http); !ok) return ok;
  if (spec.memory_bytes > kMemoryMax) return bad("memory_bytes is more than any host has");
  if (spec.line_rate_bits_per_second > kLinkRateMax)
    return bad("line_rate_bits_per_second is more than any link carries");
  if (spec.children_max == 0 || spec.children_max > kChildrenMax) {
    return bad("children_max is " + std::to_string(spec.children_max) + ", not 1 to " + std::to_string(kChildrenMax));
  }
  if (spec.version.size() > kVersionBytesMax) return bad("version is longer than 63 bytes");
  if (auto ok = check_exchange_key(exchange, spec.exchange_key, true); !ok) return ok;
  return {};
}

}  // namespace

/// Lets a running process keep its number if the manager has forgotten its name, because adopted groups refer to the
/// number. If the manager knows the name, the lease has ended, and the process gets a new number.
Result<std::uint64_t> Cluster::incarnation_for(const AggregatorSpec& spec, bool name_known) {
  const auto now = static_cast<std::uint64_t>(clock_.unix_milliseconds());
  const bool plausible = spec.incarnation != 0 && spec.incarnation <= now + kClockStepMillisecondsMax;
  if (name_known || !plausible) return numbers_.incarnations.next(now);
  numbers_.incarnations.note_used(spec.incarnation);
  return spec.incarnation;
}

const AggregatorSite* Cluster::site_of(const AggregatorRecord& record) const {
  const auto site = sites_.find(record.name);
  return site == sites_.end() ? nullptr : site->second;
}

std::string place_of(const AggregatorSite* site, const AggregatorRecord& record) {
  return site == nullptr ? record.host : site->host;
}

std::uint64_t rate_of(const AggregatorSite* site, const AggregatorRecord& record) {
  return site == nullptr ? record.line_rate_bits_per_second
                         : site->line_rate_bits_per_second.value_or(record.line_rate_bits_per_second);
}

Result<Registered> Cluster::register_aggregator(const AggregatorSpec& spec) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  look();
  if (auto ok = manager::check(spec, signing_.now()->exchange); !ok) return std::unexpected(ok.error());
  AggregatorRecord record{.name = spec.name,
                          .incarnation = 0,
                          .host = spec.host,
                          .data = addresses_of(spec),
                          .http = spec.http,
                          .memory_bytes = spec.memory_bytes,
                          .children_max = spec.children_max,
                          .line_rate_bits_per_second = spec.line_rate_bits_per_second,
                          .version = spec.version,
                          .registered_at = clock_.unix_seconds(),
                          .exchange_key = spec.exchange_key,
                          .owner = spec.owner,
                          .security = spec.security};
  if (auto ok = set_down(record.data, spec.data_down); !ok) return std::unexpected(ok.error());
  if (record.name.empty()) record.name = "at-" + spec.data.host + ":" + std::to_string(spec.data.port);
  if (auto ok = check_name(record.name); !ok) {
    return fail(Errc::bad_argument,
                "no name was given, and none can be made of the data address: " + ok.error().message);
  }
  const auto known = aggregators_.find(record.name);
  if (known == aggregators_.end()) {
    if (aggregators_.size() >= settings_.aggregators_max) {
      return fail(Errc::retry, Reason::too_many_aggregators,
                  "the manager has " + std::to_string(aggregators_.size()) + " aggregators already, its limit");
    }
  } else {
    const AggregatorRecord& before = known->second.record;
    if (!before.expired && before.host != record.host) {
      return fail(Errc::mismatch, "an aggregator named '" + record.name + "' is alive on host '" + before.host +
                                      "'; give this aggregator another name, or wait until the other lease ends");
    }
    if (!before.expired && !before.owner.empty() && before.owner != record.owner) {
      return fail(Errc::mismatch, "an aggregator named '" + record.name +
                                      "' is alive, and belongs to another identity; give this aggregator another name");
    }
    record.draining = before.draining;
  }
  record.resuming = spec.draining && !record.draining;
  const auto incarnation = incarnation_for(spec, known != aggregators_.end());
  if (!incarnation) return std::unexpected(incarnation.error());
  record.incarnation = *incarnation;
  if (auto ok = save([&] { return store_.put(record); }); !ok) return std::unexpected(ok.error());
  suspicions_.registered(record.name);
  allotments_.roster().forget();
  ++generation_;
  ++stats_.registrations;
  if (!fabric_->knows_host(place_of(site_of(record), record))) {
    stats_.reasons.add(Reason::not_in_topology);
    spdlog::warn("{}",
                 coded(Reason::not_in_topology, "aggregator " + record.name + " registered from host " + record.host +
                                                    ", which the topology does not have: it gets no tree"));
  }
  spdlog::info("aggregator {} registered: host {}, data {}, {} bytes, incarnation {}", record.name, record.host,
               to_string(record.data), record.memory_bytes, record.incarnation);
  settings_.events->about(clock_.unix_milliseconds(), EventKind::aggregator_registered, record.name,
                          "on host " + record.host + ", data " + to_string(record.data));
  const auto keys = signing_.now();
  Registered answer{.name = record.name,
                    .incarnation = record.incarnation,
                    .lease_seconds = static_cast<std::uint32_t>(settings_.aggregator_lease.count()),
                    .public_key = keys->signing.public_key(),
                    .exchange_key = keys->exchange.public_key()};
  const auto late = known == aggregators_.end() ? std::set<std::uint64_t>() : groups_of(known->second.load.late, {});
  aggregators_[answer.name] = {.record = std::move(record),
                               .lease_end = clock_.now() + settings_.aggregator_lease,
                               .drain_told = spec.draining,
                               .key_told = keys->number};
  tell_late(*settings_.events, clock_.unix_milliseconds(), late, groups_,
            [this](const auto& group) { return group.late(clock_, aggregators_); });
  return answer;
}

Result<bool> Cluster::renew_aggregator(const std::string& name, std::optional<std::uint64_t> incarnation,
                                       const AggregatorLoad& load, const std::vector<std::uint32_t>& data_down,
                                       std::optional<bool> drains) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  look();
  const auto known = aggregators_.find(name);
  if (known == aggregators_.end() || known->second.record.expired) return unknown(name);
  if (incarnation && *incarnation != known->second.record.incarnation) {
    return fail(Errc::peer_gone, "another process has registered as aggregator '" + name +
                                     "' since; register again under a name of its own");
  }
  AggregatorRecord& record = known->second.record;
  const auto changed = set_down(record.data, data_down);
  if (!changed) return std::unexpected(changed.error());
  known->second.lease_end = clock_.now() + settings_.aggregator_lease;
  const AggregatorLoad before = std::exchange(known->second.load, load);
  known->second.load_at = clock_.now();
  if (before.late != load.late) {
    tell_late(*settings_.events, clock_.unix_milliseconds(), groups_of(before.late, load.late), groups_,
              [this](const auto& group) { return group.late(clock_, aggregators_); });
  }
  if (suspicions_.renewed(name, clock_.now())) {
    allotments_.roster().forget();
    ++generation_;
    spdlog::info("aggregator {} has renewed its lease: it is not held to be dead any more", name);
    settings_.events->about(clock_.unix_milliseconds(), EventKind::aggregator_back, name,
                            "has renewed its lease: it is not held to be dead any more");
  }
  const std::uint64_t key = signing_.now()->number;
  if (std::exchange(known->second.key_told, key) != key) {
    allotments_.roster().forget();
    ++generation_;
    spdlog::info("aggregator {} learns the manager's new signing key", name);
  }
  const bool resumed = record.resuming && !drains.value_or(false);
  if (resumed) {
    record.resuming = false;
    allotments_.roster().forget();
    ++generation_;
    spdlog::info("aggregator {} takes trees again", name);
  }
  if (*changed) {
    ++record.data_changes;
    allotments_.roster().forget();
    ++generation_;
    spdlog::info("aggregator {} takes connections at {}", name, to_string(record.data));
  }
  // The lease must not end because the disk is full: the next tick tries again.
  if (*changed || resumed) known->second.unsaved = !save([&] { return store_.put(record); });
  if (record.draining) known->second.drain_told = true;
  return record.draining;
}

Status Cluster::remove_aggregator(const std::string& name) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  if (!aggregators_.contains(name)) return unknown(name);
  if (auto ok = save([&] { return store_.remove_aggregator(name); }); !ok) return ok;
  const auto late = groups_of(aggregators_.at(name).load.late, {});
  aggregators_.erase(name);
  tell_late(*settings_.events, clock_.unix_milliseconds(), late, groups_,
            [this](const auto& group) { return group.late(clock_, aggregators_); });
  suspicions_.forget(name);
  allotments_.roster().forget();
  spdlog::info("aggregator {} unregistered", name);
  settings_.events->about(clock_.unix_milliseconds(), EventKind::aggregator_left, name, "has left");
  return {};
}

Status Cluster::set_draining(const std::string& name, bool draining) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  const auto known = aggregators_.find(name);
  if (known == aggregators_.end()) return unknown(name);
  if (known->second.record.draining == draining) return {};
  AggregatorRecord changed = known->second.record;
  changed.draining = draining;
  // A process that knows of the drain refuses lanes until the answer to its next renewal.
  changed.resuming = !draining && known->second.drain_told;
  if (auto ok = save([&] { return store_.put(changed); }); !ok) return ok;
  // A process that has not learned yet that the drain before has ended refuses lanes as if it knew of this drain.
  if (draining) known->second.drain_told = known->second.record.resuming;
  known->second.record = std::move(changed);
  allotments_.roster().forget();
  if (!draining && !known->second.record.resuming) ++generation_;
  settings_.events->about(clock_.unix_milliseconds(), draining ? EventKind::drained : EventKind::undrained, name,
                          draining ? "is draining" : "no longer drains");
  spdlog::info("aggregator {} {}", name,
               draining                        ? "is draining"
               : known->second.record.resuming ? "no longer drains, and learns so at its next renewal"
                                               : "no longer drains: it had not heard of the drain");
  return {};
}

AggregatorView Cluster::view(const Aggregator& aggregator) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(aggregator.lease_end - clock_.now()).count();
  AggregatorView view{
      .record = aggregator.record,
      .load = aggregator.load,
      .memory_reserved_bytes = allotments_.memory_bytes(aggregator.record.name, aggregator.record.incarnation),
      .lease_milliseconds_left = aggregator.record.expired ? 0 : std::max<std::int64_t>(0, left),
      .placed = fabric_->knows_host(place_of(site_of(aggregator.record), aggregator.record)),
      .suspected = suspicions_.of(aggregator.record.name)};
  view.record.host = place_of(site_of(aggregator.record), aggregator.record);
  return view;
}

Result<AggregatorView> Cluster::aggregator(const std::string& name) const {
  const auto lock = lock_.read();
  const auto known = aggregators_.find(name);
  if (known == aggregators_.end()) return fail(Errc::peer_gone, "no aggregator has the name '" + name + "'");
  return view(known->second);
}

std::vector<AggregatorView> Cluster::aggregators() const {
  const auto lock = lock_.read();
  std::vector<AggregatorView> views;
  views.reserve(aggregators_.size());
  for (const auto& [name, aggregator] : aggregators_) views.push_back(view(aggregator));
  return views;
}

void Cluster::expire_aggregators(Clock::TimePoint now) {
  for (auto it = aggregators_.begin(); it != aggregators_.end();) {
    Aggregator& aggregator = it->second;
    if (!aggregator.record.expired && aggregator.lease_end <= now) {
      spdlog::warn("aggregator {} did not renew its lease: no new tree uses it", it->first);
      aggregator.record.expired = true;
      settings_.events->about(clock_.unix_milliseconds(), EventKind::aggregator_expired, it->first,
                              "did not renew its lease: no new tree uses it");
      tell_late(*settings_.events, clock_.unix_milliseconds(), groups_of(aggregator.load.late, {}), groups_,
                [this](const auto& group) { return group.late(clock_, aggregators_); });
      allotments_.roster().forget();
      aggregator.unsaved = true;
      ++stats_.aggregator_leases_expired;
    }
    if (aggregator.unsaved && save([&] { return store_.put(aggregator.record); })) aggregator.unsaved = false;
    const bool forget = aggregator.record.expired && !aggregator.record.draining &&
                        aggregator.lease_end + settings_.expired_kept <= now;
    if (forget && save([&] { return store_.remove_aggregator(it->first); })) {
      suspicions_.forget(it->first);
      it = aggregators_.erase(it);
      allotments_.roster().forget();
    } else {
      ++it;
    }
  }
}

}  // namespace tributary::manager
