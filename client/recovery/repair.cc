#include "client/recovery/repair.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "tributary/kernels/reduce.h"

namespace tributary::client {

Result<std::vector<LaneRange>> ranges_of(const std::vector<Holdings>& by_rank, std::uint32_t window) {
  std::vector<LaneRange> ranges(by_rank.at(0).size());
  for (std::size_t lane = 0; lane < ranges.size(); ++lane) {
    LaneRange range{UINT64_MAX, 0};
    for (const Holdings& holdings : by_rank) {
      if (holdings.size() != ranges.size())
        return fail(Errc::corrupt, "recovery: ranks report different numbers of lanes");
      range.lo = std::min(range.lo, holdings[lane]);
      range.hi = std::max(range.hi, holdings[lane]);
    }
    if (range.hi - range.lo > window)
      return fail(Errc::corrupt,
                  "recovery: results of lane " + std::to_string(lane) + " are further apart than a window");
    ranges[lane] = range;
  }
  return ranges;
}

Repair::Repair(PeerMesh& mesh, std::uint32_t rank, std::uint32_t nranks, std::vector<LaneLink*> lanes)
    : mesh_(mesh), rank_(rank), nranks_(nranks), lanes_(std::move(lanes)) {}

Status Repair::start(const std::vector<Holdings>& by_rank, std::function<void()> done) {
  if (lanes_.empty() || by_rank.size() != nranks_ || by_rank[0].size() != lanes_.size())
    return fail(Errc::corrupt, "recovery: holdings of another group");
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (by_rank[rank_].size() != lanes_.size() || by_rank[rank_][lane] != lanes_[lane]->prefix())
      return fail(Errc::corrupt, "recovery: other holdings than this rank has reported");
  }
  auto ranges = ranges_of(by_rank, lanes_[0]->descriptor().window);
  if (!ranges) return std::unexpected(ranges.error());
  ranges_ = std::move(*ranges);
  done_ = std::move(done);
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    // What is moved lies within what every rank keeps (lane_link.h).
    assert(ranges_[lane].hi - ranges_[lane].lo <= lanes_[lane]->descriptor().window);
    for (std::uint64_t sequence = ranges_[lane].lo; sequence < ranges_[lane].hi; ++sequence) {
      const SequenceEntry* entry = lanes_[lane]->entry(sequence);
      // Somebody has the result, so everybody contributed: a rank without the entry is not in the state it reported.
      if (entry == nullptr)
        return fail(Errc::corrupt,
                    "recovery: no trace of sequence " + std::to_string(sequence) + " of lane " + std::to_string(lane));
      move(lane, *entry, by_rank);
    }
  }
  finish_one();
  return {};
}

void Repair::move(std::uint32_t lane, const SequenceEntry& entry, const std::vector<Holdings>& by_rank) {
  switch (pattern_of(entry.signature.collective)) {
    case Pattern::all_to_all_ranks: {
      std::uint32_t holder = 0;
      while (by_rank[holder][lane] <= entry.sequence) ++holder;
      return move_result(lane, entry, holder, by_rank);
    }
    case Pattern::one_to_all:
      return move_result(lane, entry, entry.segment.owner, by_rank);
    case Pattern::all_to_one:
      if (by_rank[entry.segment.owner][lane] <= entry.sequence) gather_inputs(lane, entry);
      return;
    case Pattern::nothing:
      return;
  }
}

void Repair::move_result(std::uint32_t lane, const SequenceEntry& entry, std::uint32_t holder,
                         const std::vector<Holdings>& by_rank) {
  if (entry.segment.count == 0) return;
  if (rank_ == holder) {
    const std::byte* bytes = lanes_[lane]->result_bytes(entry);
    for (std::uint32_t r = 0; r < nranks_; ++r) {
      if (r != holder && by_rank[r][lane] <= entry.sequence) send_to(r, lane, entry, bytes);
    }
  } else if (by_rank[rank_][lane] <= entry.sequence) {
    receive_from(holder, lane, entry, entry.operation->result_of(entry.segment), UINT64_MAX);
  }
}

void Repair::gather_inputs(std::uint32_t lane, const SequenceEntry& entry) {
  if (entry.segment.count == 0) return;
  if (rank_ != entry.segment.owner) return send_to(entry.segment.owner, lane, entry, lanes_[lane]->input_bytes(entry));
  Gather& gather = gathers_.emplace_back();
  gather.entry = &entry;
  gather.inputs.resize(nranks_);
  gather.missing = nranks_ - 1;
  for (std::uint32_t r = 0; r < nranks_; ++r) {
    if (r == rank_) continue;
    gather.inputs[r].resize(entry.segment.count * size_of(entry.signature.dtype));
    receive_from(r, lane, entry, gather.inputs[r].data(), gathers_.size() - 1);
  }
  if (gather.missing == 0) reduce(gather);
}

void Repair::send_to(std::uint32_t peer, std::uint32_t lane, const SequenceEntry& entry, const std::byte* bytes) {
  FrameHeader header;
  header.type = FrameType::repair;
  header.lane = static_cast<std::uint8_t>(lane);
  header.operation = entry.number;
  header.segment = entry.segment_index;
  header.sequence = entry.sequence;
  header.set_signature(entry.signature);
  ++outstanding_;
  ++moved_;
  mesh_.link(PeerClass::repair, peer).send(header, {bytes, entry.segment.count * size_of(entry.signature.dtype)}, 0);
}

void Repair::receive_from(std::uint32_t peer, std::uint32_t, const SequenceEntry& entry, std::byte* into,
                          std::uint64_t cookie) {
  ++outstanding_;
  mesh_.link(PeerClass::repair, peer)
      .post({.type = FrameType::repair,
             .operation = entry.number,
             .tag = entry.sequence,
             .signature = entry.signature,
             .bytes = static_cast<std::uint32_t>(entry.segment.count * size_of(entry.signature.dtype)),
             .into = into,
             .cookie = cookie});
}

void Repair::received(std::uint32_t, const PostedReceive& receive, std::span<std::byte>) {
  if (receive.cookie != UINT64_MAX) {
    Gather& gather = gathers_[receive.cookie];
    if (--gather.missing == 0) reduce(gather);
  }
  finish_one();
}

// In rank order, at most kReduceInputsMax at a time; an average is divided in the last step, before its only rounding
// but one per step.
void Repair::reduce(Gather& gather) {
  const SequenceEntry& e = *gather.entry;
  std::byte* out = e.operation->result_of(e.segment);
  const std::byte* own = e.operation->input_of(e.segment);
  const auto input_of = [&](std::uint32_t r) -> const void* { return r == rank_ ? own : gather.inputs[r].data(); };
  std::vector<std::byte> sum(e.segment.count *
                             size_of(e.signature.dtype));  // `out` may be this rank's input (in place)
  std::array<const void*, kernels::kReduceInputsMax> inputs;
  std::uint32_t next = 0;
  while (next < nranks_) {
    std::uint32_t count = 0;
    if (next > 0) inputs[count++] = sum.data();
    while (next < nranks_ && count < inputs.size()) inputs[count++] = input_of(next++);
    const bool last = next == nranks_;
    kernels::reduce(e.signature.dtype, e.signature.op, {inputs.data(), count},
                    last ? static_cast<void*>(out) : sum.data(), e.segment.count,
                    last && e.signature.op == ReduceOp::avg ? nranks_ : 1);
  }
}

void Repair::sent() {
  finish_one();
}

void Repair::finish_one() {
  if (--outstanding_ == 0) done_();
}

}  // namespace tributary::client
