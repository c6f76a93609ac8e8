// Forms and uses trees. tree_loss.cc handles their loss.
#include "client/communicator/tree_life.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/transport/io_threads.h"

namespace tributary::client {

namespace {
constexpr auto kJoinLimit = std::chrono::seconds(5);
constexpr auto kLeaveLimit = std::chrono::seconds(1);

/// Returns the policy that rank 0 sent with the descriptor; nullopt: the welcome's policy stays.
Result<std::optional<tuning::Policy>> policy_of(const nlohmann::json& place) {
  const auto text = place.find("tuning");
  if (text == place.end()) return std::nullopt;
  if (!text->is_string()) return fail(Errc::corrupt, "rank 0 sent a tuning that is no text");
  auto policy = tuning::decode_policy(text->get_ref<const std::string&>());
  if (!policy) return std::unexpected(policy.error());
  return std::move(*policy);
}

Dealing dealing_of(const GroupDescriptor& trees) {
  std::vector<std::uint32_t> weights;
  for (const LaneDescriptor& lane : trees.lanes) weights.push_back(lane.weight);
  return Dealing(weights);
}

}  // namespace

std::string_view to_string(TreeLife::State state) noexcept {
  switch (state) {
    case TreeLife::State::none:
      return "none";
    case TreeLife::State::in_use:
      return "in use";
    case TreeLife::State::frozen:
      return "frozen";
    case TreeLife::State::repairing:
      return "repairing";
  }
  return "unknown";
}

const tuning::Policy* TreeTerms::policy_of(std::uint64_t operation) const noexcept {
  const auto later = std::ranges::upper_bound(policies, operation, {}, &PolicyFrom::first_operation);
  return later == policies.begin() ? nullptr : &std::prev(later)->policy;
}

void TreeTerms::amend(std::uint64_t first, const tuning::Amendment& amendment, const tuning::Policy& welcome,
                      std::uint64_t started) {
  TRIBUTARY_ASSERT(policies.empty() || policies.back().first_operation <= first,
                   "a policy from operation {} on follows a policy from {} on", first, policies.back().first_operation);
  const tuning::Policy& last = policies.empty() ? welcome : policies.back().policy;
  policies.push_back({first, tuning::amended(last, amendment)});
  const auto is_over = [&](std::size_t i) { return policies[i + 1].first_operation <= started; };
  while (policies.size() > 1 && is_over(0)) policies.erase(policies.begin());
}

std::vector<LaneLink*> Trees::links() const {
  std::vector<LaneLink*> links;
  for (const auto& lane : lanes) links.push_back(lane.get());
  return links;
}

Status TreeLife::check_descriptor(const GroupDescriptor& descriptor) const {
  if (descriptor.empty() || descriptor.lanes[0].entries.size() != 1)
    return tributary::fail(Errc::corrupt, "a descriptor without this rank's part");
  for (const LaneDescriptor& lane : descriptor.lanes) {
    if (lane.segment_bytes != descriptor.lanes[0].segment_bytes)
      return tributary::fail(Errc::corrupt, "the lanes differ in segment size");
  }
  return {};
}

void TreeLife::on_descriptor(const ControlMessage& message) {
  discard(std::move(forming_));
  if (!shared_.life.well()) return;
  const auto refuse = [&](const std::string& reason, std::uint64_t value = 0) {
    shared_.whole.tell_rank_0(
        {.type = FrameType::joined, .epoch = message.epoch, .value = value, .body = encode(LaneFailure{"", reason})});
  };
  if (const Status way = second_way_.may_reach_trees(); !way) return refuse(way.error().message, kCannotJoin);
  const nlohmann::json place = json_or_discarded(message.body);
  auto descriptor = group_descriptor_from_json(place);
  if (!descriptor) return refuse(descriptor.error().message);
  auto policy = policy_of(place);
  if (!policy) return refuse(policy.error().message);
  if (const Status ok = check_descriptor(*descriptor); !ok) return refuse(ok.error().message);
  if (const Status ok = secrets_.take(*descriptor); !ok) return refuse(ok.error().message);
  form(message.epoch, std::move(*descriptor), std::move(*policy));
}

void TreeLife::form(std::uint32_t generation, GroupDescriptor descriptor, std::optional<tuning::Policy> policy) {
  forming_ = std::make_unique<Trees>();
  forming_->generation = generation;
  forming_->descriptor = std::move(descriptor);
  forming_->terms.one_level =
      std::ranges::all_of(forming_->descriptor.lanes, [](const LaneDescriptor& lane) { return lane.levels == 1; });
  forming_->terms.segment_bytes = forming_->descriptor.lanes[0].segment_bytes;
  if (policy) forming_->terms.policies.push_back({0, std::move(*policy)});
  forming_->terms.lanes = static_cast<std::uint32_t>(forming_->descriptor.lanes.size());
  const GroupDescriptor& d = forming_->descriptor;
  const Dealing dealing = dealing_of(d);
  forming_->terms.cycle = dealing.cycle();
  for (std::uint32_t i = 0; i < d.lanes.size(); ++i) {
    const LaneSettings lane{.lane = i,
                            .turns = dealing.turns_of(i),
                            .rank = shared_.rank(),
                            .nranks = shared_.settings.nranks,
                            .group = d.group,
                            .epoch = d.epoch,
                            .pulse = shared_.settings.pulse,
                            .one_level = forming_->terms.one_level,
                            .rates_known = d.rates.links != 0,
                            .trace = shared_.settings.segment_trace,
                            .troubles = shared_.settings.troubles,
                            .neighbours = shared_.settings.neighbours};
    forming_->lanes.push_back(std::make_unique<LaneLink>(static_cast<LaneUser&>(*this), d.lanes[i], lane));
    forming_->lanes.back()->connect(transport::io_way(shared_.transport), kJoinLimit);
  }
}

void TreeLife::lane_ready(std::uint32_t) {
  if (!forming_ || forming_->failed || ++forming_->ready != forming_->lanes.size()) return;
  shared_.whole.tell_rank_0({.type = FrameType::joined, .epoch = forming_->generation});
}

void TreeLife::on_propose(const ControlMessage& message) {
  if (!forming_ || forming_->generation != message.epoch) return;
  proposed_ = true;
  if (state_ == State::frozen || state_ == State::repairing) {
    waiting_propose_ = message;
    return;
  }
  shared_.whole.tell_rank_0(
      {.type = FrameType::next_operation, .epoch = message.epoch, .operation = operations_.next_to_start()});
}

bool TreeLife::on_commit(const ControlMessage& message) {
  proposed_ = false;
  if (!forming_ || forming_->generation != message.epoch) return false;
  if (message.operation == kNever) {
    discard(std::move(forming_));
    return false;
  }
  const auto corrupt = [this](const std::string& what) {
    shared_.whole.begin_failing({Errc::corrupt, "rank 0 commits to trees " + what});
    return false;
  };
  if (state_ == State::frozen || state_ == State::repairing)
    return corrupt("before the operations of the lost ones go on");
  if (state_ == State::in_use) return corrupt("while other trees are in use");
  if (const std::uint64_t next = operations_.next_to_start(); message.operation < next) {
    return corrupt("from operation " + std::to_string(message.operation) + " on, and operation " +
                   std::to_string(next - 1) + " has begun");
  }
  take_over(std::move(forming_), message.operation);
  return true;
}

std::optional<tuning::Amendment> TreeLife::on_amendment(const ControlMessage& message, const tuning::Policy& welcome) {
  if (message.type == FrameType::amend) {
    // If this rank does not use these trees yet, its answer kNever makes rank 0 drop the amendment. If this rank has
    // lost the trees, rank 0 has dropped it already.
    amending_ = in_use() && trees_->generation == message.epoch;
    shared_.whole.tell_rank_0({.type = FrameType::next_operation,
                               .epoch = message.epoch,
                               .operation = amending_ ? operations_.next_to_start() : kNever});
    return std::nullopt;
  }
  if (!std::exchange(amending_, false) || message.operation == kNever) return std::nullopt;
  if (!in_use() || trees_->generation != message.epoch) return std::nullopt;
  const auto corrupt = [this](const std::string& what) {
    shared_.whole.begin_failing({Errc::corrupt, "rank 0 sent " + what});
    return std::nullopt;
  };
  auto amendment = tuning::decode_amendment(message.body);
  if (!amendment) return corrupt(amendment.error().message);
  if (const std::uint64_t next = operations_.next_to_start(); message.operation < next) {
    return corrupt("an amendment from operation " + std::to_string(message.operation) + " on, and operation " +
                   std::to_string(next - 1) + " has begun");
  }
  trees_->terms.amend(message.operation, *amendment, welcome, operations_.next_to_start());
  return *amendment;
}

void TreeLife::take_over(std::unique_ptr<Trees> trees, std::uint64_t first_operation) {
  discard(std::move(trees_));
  TRIBUTARY_ASSERT(trees && trees->lanes.size() == trees->descriptor.lanes.size(), "trees from operation {} on",
                   first_operation);
  TRIBUTARY_ASSERT(first_operation >= operations_.next_to_start(), "trees from operation {} on, where {} is next",
                   first_operation, operations_.next_to_start());
  trees_ = std::move(trees);
  trees_->terms.first_operation = first_operation;
  state_ = State::in_use;
  for (auto& lane : trees_->lanes) lane->start_at(first_operation);
  if (shared_.life.has_begun()) ++shared_.info.returns;
}

const TreeTerms* TreeLife::terms_for(const Operation& o) const noexcept {
  const auto if_it_carries = [&o](const TreeTerms& terms) { return terms.can_carry(o) ? &terms : nullptr; };
  if (trees_ && o.number >= trees_->terms.first_operation) return if_it_carries(trees_->terms);
  const auto lost = std::ranges::find_if(
      lost_, [&](const TreeTerms& it) { return it.first_operation <= o.number && o.number < it.end; });
  return lost == lost_.end() ? nullptr : if_it_carries(*lost);
}

void TreeLife::start(Operation& o) {
  TRIBUTARY_ASSERT(serve(o), "{} goes by trees that are {}", to_string(o), to_string(state_));
  const Segmentation segmentation(o.signature, shared_.settings.nranks, trees_->terms.segment_bytes_for(o.signature));
  o.segments_all = segmentation.segments();
  o.segments = o.cut ? o.cut->segments : o.segments_all;
  TRIBUTARY_ASSERT(0 < o.segments && o.segments <= o.segments_all && (o.segments < o.segments_all || !o.cut),
                   "{} of {} segments of {} go by trees", o.segments, o.segments_all, to_string(o));
  if (operations_.copies_own_part(o)) {
    const std::size_t bytes = o.signature.count * o.element_bytes();
    std::byte* const own = o.recv + (o.signature.collective == Collective::all_gather ? shared_.rank() * bytes : 0);
    if (o.direct) {
      o.direct->device()->copy(own, o.send, bytes, [] {});
    } else {
      std::memcpy(own, o.send, bytes);
    }
  }
  pump();
}

void TreeLife::pump() {
  const transport::TimePoint now = shared_.transport.now();
  for (auto& lane : trees_->lanes) lane->pump(now);
}

void TreeLife::segments_finished(Operation& operation) {
  for (auto& lane : trees_->lanes) lane->retain(operation);
  operation.segments_in_network = operation.segments;
  operation.trees_ended_at = shared_.transport.now();
  operations_.trees_part_ended(operation);
}

void TreeLife::input_arrived() {
  if (waiting_recover_ && brought_down()) {
    const ControlMessage recover = *std::exchange(waiting_recover_, std::nullopt);
    on_recover(recover);
  }
  if (in_use()) pump();
}

Status TreeLife::prepare(const DirectMemory& memory, const std::vector<std::span<const std::byte>>& ranges) {
  if (!in_use()) return tributary::fail(Errc::unsupported, "in-network reduction is not in use");
  for (auto& lane : trees_->lanes) {
    if (auto ok = lane->prepare(shared_.transport, memory.device(), ranges); !ok) return ok;
  }
  return {};
}

void TreeLife::look() {
  if (!in_use()) return;
  const auto& troubles = shared_.settings.troubles;
  const bool tell = troubles && troubles->look(shared_.clock.now());
  for (auto& lane : trees_->lanes) lane->look(shared_.clock.now(), tell);
}

void TreeLife::tick() {
  discarded_.clear();
  discarded_repairs_.clear();
}

void TreeLife::leave() {
  if (!in_use()) return;
  for (auto& lane : trees_->lanes) lane->leave(kLeaveLimit);
}

void TreeLife::fail() {
  discard(std::move(forming_));
  leave_trees();
}

void TreeLife::leave_trees() {
  discard(std::move(trees_));
  if (repair_) discarded_repairs_.push_back(std::move(repair_));
  state_ = State::none;
  proposed_ = amending_ = false;
}

void TreeLife::discard(std::unique_ptr<Trees> trees) {
  if (!trees) return;
  for (auto& lane : trees->lanes) lane->freeze();
  discarded_.push_back(std::move(trees));
}

std::string TreeLife::waits_for(const Operation& o) const {
  std::uint64_t segment = o.segments;
  std::size_t lane_of = 0;
  for (std::size_t lane = 0; trees_ && lane < trees_->lanes.size(); ++lane) {
    const std::uint64_t first = trees_->lanes[lane]->first_unfinished(o, trees_->lanes[lane]->prefix());
    if (first < segment) {
      segment = first;
      lane_of = lane;
    }
  }
  return "segment " + std::to_string(segment) + " (lane " + std::to_string(lane_of) + ")";
}

}  // namespace tributary::client
