#include "tree-manager/api/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <vector>

namespace tributary::manager {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<std::pair<std::string, std::string>>;

/// Builds families by hand: the numbers live elsewhere, and a registry would only keep a second copy of them.
class Families {
 public:
  Families& family(const char* name, const char* help, MetricType type) {
    MetricFamily made;
    made.name = std::string("tributary_manager_") + name;
    made.help = help;
    made.type = type;
    all_.push_back(std::move(made));
    return *this;
  }
  Families& value(double number, const Labels& labels = {}) {
    ClientMetric metric;
    for (const auto& [name, text] : labels) {
      ClientMetric::Label label;
      label.name = name;
      label.value = text;
      metric.label.push_back(std::move(label));
    }
    (all_.back().type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = number;
    all_.back().metric.push_back(std::move(metric));
    return *this;
  }
  Families& counter(const char* name, const char* help, double number) {
    return family(name, help, MetricType::Counter).value(number);
  }
  Families& gauge(const char* name, const char* help, double number) {
    return family(name, help, MetricType::Gauge).value(number);
  }
  [[nodiscard]] std::string text() const { return prometheus::TextSerializer().Serialize(all_); }

 private:
  std::vector<MetricFamily> all_;
};

double number(std::uint64_t n) {
  return static_cast<double>(n);
}

void add_cluster(Families& families, const ClusterStats& s) {
  families.family("aggregators_count", "Aggregators by state.", MetricType::Gauge)
      .value(number(s.aggregators_active), {{"state", "active"}})
      .value(number(s.aggregators_draining), {{"state", "draining"}})
      .value(number(s.aggregators_suspected), {{"state", "suspected"}})
      .value(number(s.aggregators_resuming), {{"state", "resuming"}})
      .value(number(s.aggregators_expired), {{"state", "expired"}});
  families.family("groups_count", "Groups by the path they are on.", MetricType::Gauge)
      .value(number(s.groups_with_trees), {{"path", "in-network"}})
      .value(number(s.groups_on_fallback), {{"path", "fallback"}});
  families.gauge("lanes_count", "Lanes that have a tree.", number(s.lanes));
  families.gauge("memory_bytes", "Memory that living aggregators offer to lanes.", number(s.memory_bytes));
  families.gauge("memory_reserved_bytes", "Memory of living aggregators that groups have reserved.",
                 number(s.memory_reserved_bytes));
  families.gauge("aggregators_overcommitted_count", "Aggregators that have promised more memory than they have.",
                 number(s.aggregators_overcommitted));
  families.counter("standstills_total", "Times that the manager itself stood still for a second or longer.",
                   number(s.standstills));
  families.counter("standstill_seconds_total", "Time for which the manager itself stood still, in all.",
                   s.standstill_seconds);
  families.counter("registrations_total", "Registrations of aggregators.", number(s.registrations));
  families.counter("groups_created_total", "Groups that were asked for.", number(s.groups_created));
  families.counter("groups_adopted_total", "Groups that were taken in from their own records.",
                   number(s.groups_adopted));
  families.counter("rebuilds_total", "Groups that were given new trees, or none.", number(s.rebuilds));
  families.family("plans_total", "Attempts to plan trees.", MetricType::Counter)
      .value(number(s.plans_made), {{"outcome", "trees"}})
      .value(number(s.plans_failed), {{"outcome", "none"}});
  families.counter("plan_seconds_total", "Time spent planning.", s.plan_seconds);
  families.counter("suspicions_total", "Aggregators held to be dead because a group saw them fail.",
                   number(s.suspicions));
  families.family("leases_expired_total", "Leases that ran out.", MetricType::Counter)
      .value(number(s.aggregator_leases_expired), {{"of", "aggregator"}})
      .value(number(s.group_leases_expired), {{"of", "group"}});
  families.family("store_writes_total", "Writes to the store.", MetricType::Counter)
      .value(number(s.store_writes), {{"outcome", "done"}})
      .value(number(s.store_failures), {{"outcome", "failed"}});
  families.counter("store_seconds_total", "Time spent writing to the store.", s.store_seconds);
}

void add_door(Families& families, const service::HttpDoor& door) {
  const service::HttpDoorCounts counts = door.counts();
  families.gauge("connections_count", "HTTP connections now.", number(door.count()));
  families.gauge("connections_unproved_count", "HTTP connections now that have shown no token.",
                 number(door.strangers()));
  families.counter("connections_accepted_total", "HTTP connections that came.", number(counts.accepted));
  families.counter("connections_displaced_total",
                   "HTTP connections without a token that were closed because connections_max newer ones came.",
                   number(counts.displaced));
  families.counter("answers_refused_total",
                   "Answers that requests without a token did not get, because too many were still being sent.",
                   number(counts.busy));
}

}  // namespace

void ApiMetrics::count(const std::string& route, unsigned status, std::chrono::nanoseconds took) {
  const std::lock_guard lock(mutex_);
  Requests& requests = requests_[{route, status}];
  ++requests.count;
  requests.seconds += std::chrono::duration<double>(took).count();
}

void ApiMetrics::show_door(const service::HttpDoor& door) {
  const std::lock_guard lock(mutex_);
  door_ = &door;
}

std::string ApiMetrics::text() const {
  Families families;
  add_cluster(families, cluster_.stats());
  const std::lock_guard lock(mutex_);
  if (door_ != nullptr) add_door(families, *door_);
  const auto labels = [](const auto& key) {
    return Labels{{"route", key.first}, {"status", std::to_string(key.second)}};
  };
  families.family("requests_total", "HTTP requests by route and status.", MetricType::Counter);
  for (const auto& [key, requests] : requests_) families.value(number(requests.count), labels(key));
  families.family("request_seconds_total", "Time spent handling HTTP requests.", MetricType::Counter);
  for (const auto& [key, requests] : requests_) families.value(requests.seconds, labels(key));
  return families.text();
}

}  // namespace tributary::manager
