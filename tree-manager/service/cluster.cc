#include "tree-manager/service/cluster.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>

#include "tree-manager/service/credentials.h"
#include "tree-manager/store/archive.h"
#include "tree-manager/topology/difference.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr const char* kTopologyKey = "topology";
constexpr const char* kIncarnationsKey = "incarnations";
constexpr const char* kGroupNumbersKey = "group_numbers";
constexpr const char* kOwnKeys[]{kTopologyKey,  kIncarnationsKey,         kGroupNumbersKey,
                                 kRestoringKey, TenantRules::kTenantsKey, TenantRules::kReservationsKey};
// A stride lasts about a minute, because both series grow with the clock: by 1 in a millisecond, or by 1024 for groups.
// The manager writes to the store once for each stride.
constexpr std::uint64_t kIncarnationStride = 1U << 16;
constexpr std::uint64_t kGroupStride = 1U << 26;
constexpr std::uint64_t kFenceAheadMax = 24ULL * 3600 * 1000;  // in milliseconds, because fences follow the clock
constexpr auto kForgetEndedEvery = std::chrono::hours(1);

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns 0 if there is no such value.
std::uint64_t number_in(const std::map<std::string, std::string>& values, const char* key) {
  const auto found = values.find(key);
  std::uint64_t number = 0;
  if (found != values.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
  }
  return number;
}

void log_change(const std::string& how, const TopologyDifference& difference, const Topology& now, std::size_t groups) {
  spdlog::info("the topology was {}: {}; now {} hosts, {} switches, {} links; the {} groups keep their trees", how,
               difference.summary(), now.hosts.size(), now.switches.size(), now.links.size(), groups);
}

}  // namespace

Cluster::Cluster(ClusterSettings settings, Store& store, const SigningKey& key, const Clock& clock)
    : settings_(std::move(settings)),
      store_(store),
      signing_(key),
      clock_(clock),
      lock_(settings_.patience),
      numbers_{.incarnations = NumberSeries(kIncarnationStride,
                                            [this](std::uint64_t number) {
                                              return save([&] {
                                                return store_.put_value(kIncarnationsKey, std::to_string(number));
                                              });
                                            }),
               .groups = NumberSeries(kGroupStride, [this](std::uint64_t number) {
                 return save([&] { return store_.put_value(kGroupNumbersKey, std::to_string(number)); });
               })} {}

Result<std::unique_ptr<Cluster>> Cluster::open(ClusterSettings settings, Store& store, const SigningKey& key,
                                               const Clock& clock, std::optional<Topology> topology_file) {
  auto snapshot = store.load();
  if (!snapshot) return std::unexpected(snapshot.error());
  std::unique_ptr<Cluster> cluster(new Cluster(std::move(settings), store, key, clock));
  if (auto ok = cluster->take_over(std::move(*snapshot), std::move(topology_file)); !ok) {
    return std::unexpected(ok.error());
  }
  return cluster;
}

Status Cluster::take_over(Snapshot snapshot, std::optional<Topology> topology_file) {
  if (!snapshot.values[kRestoringKey].empty()) {
    return fail(
        Errc::mismatch,
        "the store is not whole: a restore into it has not ended; run `tributary-manager import --replace` again");
  }
  const Clock::TimePoint now = clock_.now();
  for (AggregatorRecord& record : snapshot.aggregators) {
    numbers_.incarnations.note_used(record.incarnation);
    const std::string name = record.name;
    aggregators_[name] = {
        .record = std::move(record), .lease_end = now + settings_.aggregator_lease, .key_told = signing_.now()->number};
  }
  for (GroupRecord& record : snapshot.groups) {
    numbers_.groups.note_used(record.id);
    const std::uint64_t id = record.id;
    if (!record.request_id.empty()) requests_[request_name(record.owner, record.request_id)] = id;
    groups_[id] = {.record = std::make_shared<const GroupRecord>(std::move(record)),
                   .lease_end = now + settings_.group_lease};
  }
  numbers_.incarnations.note_promised(number_in(snapshot.values, kIncarnationsKey));
  numbers_.groups.note_promised(number_in(snapshot.values, kGroupNumbersKey));
  if (snapshot.values[kTopologyKey].empty()) snapshot.values.erase(kTopologyKey);
  const auto stored = snapshot.values.find(kTopologyKey);
  topology_from_file_ = topology_file.has_value();
  if (topology_file) {
    if (stored != snapshot.values.end()) {
      spdlog::warn("the configured topology file is used, not the topology that was put over the API earlier");
    }
    use_topology(std::move(*topology_file));
  } else if (stored != snapshot.values.end()) {
    auto topology = parse_topology(stored->second, "the stored topology");
    if (!topology) return std::unexpected(topology.error());
    use_topology(std::move(*topology));
  } else {
    use_topology({});
  }
  auto rules = TenantRules::from_texts(snapshot.values[TenantRules::kTenantsKey],
                                       snapshot.values[TenantRules::kReservationsKey]);
  if (!rules) return std::unexpected(rules.error());
  rules_ = std::move(*rules);
  for (const char* own : kOwnKeys) snapshot.values.erase(own);
  kept_ = std::move(snapshot.values);
  settings_.events->begin(clock_.unix_milliseconds());
  spdlog::info("took over {} aggregators and {} groups from the store", aggregators_.size(), groups_.size());
  return {};
}

void Cluster::use_topology(Topology topology) {
  topology_ = std::make_shared<const Topology>(std::move(topology));
  sites_.clear();
  for (const AggregatorSite& site : topology_->aggregators) sites_[site.name] = &site;
  fabric_ = make_fabric(*topology_);
  allotments_.forget_groups();
  for (const auto& [id, group] : groups_) allotments_.add(*fabric_, *group.record);
  ++generation_;
}

Status Cluster::save(const std::function<Status()>& write) {
  const auto start = std::chrono::steady_clock::now();
  Status ok = lock_.let_readers_pass(write);
  stats_.store_seconds += seconds_since(start);
  ++(ok ? stats_.store_writes : stats_.store_failures);
  if (!ok) spdlog::error("{}", ok.error().message);
  return ok;
}

std::string Cluster::kept(const std::string& key) const {
  const auto lock = lock_.read();
  const auto found = kept_.find(key);
  return found == kept_.end() ? "" : found->second;
}

Status Cluster::keep(const std::string& key, const std::string& text) {
  TRIBUTARY_ASSERT(std::ranges::find(kOwnKeys, key) == std::end(kOwnKeys), "the value {} is the cluster's own", key);
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  if (auto ok = save([&] { return store_.put_value(key, text); }); !ok) return ok;
  kept_[key] = text;
  return {};
}

/// Refuses a fence that no clock could have given: such a fence would leave no room for later leaderships.
Status Cluster::hear_fence(std::uint64_t seen) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  if (seen <= store_.fence()) return {};
  if (seen > static_cast<std::uint64_t>(clock_.unix_milliseconds()) + kFenceAheadMax) {
    return fail(Errc::bad_argument, "fence " + std::to_string(seen) + " is more than a day ahead of the clock");
  }
  const std::uint64_t before = store_.fence();
  if (auto ok = save([&] { return store_.raise_fence(seen); }); !ok) return ok;
  spdlog::warn("fence {} was seen, above this leadership's {}: the store is older; it is {} from now on", seen, before,
               store_.fence());
  return {};
}

std::shared_ptr<const Topology> Cluster::topology() const {
  const auto lock = lock_.read();
  return topology_;
}

bool Cluster::topology_from_file() const {
  const auto lock = lock_.read();
  return topology_from_file_;
}

Status Cluster::put_topology(const std::string& text, const std::string& caller) {
  auto topology = parse_topology(text, "topology");
  if (!topology) return fail(Errc::bad_argument, topology.error().message);
  // Compares outside the lock, because the comparison takes long for a large fabric.
  const TopologyDifference difference = compare(*this->topology(), *topology);
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  if (topology_from_file_) {
    return fail(Errc::mismatch,
                "the topology comes from the manager's configuration; edit that file and send the manager SIGHUP");
  }
  if (auto ok = save([&] { return store_.put_value(kTopologyKey, text); }); !ok) return ok;
  use_topology(std::move(*topology));
  log_change("put by " + caller, difference, *topology_, groups_.size());
  return {};
}

Status Cluster::reload_topology(Topology topology) {
  const TopologyDifference difference = compare(*this->topology(), topology);
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  topology_from_file_ = true;
  use_topology(std::move(topology));
  log_change("reloaded from its file", difference, *topology_, groups_.size());
  return {};
}

TenantsView Cluster::tenants() const {
  const auto lock = lock_.read();
  return {.rules = rules_, .uses = allotments_.uses()};
}

Status Cluster::change_rules(const std::function<Status(TenantRules&)>& change) {
  const auto right = lock_.begin_change();
  if (!right) return std::unexpected(right.error());
  TenantRules next = rules_;
  if (auto ok = change(next); !ok) return ok;
  const auto keep_changed = [&](const char* key, const std::string& before, const std::string& text) -> Status {
    return text == before ? Status{} : save([&] { return store_.put_value(key, text); });
  };
  if (auto ok = keep_changed(TenantRules::kTenantsKey, rules_.tenants_text(), next.tenants_text()); !ok) return ok;
  const std::string reservations = next.reservations_text();
  if (auto ok = keep_changed(TenantRules::kReservationsKey, rules_.reservations_text(), reservations); !ok) return ok;
  rules_ = std::move(next);
  ++generation_;
  return {};
}

ClusterStats Cluster::stats() const {
  const auto lock = lock_.read();
  ClusterStats stats = stats_;
  stats.aggregators_overcommitted = overcommitted().size();
  stats.reservations = rules_.running(clock_.unix_seconds());
  for (const auto& [name, aggregator] : aggregators_) {
    const AggregatorRecord& record = aggregator.record;
    ++(record.expired         ? stats.aggregators_expired
       : record.draining      ? stats.aggregators_draining
       : suspicions_.of(name) ? stats.aggregators_suspected
       : record.resuming      ? stats.aggregators_resuming
                              : stats.aggregators_active);
    if (record.expired) continue;
    stats.memory_bytes += record.memory_bytes;
    stats.memory_reserved_bytes += allotments_.memory_bytes(name, record.incarnation);
  }
  for (const auto& [id, group] : groups_) {
    ++(group.record->lanes.empty() ? stats.groups_on_fallback : stats.groups_with_trees);
    stats.lanes += group.record->lanes.size();
  }
  return stats;
}

Clock::TimePoint Cluster::look() {
  const Clock::TimePoint now = clock_.now();
  const auto absence = standstill_.look(now);
  if (absence == Clock::TimePoint::duration::zero()) return now;
  for (auto& [name, aggregator] : aggregators_) aggregator.lease_end += absence;
  for (auto& [id, group] : groups_) group.lease_end += absence;
  allotments_.excuse(absence);
  const double seconds = std::chrono::duration<double>(absence).count();
  ++stats_.standstills;
  stats_.standstill_seconds += seconds;
  spdlog::warn("the manager stood still for {:.1f} s: every lease is longer by that much", seconds);
  return now;
}

void Cluster::tick() {
  const auto right = lock_.begin_change();
  if (!right) return;  // a pause: the next tick finds that the manager stood still
  const Clock::TimePoint now = look();
  expire_aggregators(now);
  expire_groups(now);
  const bool freed = allotments_.expire(now);
  if (const auto turn = rules_.turn(clock_.unix_seconds()); turn.changed || freed) {
    ++generation_;
    const auto forget = [&] { return store_.put_value(TenantRules::kReservationsKey, rules_.reservations_text()); };
    if (turn.forgot) static_cast<void>(save(forget));
  }
  if (now < forget_ended_at_) return;
  forget_ended_at_ = now + kForgetEndedEvery;
  static_cast<void>(save([&] { return store_.forget_ended(clock_.unix_seconds()); }));
}

}  // namespace tributary::manager
