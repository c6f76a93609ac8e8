// The loss of trees: freezing, repair, and the rest of their operations on the fallback.
#include <algorithm>

#include "client/communicator/remainder.h"
#include "client/communicator/tree_life.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {

void TreeLife::lane_failed(std::uint32_t lane, const std::string& reason) {
  shared_.whole.look_at_clock();
  Trees* const trees = forming_ ? forming_.get() : trees_.get();
  if (trees == nullptr || (trees == trees_.get() && !in_use())) return;
  const bool first = !std::exchange(trees->failed, true);  // a later failure may name another aggregator
  const bool ready = trees->ready == trees->lanes.size();
  if (trees == trees_.get() && first) lost_at_ = shared_.clock.now();
  const bool had_device = !second_way_.device_gone();
  second_way_.check_device();  // if the device is gone, the report below blames no aggregator
  // A rank whose own device is gone cannot know whether an aggregator failed.
  const bool blind = (had_device && second_way_.device_gone()) || !second_way_.may_reach_trees();
  shared_.whole.tell_rank_0(
      {.type = ready ? FrameType::lane_failed : FrameType::joined,
       .epoch = trees->generation,
       .body = encode(LaneFailure{blind ? "" : trees->lanes[lane]->failed_aggregator(), reason})});
}

void TreeLife::lane_fault(const MismatchReport& report) {
  shared_.whole.tell_rank_0({.type = FrameType::abort,
                             .operation = report.operation,
                             .value = static_cast<std::uint64_t>(Errc::mismatch),
                             .body = to_string(report)});
}

void TreeLife::on_freeze(const ControlMessage& message) {
  if (!in_use() || trees_->generation != message.epoch) return;
  if (lost_at_ == transport::TimePoint{}) lost_at_ = shared_.clock.now();
  second_way_.check_device();  // the repair uses connections between the ranks
  state_ = State::frozen;
  if (message.value != kMoves) ++shared_.info.failovers;
  for (auto& lane : trees_->lanes) lane->freeze();
  const Holdings holdings = holdings_of(trees_->links(), shared_.rank());
  bring_down();
  user_.report_path(message.body, message.value == kMoves ? PathEvent::moves : PathEvent::lost);
  shared_.whole.tell_rank_0({.type = FrameType::holdings,
                             .epoch = message.epoch,
                             .operation = operations_.next_to_start(),
                             .body = encode(holdings)});
}

/// Moves data from devices to host memory: recovery and the fallback can only work there.
void TreeLife::bring_down() {
  for (const auto& o : operations_.all()) {
    if (o->direct && o->state != Operation::State::done) user_.leave_direct(*o);
  }
  for (auto& lane : trees_->lanes) {
    const auto done = [left = coming_down_] { left->fetch_sub(1); };
    coming_down_->fetch_add(lane->descriptor().window);  // before the first copy can end
    coming_down_->fetch_sub(lane->descriptor().window - lane->bring_down(done));
  }
}

bool TreeLife::brought_down() const {
  return coming_down_->load() == 0 && std::ranges::all_of(operations_.all(), [](const auto& o) {
           return o->state != Operation::State::in_network || o->input_whole();
         });
}

void TreeLife::on_recover(const ControlMessage& message) {
  if (state_ != State::frozen || trees_->generation != message.epoch || shared_.life.failed()) return;
  if (!brought_down()) {
    waiting_recover_ = message;
    return;
  }
  auto moves = decode_moves(message.body);
  if (!moves) return shared_.whole.abort(moves.error().message);
  if (message.operation < operations_.next_to_start()) {
    return shared_.whole.abort("rank 0 says that no rank has begun operation " + std::to_string(message.operation) +
                               ", but this rank has");
  }
  std::erase_if(lost_, [this](const TreeTerms& it) { return it.end <= operations_.first_number(); });
  trees_->terms.end = message.operation;
  lost_.push_back(trees_->terms);
  state_ = State::repairing;
  repair_ = std::make_unique<Repair>(*mesh_, shared_.rank(), shared_.settings.nranks, trees_->links());
  if (auto ok = repair_->start(std::move(*moves), [this] { repaired(); }); !ok) shared_.whole.abort(ok.error().message);
}

void TreeLife::repair_received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload) {
  if (repair_) repair_->received(peer, receive, payload);
}

void TreeLife::repair_sent() {
  if (repair_) repair_->sent();
}

/// Ends the repair: all ranks have the same results, and the rest of each operation runs between the ranks.
void TreeLife::repaired() {
  TRIBUTARY_ASSERT(state_ == State::repairing, "the repair of trees ends while they are {}", to_string(state_));
  shared_.whole.look_at_clock();
  const auto lanes = trees_->links();
  const auto everyones = [this](std::size_t lane) { return repair_->everyones(lane); };
  for (const auto& owned : operations_.all()) {
    Operation& o = *owned;
    if (!o.in_trees()) continue;  // a split operation may wait only for the ranks' share
    const Segmentation segmentation(o.signature, shared_.settings.nranks, trees_->terms.segment_bytes_for(o.signature));
    auto rest = remainder_of(o, segmentation, lanes, shared_.rank(), everyones);
    TRIBUTARY_ASSERT(rest.segments <= o.segments, "{} of {} segments are left of {}", rest.segments, o.segments,
                     to_string(o));
    o.segments_in_network = o.segments - rest.segments;
    operations_.leave_tree(o, std::move(rest.pieces));
  }
  CommunicatorInfo& info = shared_.info;
  const auto pause = shared_.clock.now() - lost_at_;
  info.last_pause_us = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(pause).count());
  if (const auto& record = shared_.settings.flight_record) record->paused(pause);
  info.longest_pause_us = std::max(info.longest_pause_us, info.last_pause_us);
  lost_at_ = {};
  leave_trees();
  if (shared_.settings.path == PathMode::in_network || shared_.settings.require_trees) {
    const std::string setting = shared_.settings.require_trees ? "REQUIRE" : "PATH";
    return shared_.whole.abort("the tree is lost and TRIBUTARY_" + setting +
                               "=in-network forbids the fallback: " + info.reason);
  }
  if (const auto propose = std::exchange(waiting_propose_, std::nullopt)) on_propose(*propose);
  operations_.run_remainders();
}

}  // namespace tributary::client
