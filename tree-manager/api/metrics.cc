#include "tree-manager/api/metrics.h"

namespace tributary::manager {
namespace {

using service::MetricPage;
using service::MetricType;

void add_cluster(MetricPage& page, const ClusterStats& s) {
  page.begin(MetricType::gauge, "aggregators", "Aggregators by state.", {"state"});
  page.add(s.aggregators_active, {"active"});
  page.add(s.aggregators_draining, {"draining"});
  page.add(s.aggregators_suspected, {"suspected"});
  page.add(s.aggregators_resuming, {"resuming"});
  page.add(s.aggregators_expired, {"expired"});
  page.begin(MetricType::gauge, "groups", "Groups by the path they are on.", {"path"});
  page.add(s.groups_with_trees, {"in-network"});
  page.add(s.groups_on_fallback, {"fallback"});
  page.gauge("lanes", "Lanes that have a tree.", s.lanes);
  page.gauge("memory_bytes", "Memory that living aggregators offer to lanes.", s.memory_bytes);
  page.gauge("memory_reserved_bytes", "Memory of living aggregators that groups have reserved.",
             s.memory_reserved_bytes);
  page.gauge("aggregators_overcommitted", "Aggregators that have promised more memory than they have.",
             s.aggregators_overcommitted);
  page.counter("standstills_total", "Times that the manager itself stood still for a second or longer.", s.standstills);
  page.counter("standstill_seconds_total", "Time for which the manager itself stood still, in all.",
               s.standstill_seconds);
  page.counter("registrations_total", "Registrations of aggregators.", s.registrations);
  page.counter("groups_created_total", "Groups that were asked for.", s.groups_created);
  page.counter("groups_adopted_total", "Groups that were taken in from their own records.", s.groups_adopted);
  page.counter("rebuilds_total", "Groups that were given new trees, or none.", s.rebuilds);
  page.begin(MetricType::counter, "plans_total", "Attempts to plan trees.", {"outcome"});
  page.add(s.plans_made, {"trees"});
  page.add(s.plans_failed, {"none"});
  page.counter("plan_seconds_total", "Time spent planning.", s.plan_seconds);
  page.begin(MetricType::counter, "denied_total", "Requests for trees that got none, by the reason's code.", {"code"});
  for (const auto& [code, count] : s.denied) page.add(count, {code});
  page.counter("displaced_total", "Groups that were told to leave their trees to a group of a higher class.",
               s.displaced);
  page.gauge("reservations", "Reservations that run.", s.reservations);
  page.counter("suspicions_total", "Aggregators held to be dead because a group saw them fail.", s.suspicions);
  page.begin(MetricType::counter, "leases_expired_total", "Leases that ran out.", {"of"});
  page.add(s.aggregator_leases_expired, {"aggregator"});
  page.add(s.group_leases_expired, {"group"});
  page.begin(MetricType::counter, "store_writes_total", "Writes to the store.", {"outcome"});
  page.add(s.store_writes, {"done"});
  page.add(s.store_failures, {"failed"});
  page.counter("store_seconds_total", "Time spent writing to the store.", s.store_seconds);
}

void add_standing(MetricPage& page, const Standing& standing) {
  page.gauge("leader", "1: this manager leads. 0: another manager leads, or none.",
             std::uint64_t{standing.leads ? 1U : 0U});
  page.gauge("fence", "Number of this manager's leadership; 0: it does not lead.", standing.fence);
  page.counter("leaders_seen_total", "Leaderships that this manager has seen, its own included.",
               standing.leaders_seen);
  page.begin(MetricType::counter, "requests_passed_on_total", "Requests that this manager did not answer itself.",
             {"outcome"});
  page.add(standing.passed_on, {"answered"});
  page.add(standing.passed_on_in_vain, {"failed"});
  page.counter("reads_from_copy_total", "Reads answered from a copy of the store, because no leader could be reached.",
               standing.answered_from_copy);
}

void add_door(MetricPage& page, const service::HttpDoor& door) {
  const service::HttpDoorCounts counts = door.counts();
  page.gauge("connections", "HTTP connections now.", door.count());
  page.gauge("connections_unproved", "HTTP connections now that have shown no token.", door.strangers());
  page.counter("connections_accepted_total", "HTTP connections that came.", counts.accepted);
  page.counter("connections_displaced_total",
               "HTTP connections without a token that were closed because connections_max newer ones came.",
               counts.displaced);
  page.counter("answers_refused_total",
               "Answers that requests without a token did not get, because too many were still being sent.",
               counts.busy);
  page.counter("tls_handshakes_failed_total", "Handshakes of TLS that failed.", counts.handshakes_failed);
  page.counter("tls_handshakes_delayed_total",
               "Connections that waited for their handshake of TLS, because too many came from their address.",
               counts.handshakes_delayed);
}

void add_streams(MetricPage& page, const EventStreams& streams) {
  const EventStreamCounts counts = streams.counts();
  page.gauge("event_streams", "Streams of events now.", std::uint64_t{streams.count()});
  page.counter("event_streams_opened_total", "Streams of events that were opened.", counts.opened);
  page.counter("event_streams_refused_total", "Streams of events that were refused, because too many were under way.",
               counts.refused);
  page.counter("event_streams_slow_total",
               "Streams of events that ended because their reader did not take the bytes in time.", counts.slow);
  page.counter("events_sent_total", "Events in streams, once for each reader.", counts.events);
  page.counter("events_missed_total", "Times that a stream told its reader that events were missed.", counts.missed);
}

}  // namespace

void ApiMetrics::count(const std::string& route, unsigned status, std::chrono::nanoseconds took) {
  const std::lock_guard lock(mutex_);
  Requests& requests = requests_[{route, status}];
  ++requests.count;
  requests.seconds += std::chrono::duration<double>(took).count();
}

void ApiMetrics::count(Reason reason) {
  if (reason == Reason::none) return;
  const std::lock_guard lock(mutex_);
  reasons_.add(reason);
}

void ApiMetrics::show_door(const service::HttpDoor& door) {
  const std::lock_guard lock(mutex_);
  door_ = &door;
}

void ApiMetrics::show_streams(const EventStreams& streams) {
  const std::lock_guard lock(mutex_);
  streams_ = &streams;
}

service::MetricPage ApiMetrics::page(const Cluster* cluster, const Standing& standing) const {
  MetricPage page("tributary_manager_");
  add_standing(page, standing);
  ReasonNumbers reasons;
  if (cluster != nullptr) {
    const ClusterStats stats = cluster->stats();
    add_cluster(page, stats);
    reasons = stats.reasons;
  }
  const std::lock_guard lock(mutex_);
  reasons += reasons_;
  page.begin(MetricType::counter, "reasons_total",
             "Denials, and times that a group was told to move or to leave its trees, by the reason's code.", {"code"});
  reasons.for_each([&page](std::string_view code, std::uint64_t count) { page.add(count, {std::string(code)}); });
  if (door_ != nullptr) add_door(page, *door_);
  if (streams_ != nullptr) add_streams(page, *streams_);
  const auto labels = [](const auto& key) { return std::vector{key.first, std::to_string(key.second)}; };
  page.begin(MetricType::counter, "requests_total", "HTTP requests by route and status.", {"route", "status"});
  for (const auto& [key, requests] : requests_) page.add(requests.count, labels(key));
  page.begin(MetricType::counter, "request_seconds_total", "Time spent handling HTTP requests.", {"route", "status"});
  for (const auto& [key, requests] : requests_) page.add(requests.seconds, labels(key));
  return page;
}

}  // namespace tributary::manager
