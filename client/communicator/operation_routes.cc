#include "client/communicator/operation_routes.h"

#include <algorithm>

#include "client/communicator/path_report.h"
#include "client/operation/payload.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

namespace {

FlightPath path_of(Operation::State way) noexcept {
  switch (way) {
    case Operation::State::in_network:
      return FlightPath::in_network;
    case Operation::State::fallback:
      return FlightPath::between_ranks;
    case Operation::State::by_hosts:
      return FlightPath::by_hosts;
    default:
      return FlightPath::undecided;
  }
}

}  // namespace

void OperationRoutes::prepare_memory(Operation& o) {
  settle_memory(o);
  // If a leader acts for this host and this rank is not the leader, its transport never uses the buffers.
  const bool stays_here = parts_.hosts.takes(o) && parts_.hosts.between() == nullptr;
  if (!o.direct && !stays_here) parts_.memory.keep_registered(o);
}

bool OperationRoutes::may_begin() const {
  return shared_.life.has_begun() && shared_.life.well() && !parts_.trees.holding();
}

/// Returns the route of an operation. Trees may be lost after only some ranks have begun the operation. The other ranks
/// then still cut it in the same way, because the share of the ranks has started.
Route OperationRoutes::route_of(const Operation& o) const {
  using enum Operation::State;
  if (parts_.hosts.takes(o)) return {.way = by_hosts};
  const bool capable = in_network_capable(o.signature.collective);
  const bool forced = shared_.settings.path == PathMode::in_network;
  const bool served = capable && parts_.trees.serve(o);
  const auto division = division_of(o);
  TRIBUTARY_ASSERT(division || !served, "trees serve {} without terms", to_string(o));
  Route route{.way = served && (forced || division->by_trees) ? in_network : fallback};
  if (!division) return route;
  if (capable && !forced) route.cut = division->cut;
  if (!division->by_trees) route.algorithm = division->algorithm;
  return route;
}

std::optional<Division> OperationRoutes::division_of(const Operation& o) const {
  const TreeTerms* const of_trees = parts_.trees.terms_for(o);
  if (of_trees == nullptr) return std::nullopt;
  const tuning::Policy* const policy = of_trees->policy_of(o.number);
  return divide(o, {.policy = policy != nullptr ? policy : &policy_,
                    .nranks = shared_.settings.nranks,
                    .segment_bytes = of_trees->segment_bytes_for(o.signature),
                    .lanes = of_trees->lanes,
                    .cycle = of_trees->cycle});
}

void OperationRoutes::run_share(Operation& o) {
  TRIBUTARY_ASSERT(o.cut, "the ranks have no share of {}", to_string(o));
  o.share_started_at = shared_.transport.now();
  parts_.traffic.run_share(o, ranks_part(o, *o.cut), [this, &o] {
    o.share_ended_at = shared_.transport.now();
    o.share_rounds = parts_.traffic.share_rounds();
    parts_.operations.share_ended(o);
  });
}

void OperationRoutes::settle_memory(Operation& o) {
  // A part that the ranks carry needs host memory.
  if (!o.direct) return;
  const Route route = route_of(o);
  parts_.memory.settle(o, route.way == Operation::State::in_network && !route.cut);
}

void OperationRoutes::begin(Operation& o, const Route& route) {
  o.started_at = shared_.transport.now();
  if (const auto& record = shared_.settings.flight_record) record->started(o.number, path_of(o.state), o.started_at);
  online_tuning_.begun();
  switch (o.state) {
    case Operation::State::by_hosts:
      return parts_.hosts.level()->submit(o);
    case Operation::State::in_network:
      return parts_.trees.start(o);
    default:
      break;
  }
  const bool wants_tree = shared_.settings.path == PathMode::in_network && shared_.settings.nranks > 1;
  if (wants_tree && in_network_capable(o.signature.collective)) {
    return parts_.operations.finish(o,
                                    fail(Errc::unreachable, "TRIBUTARY_PATH=in-network, but " + why_not_by_trees(o)));
  }
  Piece piece = o.cut ? trees_part(o, *o.cut) : whole(o);
  piece.algorithm = route.algorithm;
  run_remainder(o, {&piece, 1});
}

std::string OperationRoutes::why_not_by_trees(const Operation& o) const {
  if (o.signature.op == kOrderedProduct)
    return "a product of floats with exact numerics goes between the ranks, because aggregators have no partial "
           "products; use TRIBUTARY_PATH=auto, or TRIBUTARY_OP_FAST for this call";
  if (!parts_.trees.in_use()) return "there is no tree: " + shared_.info.reason;
  return "the segments of these trees are too short for the partial sums of " +
         std::string(to_string(o.signature.dtype)) + "; set the manager's segment_bytes to 512 or more";
}

void OperationRoutes::run_remainder(Operation& o, std::span<const Piece> pieces) {
  TRIBUTARY_ASSERT(o.input_whole(), "{} runs between the ranks before its input has arrived", to_string(o));
  parts_.traffic.run(o, pieces, [this, &o] { parts_.operations.fallback_ended(o); });
}

void OperationRoutes::account(const Operation& o, Operation::State way, bool success) {
  parts_.operations.touch(shared_.clock.now());
  online_tuning_.left();
  if (const auto& record = shared_.settings.flight_record)
    record->ended(o.number, path_of(way), success ? FlightOutcome::success : FlightOutcome::failure,
                  std::max({shared_.clock.now(), o.trees_ended_at, o.share_ended_at}));
  if (!success) return;
  online_tuning_.ended(o, way);
  CommunicatorInfo& info = shared_.info;
  ++info.operations;
  const std::uint64_t bytes = payload_bytes(o.signature, shared_.settings.nranks);
  if (way == Operation::State::by_hosts) return;  // the leaders' communicator counts the bytes: HostPath::account()
  std::uint64_t in_network = 0;
  if (o.segments_all > 0) {
    in_network = static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(o.segments_in_network) /
                                            static_cast<double>(o.segments_all));
  }
  info.bytes_in_network += in_network;
  if (in_network > 0 && info.in_network) tell_use(shared_);
  info.bytes_fallback += bytes - in_network;
  if (shared_.settings.on_bytes) shared_.settings.on_bytes(in_network, bytes - in_network);
}

std::string OperationRoutes::waits_for(const Operation& o) const {
  const std::string name = to_string(o);
  switch (o.state) {
    case Operation::State::in_network:
      return name + ", " + (o.in_trees() ? parts_.trees.waits_for(o) : parts_.traffic.share_waits_for(o));
    case Operation::State::by_hosts:
      return name + ", " + parts_.hosts.level()->waits_for();
    case Operation::State::queued:
      return name + ", segment 0 (not begun)";
    default:
      break;
  }
  // The operation may wait for its share only: pieces that lost trees did not finish run without waiting for the share.
  const bool share_is_missing = o.cut && o.share_rounds == 0 && !parts_.traffic.runs(o);
  return name + ", " + (share_is_missing ? parts_.traffic.share_waits_for(o) : parts_.traffic.waits_for());
}

/// Returns the progress of both parts of a split operation together: if a part stands still, the rank with the least
/// progress is the rank that delays it.
std::uint64_t OperationRoutes::steps(const Operation& o) const {
  if (o.state == Operation::State::by_hosts) return parts_.hosts.level()->steps();
  return o.segments_done + o.share_rounds + parts_.traffic.rounds_of(o);
}

void OperationRoutes::tune_online(const tuning::Figures& figures) {
  const tuning::Policy* const policy = parts_.trees.trees()->terms.policy_of(kNever);
  online_tuning_.begin(figures, policy != nullptr ? *policy : policy_);
}

void OperationRoutes::on_amendment(const ControlMessage& message) {
  const auto amendment = parts_.trees.on_amendment(message, policy_);
  if (message.type != FrameType::amended || !shared_.life.well()) return;
  online_tuning_.agreed(amendment, message.operation);
  parts_.operations.advance();
}

void OperationRoutes::report_path(const std::string& reason, PathEvent event) {
  const Trees* const in_use = parts_.trees.in_use() ? parts_.trees.trees() : nullptr;
  if (in_use == nullptr) online_tuning_.end();
  CommunicatorInfo& info = shared_.info;
  info.local = parts_.shares_all_memory();
  if (in_use == nullptr) count_reason(shared_, reason);
  describe_trees(in_use, reason, info);
  const std::string line = path_line(info, in_use, shared_.settings.host_id);
  if (in_use == nullptr) return tell_lack(shared_, line, event);
  shared_.use_told = shared_.lack_told = false;
  shared_.whole.path_changed(shared_.log_prefix() + line, false);
}

}  // namespace tributary::client
