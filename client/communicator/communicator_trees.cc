// How trees come, are lost, and what becomes of the operations on them.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "client/communicator/communicator.h"
#include "client/communicator/host_level.h"
#include "client/control/control_link.h"
#include "tributary/protocol/json_reader.h"

namespace tributary::client {

using transport::LinkKeys;

namespace {
constexpr auto kJoinLimit = std::chrono::seconds(5);
}

std::vector<LaneLink*> Communicator::Trees::links() const {
  std::vector<LaneLink*> links;
  for (const auto& lane : lanes) links.push_back(lane.get());
  return links;
}

void Communicator::on_descriptor(const ControlMessage& message) {
  discard(std::move(forming_));
  if (failing_ || error_) return;
  if (const Status way = may_reach_trees(); !way) {
    return tell_rank_0({.type = FrameType::joined,
                        .epoch = message.epoch,
                        .value = kCannotJoin,
                        .body = encode(LaneFailure{"", way.error().message})});
  }
  auto descriptor = group_descriptor_from_json(json_or_discarded(message.body));
  const auto refuse = [&](const std::string& reason) {
    tell_rank_0({.type = FrameType::joined, .epoch = message.epoch, .body = encode(LaneFailure{"", reason})});
  };
  if (!descriptor) return refuse(descriptor.error().message);
  if (descriptor->empty() || descriptor->lanes[0].entries.size() != 1)
    return refuse("a descriptor without this rank's part");
  for (const LaneDescriptor& lane : descriptor->lanes) {
    if (lane.segment_bytes != descriptor->lanes[0].segment_bytes || lane.window != descriptor->lanes[0].window) {
      return refuse("the lanes differ in segment size or window");
    }
  }
  if (auto ok = take_link_secrets(*descriptor); !ok) return refuse(ok.error().message);
  forming_ = std::make_unique<Trees>();
  forming_->generation = message.epoch;
  forming_->descriptor = std::move(*descriptor);
  const GroupDescriptor& d = forming_->descriptor;
  for (std::uint32_t i = 0; i < d.lanes.size(); ++i) {
    const LaneSettings lane{.lane = i,
                            .lanes = static_cast<std::uint32_t>(d.lanes.size()),
                            .rank = settings_.rank,
                            .nranks = settings_.nranks,
                            .group = d.group,
                            .epoch = d.epoch,
                            .pulse = settings_.pulse};
    forming_->lanes.push_back(std::make_unique<LaneLink>(static_cast<LaneUser&>(*this), d.lanes[i], lane));
    forming_->lanes.back()->connect(transport_, kJoinLimit);
  }
}

/// The secrets that this rank's connections to its leaves are sealed with, or proved by; they are good until the next
/// trees come, and needed for opening alone.
Status Communicator::take_link_secrets(const GroupDescriptor& d) {
  LinkKeys* const keys = settings_.link_keys.get();
  const PacketSecurity least = keys != nullptr ? keys->least() : PacketSecurity::off;
  for (const LinkName& name : std::exchange(sealed_links_, {})) keys->remove(name);
  if (d.security < least || (d.security != PacketSecurity::off && keys == nullptr)) {
    return fail(Errc::denied, "the trees have packet security '" + std::string(to_string(d.security)) +
                                  "', this rank '" + std::string(to_string(least)) +
                                  "': set the same TRIBUTARY_PACKET_SECURITY on every rank");
  }
  if (keys == nullptr || d.exchange_key == ExchangePublicKey{}) return {};
  const auto exchange = exchange_key_of_group(settings_.id.secret);
  if (!exchange) return std::unexpected(exchange.error());
  const auto shared = exchange->agree(d.exchange_key);
  if (!shared) return std::unexpected(shared.error());
  for (const LaneDescriptor& lane : d.lanes) {
    const auto claims = read_claims(lane.entries[0].tokens.front());
    if (!claims) return std::unexpected(claims.error());
    if (claims->masked_secret == LinkSecret{}) continue;
    const LinkName name{claims->group, claims->epoch, claims->lane, claims->child};
    keys->add(name, masked(claims->masked_secret, *shared, name, claims->aggregator), d.security);
    sealed_links_.push_back(name);
  }
  return {};
}

void Communicator::lane_ready(std::uint32_t) {
  if (!forming_ || forming_->failed || ++forming_->ready != forming_->lanes.size()) return;
  tell_rank_0({.type = FrameType::joined, .epoch = forming_->generation});
}

void Communicator::lane_failed(std::uint32_t lane, const std::string& reason) {
  look_at_clock(transport_.now());
  Trees* const trees = forming_ ? forming_.get() : trees_.get();
  if (trees == nullptr || (trees == trees_.get() && frozen_)) return;
  const bool first = !std::exchange(trees->failed, true);  // rank 0 hears of all: others may say who else was lost
  const bool ready = trees->ready == trees->lanes.size();
  if (trees == trees_.get() && first) lost_at_ = now_;
  const bool had_first_way = !first_way_gone_;
  check_first_way();  // before rank 0 hears of the rest
  // Whose own device goes cannot tell what became of an aggregator.
  const bool blind = (had_first_way && first_way_gone_) || !may_reach_trees();
  tell_rank_0({.type = ready ? FrameType::lane_failed : FrameType::joined,
               .epoch = trees->generation,
               .body = encode(LaneFailure{blind ? "" : trees->lanes[lane]->failed_aggregator(), reason})});
}

void Communicator::look_at_lanes() {
  if (!trees_ || frozen_) return;
  for (auto& lane : trees_->lanes) lane->look(now_);
}

void Communicator::lane_fault(const MismatchReport& report) {
  tell_rank_0({.type = FrameType::abort,
               .operation = report.operation,
               .value = static_cast<std::uint64_t>(Errc::mismatch),
               .body = to_string(report)});
}

void Communicator::on_propose(const ControlMessage& message) {
  if (!forming_ || forming_->generation != message.epoch) return;
  holding_ = true;
  if (repair_ || frozen_) {  // what the trees before have left is still to be brought to its end
    waiting_propose_ = message;
    return;
  }
  tell_rank_0({.type = FrameType::next_operation, .epoch = message.epoch, .operation = next_to_start_});
}

void Communicator::on_commit(const ControlMessage& message) {
  if (local_meeting_ || (host_level_ && host_level_->meeting() && message.value == kCommitHosts)) {
    waiting_commit_ = message;
    return;
  }
  if (!ready_ && !(agrees_on_local(message) && agrees_on_hosts(message))) return;
  if (message.value == kCommitHosts && !host_level_)
    return begin_failing({Errc::corrupt, "rank 0 speaks of hosts, and this rank has no part in any"});
  holding_ = repair_ != nullptr || frozen_;
  if (message.operation == kNever) {
    if (forming_ && forming_->generation == message.epoch) discard(std::move(forming_));  // else they go on forming
    message.value == kCommitHosts ? report_hosts_path(message.body) : report_path(message.body);
  } else if (forming_ && forming_->generation == message.epoch) {
    discard(std::move(trees_));
    trees_ = std::move(forming_);
    trees_->first_operation = message.operation;
    frozen_ = false;
    holding_ = false;
    for (auto& lane : trees_->lanes) lane->start_at(message.operation);
    if (ready_) ++info_.returns;
    report_path("");
  }
  if (!ready_) {
    ready_ = true;
    ready_deadline_ = transport::TimePoint::max();
    if (auto ready = std::exchange(on_ready_, nullptr)) ready({});
  }
  advance();
}

void Communicator::report_path(std::string reason) {
  info_.in_network = trees_ != nullptr && !frozen_;
  info_.local = local_ != nullptr;
  if (info_.in_network) {
    const GroupDescriptor& d = trees_->descriptor;
    info_.epoch = d.epoch;
    info_.lanes = static_cast<std::uint32_t>(d.lanes.size());
    info_.levels = d.lanes[0].levels;
    info_.window = d.lanes[0].window;
    info_.segment_bytes = d.lanes[0].segment_bytes;
    info_.reason = "in use";
  } else {
    info_.lanes = info_.levels = info_.window = info_.segment_bytes = 0;
    if (!reason.empty()) info_.reason = std::move(reason);
  }
  if (!on_path_change) return;
  std::string line =
      "tributary: rank " + std::to_string(settings_.rank) + " of " + std::to_string(settings_.nranks) + ": ";
  if (info_.local) {
    line += "collectives in shared memory of host " + settings_.host_id +
            ", in-network reduction not needed: " + info_.reason;
  } else if (info_.in_network) {
    line += "in-network reduction ";
    line += "in use: epoch " + std::to_string(info_.epoch) + ", " + std::to_string(info_.lanes) +
            " lane(s), tree depth " + std::to_string(info_.levels) + ", window " + std::to_string(info_.window) +
            " x " + std::to_string(info_.segment_bytes) + " bytes, from operation " +
            std::to_string(trees_->first_operation);
  } else {
    line += "in-network reduction not in use: " + info_.reason;
  }
  on_path_change(line);
}

void Communicator::on_freeze(const ControlMessage& message) {
  if (!trees_ || trees_->generation != message.epoch || frozen_) return;
  if (lost_at_ == transport::TimePoint{}) lost_at_ = now_;
  check_first_way();  // what follows goes between the ranks
  frozen_ = true;
  holding_ = true;
  if (message.value != kMoves) ++info_.failovers;
  for (auto& lane : trees_->lanes) lane->freeze();
  const Holdings holdings = holdings_of(trees_->links(), settings_.rank);
  bring_down();
  report_path(message.body);
  tell_rank_0({.type = FrameType::holdings, .epoch = message.epoch, .body = encode(holdings)});
}

void Communicator::on_recover(const ControlMessage& message) {
  if (!trees_ || trees_->generation != message.epoch || !frozen_ || repair_ || error_) return;
  if (!brought_down()) {
    waiting_recover_ = message;
    return;
  }
  const auto broken = [this](const Error& error) { abort(error.message); };
  auto moves = decode_moves(message.body);
  if (!moves) return broken(moves.error());
  repair_ = std::make_unique<Repair>(*mesh_, settings_.rank, settings_.nranks, trees_->links());
  if (auto ok = repair_->start(std::move(*moves), [this] { continue_by_fallback(); }); !ok) broken(ok.error());
}

/// Recovery and the fallback work in host memory alone.
void Communicator::bring_down() {
  for (auto& o : operations_) {
    if (o->direct && o->state != Operation::State::done) leave_direct(*o, {});
  }
  for (auto& lane : trees_->lanes) {
    const auto done = [left = coming_down_] { left->fetch_sub(1); };
    coming_down_->fetch_add(lane->descriptor().window);  // before the first can end
    coming_down_->fetch_sub(lane->descriptor().window - lane->bring_down(done));
  }
}

bool Communicator::brought_down() const {
  return coming_down_->load() == 0 && std::ranges::all_of(operations_, [](const auto& o) {
           return o->state != Operation::State::in_network || o->input_whole();
         });
}

void Communicator::continue_by_fallback() {
  look_at_clock(transport_.now());
  for (auto& owned : operations_) {
    Operation& o = *owned;
    if (o.state != Operation::State::in_network) continue;
    std::uint64_t left = 0;
    auto pieces = remainder(o, left);
    o.segments_in_network = o.segments - left;
    o.state = Operation::State::fallback;
    ++fallback_unfinished_;
    remainders_.push_back({&o, std::move(pieces)});
  }
  info_.last_pause_us =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now_ - lost_at_).count());
  info_.longest_pause_us = std::max(info_.longest_pause_us, info_.last_pause_us);
  lost_at_ = {};
  discard(std::move(trees_));
  discarded_repairs_.push_back(std::move(repair_));
  frozen_ = false;
  holding_ = false;
  if (settings_.path == PathMode::in_network) {
    return abort("the tree is lost and TRIBUTARY_PATH=in-network forbids the fallback: " + info_.reason);
  }
  if (waiting_propose_) {
    const ControlMessage propose = *std::exchange(waiting_propose_, std::nullopt);
    on_propose(propose);
  }
  next_remainder();
}

// What is left of an operation, the same on every rank: the segments whose sequences no rank has a result for.
// Neighbours with one owner are one piece.
std::vector<Piece> Communicator::remainder(const Operation& o, std::uint64_t& segments_left) const {
  const std::uint32_t nlanes = static_cast<std::uint32_t>(trees_->lanes.size());
  std::vector<std::uint64_t> left;
  for (std::uint32_t lane = 0; lane < nlanes; ++lane) {
    const LaneLink& link = *trees_->lanes[lane];
    for (std::uint64_t s = link.first_unfinished(o, repair_->everyones(lane)); s < o.segments; s += nlanes)
      left.push_back(s);
  }
  segments_left = left.size();
  if (left.empty()) return {};
  if (left.size() == o.segments) return {whole(o)};
  std::sort(left.begin(), left.end());
  const Segmentation segmentation(o.signature, settings_.nranks, trees_->descriptor.lanes[0].segment_bytes);
  const Collective collective = o.signature.collective;
  const Pattern pattern = pattern_of(collective);
  std::vector<Piece> pieces;
  std::uint64_t end = kNever;  // element after the last piece
  for (const std::uint64_t index : left) {
    const Segment segment = segmentation.at(index);
    if (segment.offset == end && pieces.back().root == segment.owner) {
      pieces.back().count += segment.count;
      end += segment.count;
      continue;
    }
    const bool mine = pattern == Pattern::all_to_all_ranks || segment.owner == settings_.rank;
    Piece piece;
    piece.root = segment.owner;
    piece.count = segment.count;
    if (pattern == Pattern::one_to_all) {
      piece.collective = Collective::broadcast;
      piece.send = mine ? o.input_of(segment) : nullptr;
      piece.recv = o.result_of(segment);
    } else {
      piece.collective = pattern == Pattern::all_to_one ? Collective::reduce : collective;
      piece.send = o.input_of(segment);
      piece.recv = mine ? o.result_of(segment) : nullptr;
    }
    piece.in_place = piece.send == piece.recv;
    pieces.push_back(piece);
    end = segment.offset + segment.count;
  }
  return pieces;
}

void Communicator::next_remainder() {
  while (!remainders_.empty() && !runner_->busy() && !error_ && remainders_.front().operation->input_whole()) {
    Remainder next = std::move(remainders_.front());
    remainders_.pop_front();
    run_fallback(*next.operation, std::move(next.pieces));
  }
  if (remainders_.empty()) advance();
}

void Communicator::discard(std::unique_ptr<Trees> trees) {
  if (!trees) return;
  for (auto& lane : trees->lanes) lane->freeze();
  discarded_.push_back(std::move(trees));
}

Operation* Communicator::started_operation(std::uint64_t number) {
  return number < next_to_start_ ? operation(number) : nullptr;
}

void Communicator::segments_finished(Operation& operation) {
  for (auto& lane : trees_->lanes) lane->retain(operation);
  operation.segments_in_network = operation.segments;
  finish(operation, {});
}

}  // namespace tributary::client
