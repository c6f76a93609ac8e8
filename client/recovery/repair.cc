#include "client/recovery/repair.h"

#include <algorithm>
#include <array>

#include "client/recovery/repair_plan.h"
#include "tributary/kernels/partial_sum.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

namespace {

/// The number of other ranks' inputs that a rank reduces in one pass together with its own input.
constexpr std::uint32_t kFanIn = kernels::kReduceInputsMax - 1;

std::size_t bytes_of(const SequenceEntry& e) {
  return e.segment.count * size_of(e.signature.dtype);
}

/// Returns whether the input of so many ranks travels as a form: of an exact sum, a rank sends its own values.
bool is_form(const SequenceEntry& e, std::uint32_t ranks) {
  return is_exact_of_hosts(e.signature.op) || (is_exact(e.signature.op) && ranks > 1);
}

bool is_for_one(const SequenceEntry& e) {
  return pattern_of(e.signature.collective) == Pattern::all_to_one && e.segment.count > 0;
}

}  // namespace

Holdings holdings_of(const std::vector<LaneLink*>& lanes, std::uint32_t rank) {
  Holdings holdings;
  for (const LaneLink* lane : lanes) {
    LaneHolding& holding = holdings.emplace_back(lane->prefix());
    // Stop at the sequences to which this rank has not contributed: no rank has their results.
    for (std::uint64_t sequence = lane->prefix(); sequence < lane->contributed(); ++sequence) {
      const SequenceEntry* entry = lane->entry(sequence);
      if (entry != nullptr && is_for_one(*entry) && entry->segment.owner == rank) holding.wanted.push_back(sequence);
    }
  }
  return holdings;
}

Repair::Repair(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, std::vector<LaneLink*> lanes)
    : mesh_(mesh), rank_(rank), nranks_(nranks), lanes_(std::move(lanes)) {}

Status Repair::start(Moves moves, std::function<void()> done) {
  moves_ = std::move(moves);
  done_ = std::move(done);
  if (lanes_.empty() || moves_.size() != lanes_.size()) return fail(Errc::corrupt, "recovery: moves of another group");
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (auto ok = check(lane); !ok) return ok;
  }
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (auto ok = plan(lane); !ok) return ok;
  }
  flush();
  finish_one();
  return {};
}

Status Repair::check(std::size_t lane) const {
  const LaneMoves& m = moves_[lane];
  if (m.own != lanes_[lane]->prefix() || m.own < m.lo || m.own > m.hi)
    return fail(Errc::corrupt, "recovery: other holdings than this rank has reported");
  if (m.hi - m.lo > lanes_[lane]->descriptor().window)
    return fail(Errc::corrupt,
                "recovery: results of lane " + std::to_string(lane) + " are further apart than a window");
  const auto is_peer = [this](std::uint32_t rank) { return rank < nranks_ && rank != rank_; };
  if (m.from.has_value() != (m.own < m.hi) || (m.from && !is_peer(*m.from)))
    return fail(Errc::corrupt, "recovery: the message names no rank to get results from");
  for (std::size_t i = 0; i < m.to.size(); ++i) {
    const auto same = [&](const LaneMoves::To& other) { return other.rank == m.to[i].rank; };
    if (!is_peer(m.to[i].rank) || m.to[i].rank == m.from || m.to[i].prefix < m.lo || m.to[i].prefix > m.own ||
        std::ranges::count_if(m.to, same) > 1) {
      return fail(Errc::corrupt, "recovery: results for a rank that cannot lack them");
    }
  }
  if (!m.wanted.empty() && (m.wanted.front() < m.lo || m.wanted.back() >= m.hi))
    return fail(Errc::corrupt, "recovery: a result is wanted that no rank has received");
  return {};
}

bool Repair::wants(const SequenceEntry& entry, const LaneMoves& moves) const noexcept {
  return is_for_one(entry) && entry.segment.owner == rank_ && entry.sequence >= moves.own;
}

Status Repair::plan(std::uint32_t lane) {
  const LaneMoves& m = moves_[lane];
  // check() has refused moves outside of the window that every rank keeps (lane_link.h).
  TRIBUTARY_ASSERT(m.lo <= m.own && m.own <= m.hi && m.hi - m.lo <= lanes_[lane]->descriptor().window,
                   "lane {} of {} results is repaired from {} to {}", lane, m.own, m.lo, m.hi);
  for (std::uint64_t sequence = m.lo; sequence < m.hi; ++sequence) {
    const SequenceEntry* entry = lanes_[lane]->entry(sequence);
    // Some rank has the result, so every rank has contributed. If this rank has no entry, it has reported a wrong
    // state.
    if (entry == nullptr)
      return fail(Errc::corrupt, "recovery: this rank has no record of sequence " + std::to_string(sequence) +
                                     " of lane " + std::to_string(lane));
    const bool wanted = std::ranges::binary_search(m.wanted, sequence);
    if (wanted ? !is_for_one(*entry) || (entry->segment.owner == rank_ && sequence < m.own) : wants(*entry, m))
      return fail(Errc::corrupt, "recovery: other results are wanted than this rank has reported");
    const Pattern pattern = pattern_of(entry->signature.collective);
    if (wanted) make_again(lane, *entry);
    if (entry->segment.count > 0 && (pattern == Pattern::all_to_all_ranks || pattern == Pattern::one_to_all))
      pass_result(lane, *entry);
  }
  return {};
}

void Repair::pass_result(std::uint32_t lane, const SequenceEntry& entry) {
  const LaneMoves& m = moves_[lane];
  TRIBUTARY_ASSERT(m.lo <= entry.sequence && entry.sequence < m.hi, "sequence {} is passed on, of {} to {}",
                   entry.sequence, m.lo, m.hi);
  const auto has_its_own = [&entry](std::uint32_t rank) {
    return pattern_of(entry.signature.collective) == Pattern::one_to_all && entry.segment.owner == rank;
  };
  const std::uint64_t number = items_.size();
  Item& item = items_.emplace_back(Item{.lane = lane, .entry = &entry});
  if (entry.sequence >= m.own && !has_its_own(rank_)) {
    TRIBUTARY_ASSERT(m.from.has_value(), "sequence {} of lane {} comes from no rank", entry.sequence, lane);
    ++item.missing;
    receive(*m.from, number, {entry.operation->result_of(entry.segment), bytes_of(entry)});
  } else {
    item.bytes = {lanes_[lane]->result_bytes(entry), bytes_of(entry)};
  }
  for (const LaneMoves::To& to : m.to) {
    if (entry.sequence >= to.prefix && !has_its_own(to.rank)) send(to.rank, number);
  }
}

void Repair::make_again(std::uint32_t lane, const SequenceEntry& entry) {
  const FanIn tree(nranks_, entry.segment.owner, kFanIn);
  const std::uint64_t number = items_.size();
  Item& item = items_.emplace_back(Item{.lane = lane, .entry = &entry, .again = true, .from = tree.children(rank_)});
  TRIBUTARY_ASSERT(item.from.size() <= kFanIn, "{} ranks send inputs, one pass reduces {}", item.from.size(), kFanIn);
  item.missing = static_cast<std::uint32_t>(item.from.size());
  item.inputs.resize(item.from.size());
  for (const std::uint32_t child : item.from) item.ranks.push_back(tree.subtree(child));
  for (std::size_t i = 0; i < item.from.size(); ++i) {
    const bool form = is_form(entry, item.ranks[i]);
    item.inputs[i].resize(form ? form_bytes_max(entry.signature.dtype, entry.segment.count) : bytes_of(entry));
    receive(item.from[i], number, item.inputs[i], form);
  }
  if (const auto parent = tree.parent(rank_)) send(*parent, number);
  if (item.missing == 0) reduce(item);
}

void Repair::receive(std::uint32_t peer, std::uint64_t item, std::span<std::byte> into, bool form) {
  TRIBUTARY_ASSERT(peer != rank_ && peer < nranks_ && item < items_.size(),
                   "rank {} of {} gets item {} of {} from rank {}", rank_, nranks_, item, items_.size(), peer);
  const SequenceEntry& entry = *items_[item].entry;
  ++outstanding_;
  mesh_.link(PeerClass::repair, peer)
      .post({.type = FrameType::repair,
             .operation = entry.number,
             .tag = entry.sequence,
             .signature = entry.signature,
             .bytes = static_cast<std::uint32_t>(into.size()),
             .form_elements = form ? entry.segment.count : 0,
             .into = into.data(),
             .cookie = item});
}

void Repair::send(std::uint32_t peer, std::uint64_t item) {
  TRIBUTARY_ASSERT(peer != rank_ && peer < nranks_ && item < items_.size(),
                   "rank {} of {} sends item {} of {} to rank {}", rank_, nranks_, item, items_.size(), peer);
  TRIBUTARY_ASSERT(out_[peer].empty() || out_[peer].back() < item, "item {} for rank {} comes after item {}", item,
                   peer, out_[peer].back());
  ++outstanding_;
  out_[peer].push_back(item);
}

/// Sends the bytes that are ready. Each peer gets them in the order of the items.
void Repair::flush() {
  for (auto& [peer, line] : out_) {
    while (!line.empty() && !items_[line.front()].bytes.empty()) {
      const Item& item = items_[line.front()];
      const SequenceEntry& entry = *item.entry;
      line.pop_front();
      FrameHeader header;
      header.type = FrameType::repair;
      header.lane = static_cast<std::uint8_t>(item.lane);
      header.operation = entry.number;
      header.segment = entry.segment_index;
      header.sequence = entry.sequence;
      header.set_signature(entry.signature);
      ++moved_;
      mesh_.link(PeerClass::repair, peer).send(header, item.bytes, 0);
    }
  }
}

void Repair::received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload) {
  TRIBUTARY_ASSERT(receive.cookie < items_.size(), "item {} of {} has arrived", receive.cookie, items_.size());
  Item& item = items_[receive.cookie];
  TRIBUTARY_ASSERT(item.missing > 0 && item.bytes.empty(), "item {} is complete and gets more", receive.cookie);
  if (item.again) {
    const auto from = static_cast<std::size_t>(std::ranges::lower_bound(item.from, peer) - item.from.begin());
    TRIBUTARY_ASSERT(from < item.from.size() && item.from[from] == peer, "rank {} sends an input that nobody asked for",
                     peer);
    item.inputs[from].resize(payload.size());  // a form may be shorter
  }
  if (--item.missing == 0) {
    if (item.again) {
      reduce(item);
    } else {
      item.bytes = {item.entry->operation->result_of(item.entry->segment), bytes_of(*item.entry)};
    }
    flush();
  }
  finish_one();
}

// Reduces this rank's input and the partial results of its children in one pass, in the order of the ranks. The last
// pass, at the rank that wants the result, also divides an average.
void Repair::reduce(Item& item) {
  TRIBUTARY_ASSERT(item.again && item.missing == 0 && item.ranks.size() == item.from.size() &&
                       item.inputs.size() == item.from.size(),
                   "a result of {} children is reduced, {} are missing", item.from.size(), item.missing);
  const SequenceEntry& e = *item.entry;
  const bool last = e.segment.owner == rank_;
  const std::span<const std::byte> own = lanes_[item.lane]->input_bytes(e);
  if (!last && item.from.empty()) {
    item.bytes = own;
    return;
  }
  if (is_exact(e.signature.op)) return reduce_exact(item);
  std::array<const void*, kernels::kReduceInputsMax> inputs;
  std::array<std::uint32_t, kernels::kReduceInputsMax> ranks;
  std::size_t count = 0;
  const auto before = static_cast<std::size_t>(std::ranges::lower_bound(item.from, rank_) - item.from.begin());
  for (std::size_t i = 0; i <= item.from.size(); ++i) {
    if (i == before) {
      ranks[count] = 1;
      inputs[count++] = own.data();
    }
    if (i < item.from.size()) {
      ranks[count] = item.ranks[i];
      inputs[count++] = item.inputs[i].data();
    }
  }
  TRIBUTARY_ASSERT(count == item.from.size() + 1, "{} inputs of {} children and this rank", count, item.from.size());
  if (!last) item.sum.resize(bytes_of(e));
  std::byte* const out = last ? e.operation->result_of(e.segment) : item.sum.data();
  kernels::reduce_step(e.signature.dtype, e.signature.op, {inputs.data(), count}, out, e.segment.count,
                       {.divisor = last ? nranks_ : 1, .ranks = {ranks.data(), count}});
  item.inputs.clear();
  item.bytes = {out, bytes_of(e)};
}

// Adds this rank's input and those of its children without rounding. The last pass, at the rank that wants the result,
// rounds.
void Repair::reduce_exact(Item& item) {
  const SequenceEntry& e = *item.entry;
  const DType dtype = e.signature.dtype;
  std::vector<kernels::PartialInput> inputs{{.bytes = lanes_[item.lane]->input_bytes(e), .is_form = is_form(e, 1)}};
  for (std::size_t i = 0; i < item.from.size(); ++i)
    inputs.push_back({.bytes = item.inputs[i], .is_form = is_form(e, item.ranks[i])});
  if (e.segment.owner != rank_) {
    item.sum.resize(form_bytes_max(dtype, e.segment.count));
    item.sum.resize(kernels::add_partial_sums(dtype, inputs, e.segment.count, item.sum));
    item.inputs.clear();
    item.bytes = item.sum;
    return;
  }
  std::uint64_t ranks = 0;
  for (const kernels::PartialInput& input : inputs) ranks += kernels::ranks_of(dtype, input);
  const bool average = e.signature.op == kExactAverage || e.signature.op == kExactAverageOfHosts;
  std::byte* const out = e.operation->result_of(e.segment);
  kernels::round_partial_sums(dtype, inputs, out, e.segment.count,
                              average ? static_cast<std::uint32_t>(std::min<std::uint64_t>(ranks, kRanksMax)) : 1);
  item.inputs.clear();
  item.bytes = {out, bytes_of(e)};
}

void Repair::sent() {
  finish_one();
}

void Repair::finish_one() {
  TRIBUTARY_ASSERT(outstanding_ > 0, "a repair ends twice, after {} moves", moved_);
  if (--outstanding_ == 0) done_();
}

}  // namespace tributary::client
