#include "aggregator/daemon/status.h"

#include <nlohmann/json.hpp>

namespace tributary::aggregator {

using nlohmann::json;

bool healthy(const DaemonStatus& status) noexcept {
  return status.stuck.empty();
}

namespace {

std::string why_no_joins(const DaemonStatus& status) {
  if (!status.draining.empty()) return status.draining;
  if (!status.has_key) return "the manager was not reached yet, so tokens cannot be verified";
  return {};
}

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

json child_json(const ChildStatus& child) {
  return {{"who", child.who},
          {"contributions", child.lag.contributions},
          {"last", child.lag.last},
          {"lag_seconds", seconds(child.lag.lag)},
          {"lag_longest_seconds", seconds(child.lag.longest)},
          {"waited_part", child.waited_part},
          {"late", child.late},
          {"late_for_seconds", seconds(child.late_for)},
          {"operations_behind", child.operations_behind},
          {"cause", child.late ? json(row_of(child.cause).name) : json()}};
}

json lane_json(const LaneStatus& lane, std::size_t worker) {
  json children = json::array();
  for (const ChildStatus& child : lane.of_children) children.push_back(child_json(child));
  return {{"group", lane.group},
          {"epoch", lane.epoch},
          {"lane", lane.lane},
          {"job", lane.job},
          {"tenant", lane.tenant},
          {"children", lane.children},
          {"joined", lane.joined},
          {"ready", lane.ready},
          {"root", lane.root},
          {"segments_completed", lane.segments_completed},
          {"memory_bytes", lane.memory_bytes},
          {"worker", worker},
          {"waits_for", lane.waits_for},
          {"waits_seconds", seconds(lane.waits_since)},
          {"of_children", std::move(children)}};
}

/// Replaces bytes that are not UTF-8: job names come from users.
std::string text_of(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string health_json(const DaemonStatus& status) {
  std::uint64_t lanes = 0;
  std::uint64_t sessions = 0;
  for (const WorkerSnapshot& worker : status.workers) {
    lanes += worker.metrics.lanes_active;
    sessions += worker.sessions;
  }
  const std::string reason = why_no_joins(status);
  json listen = json::array();
  for (const ListenPlace& place : status.listen) {
    listen.push_back({{"at", to_string(place.at)}, {"live", place.live}, {"reason", place.why_not}});
  }
  return text_of({{"status", !healthy(status) ? "stuck" : (status.draining.empty() ? "ok" : "draining")},
                  {"name", status.name},
                  {"version", status.version},
                  {"host_id", status.host_id},
                  {"takes_joins", reason.empty()},
                  {"reason", reason},
                  {"stuck", status.stuck},
                  {"listen", std::move(listen)},
                  {"lanes", lanes},
                  {"sessions", sessions},
                  {"memory_bytes", status.memory_bytes_max},
                  {"memory_reserved_bytes", status.memory_bytes_reserved},
                  {"manager",
                   {{"registered", status.manager.registered},
                    {"incarnation", status.manager.incarnation},
                    {"error", status.manager.last_error}}}});
}

std::string lanes_json(const DaemonStatus& status) {
  json lanes = json::array();
  for (std::size_t worker = 0; worker < status.workers.size(); ++worker) {
    for (const LaneStatus& lane : status.workers[worker].lanes) lanes.push_back(lane_json(lane, worker));
  }
  return text_of({{"aggregator", status.name}, {"lanes", std::move(lanes)}});
}

}  // namespace tributary::aggregator
