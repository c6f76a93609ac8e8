#include "client/collectives/fallback/runner.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tributary/kernels/reduce.h"

namespace tributary::client {

Piece whole(const Operation& o) {
  return {.collective = o.signature.collective,
          .root = o.signature.root,
          .send = o.send,
          .recv = o.recv,
          .count = o.signature.count,
          .in_place = o.in_place};
}

void FallbackRunner::run(const Operation& operation, std::vector<Piece> pieces, std::function<void()> done) {
  operation_ = &operation;
  pieces_ = std::move(pieces);
  done_ = std::move(done);
  piece_ = 0;
  start_piece();
  proceed();
}

void FallbackRunner::stop() {
  operation_ = nullptr;
  schedule_.reset();
  outstanding_ = 0;
}

void FallbackRunner::start_piece() {
  round_ = 0;
  schedule_.reset();
  if (piece_ == pieces_.size()) return;
  const Piece& p = pieces_[piece_];
  const auto element = static_cast<std::uint32_t>(operation_->element_bytes());
  const std::uint64_t bytes = tuning::vector_bytes(p.collective, nranks_, p.count * element);
  schedule_.emplace(schedule::Parameters{.collective = p.collective,
                                         .algorithm = policy_.at(p.collective, bytes).algorithm,
                                         .ranks = nranks_,
                                         .rank = rank_,
                                         .root = p.root,
                                         .count = p.count,
                                         .element_bytes = element,
                                         .piece_bytes = kPieceBytes,
                                         .in_place = p.in_place});
  scratch_.resize(std::max<std::size_t>(scratch_.size(), schedule_->scratch_count() * element));
}

// Goes on as long as nothing is outstanding. A loop, not a recursion: rounds may be empty, and a transport may complete
// at once.
void FallbackRunner::proceed() {
  if (starting_) return;
  starting_ = true;
  while (operation_ != nullptr && outstanding_ == 0) {
    if (!schedule_) {
      operation_ = nullptr;
      const auto done = std::move(done_);
      starting_ = false;
      return done();
    }
    if (round_ == schedule_->rounds()) {
      ++piece_;
      start_piece();
      continue;
    }
    start_round();
    ++round_;
  }
  starting_ = false;
}

void FallbackRunner::start_round() {
  schedule_->actions(round_, actions_);
  for (const schedule::Action& action : actions_) do_local(action);
  for (std::size_t i = 0; i < actions_.size(); ++i) do_remote(actions_[i], i);
}

std::byte* FallbackRunner::at(const schedule::Slice& slice) const noexcept {
  const Piece& p = pieces_[piece_];
  const std::size_t offset = slice.offset * operation_->element_bytes();
  switch (slice.buffer) {
    case schedule::Buffer::send:
      return const_cast<std::byte*>(p.send) + offset;  // never written: see schedule.h
    case schedule::Buffer::recv:
      return p.recv + offset;
    case schedule::Buffer::scratch:
      return const_cast<std::byte*>(scratch_.data()) + offset;
  }
  return nullptr;
}

std::size_t FallbackRunner::bytes(const schedule::Slice& slice) const noexcept {
  return slice.count * operation_->element_bytes();
}

void FallbackRunner::do_local(const schedule::Action& action) {
  const Signature& s = operation_->signature;
  if (const auto* copy = std::get_if<schedule::LocalCopy>(&action)) {
    if (copy->from.count > 0 && at(copy->from) != at(copy->into))
      std::memmove(at(copy->into), at(copy->from), bytes(copy->from));
  } else if (const auto* reduce = std::get_if<schedule::LocalReduce>(&action)) {
    std::array<const void*, kernels::kReduceInputsMax> inputs;
    const std::byte* input = at(reduce->first);
    for (std::uint32_t i = 0; i < reduce->operands; ++i, input += bytes(reduce->first)) inputs[i] = input;
    kernels::reduce(s.dtype, s.op, {inputs.data(), reduce->operands}, at(reduce->into), reduce->first.count,
                    reduce->divisor);
  }
}

FrameHeader FallbackRunner::header() const {
  FrameHeader h;
  h.type = FrameType::peer_data;
  h.operation = operation_->number;
  h.sequence = (static_cast<std::uint64_t>(piece_) << 40U) | round_;
  h.set_signature(operation_->signature);
  return h;
}

void FallbackRunner::do_remote(const schedule::Action& action, std::uint64_t index) {
  if (const auto* send = std::get_if<schedule::Send>(&action)) {
    ++outstanding_;
    mesh_.link(PeerClass::collective, send->peer).send(header(), {at(send->from), bytes(send->from)}, index);
  } else if (const auto* receive = std::get_if<schedule::Receive>(&action)) {
    ++outstanding_;
    const FrameHeader h = header();
    const bool copies = receive->landing == schedule::Landing::copy;
    mesh_.link(PeerClass::collective, receive->peer)
        .post({.type = h.type,
               .operation = h.operation,
               .tag = h.sequence,
               .signature = operation_->signature,
               .bytes = static_cast<std::uint32_t>(bytes(receive->into)),
               .into = copies ? at(receive->into) : nullptr,
               .cookie = index});
  }
}

void FallbackRunner::land(const schedule::Receive& action, std::span<std::byte> payload) {
  if (action.landing == schedule::Landing::copy) return;
  const Signature& s = operation_->signature;
  std::array<const void*, 2> inputs{payload.data(), at(action.operand)};
  if (action.landing == schedule::Landing::received_second) std::swap(inputs[0], inputs[1]);
  kernels::reduce(s.dtype, s.op, inputs, at(action.into), action.into.count, action.divisor);
}

void FallbackRunner::received(std::uint32_t, const PostedReceive& receive, std::span<std::byte> payload) {
  if (operation_ == nullptr || receive.operation != operation_->number) return;
  land(std::get<schedule::Receive>(actions_[receive.cookie]), payload);
  --outstanding_;
  proceed();
}

void FallbackRunner::sent() {
  if (operation_ == nullptr) return;
  --outstanding_;
  proceed();
}

std::vector<std::uint32_t> FallbackRunner::waits_for() const {
  std::vector<std::uint32_t> ranks;
  if (operation_ == nullptr || !schedule_) return ranks;
  for (const schedule::Action& action : actions_) {
    if (const auto* receive = std::get_if<schedule::Receive>(&action)) ranks.push_back(receive->peer);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace tributary::client
