#include "client/communicator/path_report.h"

#include <cmath>
#include <utility>

#include "client/communicator/quicker_calls.h"
#include "tributary/protocol/reason.h"

namespace tributary::client {

void describe_trees(const Trees* in_use, const std::string& reason, CommunicatorInfo& info) {
  info.in_network = in_use != nullptr;
  if (in_use == nullptr) {
    info.lanes = info.levels = info.window = info.segment_bytes = 0;
    if (!reason.empty()) info.reason = reason;
    return;
  }
  const GroupDescriptor& d = in_use->descriptor;
  info.epoch = d.epoch;
  info.lanes = static_cast<std::uint32_t>(d.lanes.size());
  info.levels = d.lanes[0].levels;
  info.window = d.lanes[0].window;
  info.segment_bytes = d.lanes[0].segment_bytes;
  info.lacks_tree = false;
  info.reason = "trees are ready";
}

std::string trees_text(const CommunicatorInfo& info) {
  return "epoch " + std::to_string(info.epoch) + ", " + std::to_string(info.lanes) + " lane(s), tree depth " +
         std::to_string(info.levels) + ", window " + std::to_string(info.window) + " x " +
         std::to_string(info.segment_bytes) + " bytes";
}

std::string path_line(const CommunicatorInfo& info, const Trees* in_use, const std::string& host) {
  if (info.local)
    return "collectives in shared memory of host " + host + ", in-network reduction not needed: " + info.reason;
  if (in_use == nullptr) return "in-network reduction not in use: " + info.reason;
  return "trees are ready: " + trees_text(info) + ", from operation " + std::to_string(in_use->terms.first_operation);
}

bool wants_trees(const CommunicatorSettings& settings, const CommunicatorInfo& info) {
  return settings.nranks > 1 && settings.path != PathMode::fallback && !info.local;
}

void count_reason(const Shared& shared, std::string_view reason) {
  if (const auto& record = shared.settings.flight_record) record->noted(split_code(reason).reason);
}

void tell_lack(Shared& shared, const std::string& how, PathEvent event) {
  CommunicatorInfo& info = shared.info;
  shared.use_told = false;
  const bool settled = event == PathEvent::news && !shared.looks_for_trees;
  const bool wanted = wants_trees(shared.settings, info);
  info.lacks_tree = wanted && settled;
  shared.lack_told = info.lacks_tree;
  const bool first = info.lacks_tree && !std::exchange(shared.lack_warned, true);
  shared.whole.path_changed(shared.log_prefix() + how, first || (wanted && event == PathEvent::lost));
}

void watch_for_lack(Shared& shared, const Coordinator& coordinator) {
  if (shared.lack_told || !wants_trees(shared.settings, shared.info)) return;
  const Coordinator::Search search = coordinator.search();
  shared.looks_for_trees = search.under_way;
  if (search.under_way || search.why_not.empty()) return;
  if (shared.info.reason != search.why_not) count_reason(shared, search.why_not);
  shared.info.reason = search.why_not;
  std::string line = path_line(shared.info, nullptr, shared.settings.host_id);
  if (shared.settings.require_trees) line += "; waiting for a tree, as TRIBUTARY_REQUIRE says";
  tell_lack(shared, line, PathEvent::news);
}

void tell_use(Shared& shared) {
  if (std::exchange(shared.use_told, true)) return;
  shared.info.reason = "in use";
  shared.whole.path_changed(shared.log_prefix() + "in-network reduction in use: " + trees_text(shared.info), false);
}

namespace {

std::string percent_of(std::uint64_t part, std::uint64_t all) {
  const std::uint64_t tenths =
      all == 0
          ? 0
          : static_cast<std::uint64_t>(std::llround(1000.0 * static_cast<double>(part) / static_cast<double>(all)));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

}  // namespace

std::string bytes_by_path(const CommunicatorInfo& info) {
  const std::uint64_t all = info.bytes_in_network + info.bytes_fallback + info.bytes_local;
  return "bytes in-network " + std::to_string(info.bytes_in_network) + " (" + percent_of(info.bytes_in_network, all) +
         "), between ranks " + std::to_string(info.bytes_fallback) + ", in shared memory " +
         std::to_string(info.bytes_local);
}

GroupTraffic traffic_of(const CommunicatorInfo& info) {
  return {.operations = info.operations,
          .bytes_in_network = info.bytes_in_network,
          .bytes_between_ranks = info.bytes_fallback,
          .bytes_in_shared_memory = info.bytes_local};
}

bool leaves_trees_unused(const CommunicatorSettings& settings, const CommunicatorInfo& info) {
  return info.bytes_in_network == 0 && info.in_network && wants_trees(settings, info);
}

std::string end_line(const CommunicatorSettings& settings, const CommunicatorInfo& info) {
  std::string line = "ends after " + std::to_string(info.operations) + " operations: " + bytes_by_path(info);
  if (info.failovers != 0)
    line += "; trees lost: " + std::to_string(info.failovers) + ", returns: " + std::to_string(info.returns);
  if (leaves_trees_unused(settings, info))
    line += "; " + coded(Reason::trees_not_chosen,
                         "trees were ready, and the tuning let no operation take them (tributary explain says why)");
  if (settings.flight_record) {
    const auto quicker = quicker_calls(settings.flight_record->snapshot(), settings, info);
    if (!quicker.empty()) line += "; by the model, " + to_string(quicker.front());
  }
  return line;
}

std::string unmet_requirement(const CommunicatorSettings& settings, const CommunicatorInfo& info) {
  if (!settings.require_trees || info.in_network || info.local || settings.nranks == 1) return {};
  return "TRIBUTARY_REQUIRE=in-network, and there is no tree: " + info.reason;
}

}  // namespace tributary::client
