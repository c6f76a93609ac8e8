#include "client/collectives/fallback/strand.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/collective.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

void Strand::start(const Operation& operation, const Piece& piece, const Plan& plan, std::uint64_t number) {
  operation_ = &operation;
  piece_ = piece;
  number_ = number;
  round_ = 0;
  outstanding_ = 0;
  const auto element = static_cast<std::uint32_t>(operation.element_bytes());
  const DType dtype = operation.signature.dtype;
  const bool exact = takes_all_inputs(operation.signature.op) && row_of(piece.collective).reduces;
  const bool forms = exact && is_exact_of_hosts(operation.signature.op) && piece.count > 0;
  TRIBUTARY_ASSERT(!forms || plan.ranks > 1, "one host sums between hosts: {}", to_string(operation));
  schedule_.emplace(schedule::Parameters{.collective = piece.collective,
                                         .algorithm = plan.algorithm,
                                         .ranks = plan.ranks,
                                         .rank = plan.rank,
                                         .root = piece.root,
                                         .count = piece.count,
                                         .element_bytes = element,
                                         .exact = exact,
                                         .input_elements_max = forms ? FormExchange::elements_max(dtype) : 0,
                                         .piece_bytes = kPieceBytes,
                                         .in_place = piece.in_place});
  rounds_ = schedule_->rounds();
  forms_ = forms ? &exchange_ : nullptr;
  std::uint64_t scratch = schedule_->scratch_count();
  if (forms) {
    scratch /= plan.ranks;  // the exchange keeps the forms of the parts
    exchange_.start(operation, {.ranks = plan.ranks, .rank = plan.rank, .part = scratch});
  } else if (exact) {
    exact_inputs_.resize(plan.ranks);
  }
  scratch_.resize(std::max<std::size_t>(scratch_.size(), scratch * element));
}

void Strand::start_round(PeerMesh& mesh, PeerClass peer_class, const MessageTrace& trace, std::uint64_t cookie) {
  TRIBUTARY_ASSERT(round_ < rounds_ && outstanding_ == 0, "round {} of {} starts while {} messages are under way",
                   round_, rounds_, outstanding_);
  schedule_->actions(round_, actions_);
  if (forms_ != nullptr) forms_->start_round();
  for (const schedule::Action& action : actions_) do_local(action);
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    if (const auto* send = std::get_if<schedule::Send>(&actions_[i])) {
      do_send(mesh, peer_class, trace, *send, cookie | i);
    } else if (const auto* receive = std::get_if<schedule::Receive>(&actions_[i])) {
      do_receive(mesh, peer_class, *receive, cookie | i);
    }
  }
  ++round_;
}

std::byte* Strand::at(const schedule::Slice& slice) const noexcept {
  const std::size_t offset = slice.offset * operation_->element_bytes();
  switch (slice.buffer) {
    case schedule::Buffer::send:
      return const_cast<std::byte*>(piece_.send) + offset;  // never written: see schedule.h
    case schedule::Buffer::recv:
      return piece_.recv + offset;
    case schedule::Buffer::scratch:
      return const_cast<std::byte*>(scratch_.data()) + offset;
  }
  return nullptr;
}

std::size_t Strand::bytes(const schedule::Slice& slice) const noexcept {
  return slice.count * operation_->element_bytes();
}

void Strand::do_local(const schedule::Action& action) {
  const Signature& s = operation_->signature;
  if (const auto* copy = std::get_if<schedule::LocalCopy>(&action)) {
    if (FormExchange* const forms = forms_to_take(copy->into)) return forms->use_own(at(copy->from));
    if (copy->from.count > 0 && at(copy->from) != at(copy->into))
      std::memmove(at(copy->into), at(copy->from), bytes(copy->from));
  } else if (const auto* reduce = std::get_if<schedule::LocalReduce>(&action)) {
    if (forms_ != nullptr) return forms_->reduce(at(reduce->into));
    if (takes_all_inputs(s.op)) return do_exact(*reduce);
    TRIBUTARY_ASSERT(reduce->operands <= kernels::kReduceInputsMax, "{} operands are reduced in one pass",
                     reduce->operands);
    std::array<const void*, kernels::kReduceInputsMax> inputs;
    const std::byte* input = at(reduce->first);
    for (std::uint32_t i = 0; i < reduce->operands; ++i, input += bytes(reduce->first)) inputs[i] = input;
    std::array<std::uint32_t, kernels::kReduceInputsMax> ranks;
    ranks.fill(1);
    ranks[0] = reduce->first_ranks;
    kernels::reduce_step(s.dtype, s.op, {inputs.data(), reduce->operands}, at(reduce->into), reduce->first.count,
                         {.divisor = reduce->divisor, .ranks = {ranks.data(), reduce->operands}});
  }
}

/// Reduces the inputs of all ranks at once: these operators have no limit on their inputs.
void Strand::do_exact(const schedule::LocalReduce& reduce) {
  const Signature& s = operation_->signature;
  TRIBUTARY_ASSERT(reduce.operands == exact_inputs_.size(), "{} of {} inputs make an exact sum", reduce.operands,
                   exact_inputs_.size());
  const std::byte* input = at(reduce.first);
  for (const void*& operand : exact_inputs_) {
    operand = input;
    input += bytes(reduce.first);
  }
  kernels::reduce_step(s.dtype, s.op, exact_inputs_, at(reduce.into), reduce.first.count, {.divisor = reduce.divisor});
}

FrameHeader Strand::header() const {
  FrameHeader h;
  h.type = FrameType::peer_data;
  h.operation = operation_->number;
  h.sequence = (number_ << 40U) | round_;
  h.set_signature(operation_->signature);
  return h;
}

void Strand::do_send(PeerMesh& mesh, PeerClass peer_class, const MessageTrace& trace, const schedule::Send& send,
                     std::uint64_t cookie) {
  ++outstanding_;
  const std::byte* const from = at(send.from);
  FormExchange* const forms = forms_to_send(send.from);
  const auto payload =
      forms != nullptr ? forms->form(from, send.from.count) : std::span<const std::byte>(from, bytes(send.from));
  const FrameHeader h = header();
  trace.sent(send.peer, h, payload.size());
  mesh.link(peer_class, send.peer).send(h, payload, cookie);
}

void Strand::do_receive(PeerMesh& mesh, PeerClass peer_class, const schedule::Receive& receive, std::uint64_t cookie) {
  ++outstanding_;
  const bool form = forms_to_take(receive.into) != nullptr;
  const std::size_t most = form ? form_bytes_max(operation_->signature.dtype, receive.into.count) : bytes(receive.into);
  TRIBUTARY_ASSERT(most <= kPieceBytes, "a message of {} bytes would come", most);
  const FrameHeader h = header();
  const bool copies = receive.landing == schedule::Landing::copy && !form;
  mesh.link(peer_class, receive.peer)
      .post({.type = h.type,
             .operation = h.operation,
             .tag = h.sequence,
             .signature = operation_->signature,
             .bytes = static_cast<std::uint32_t>(most),
             .form_elements = form ? static_cast<std::uint32_t>(receive.into.count) : 0,
             .into = copies ? at(receive.into) : nullptr,
             .cookie = cookie});
}

void Strand::land(const schedule::Receive& action, std::span<std::byte> payload) {
  if (FormExchange* const forms = forms_to_take(action.into))
    return forms->take(action.into.offset, action.into.count, payload);
  if (action.landing == schedule::Landing::copy) return;
  const Signature& s = operation_->signature;
  std::array<const void*, 2> inputs{payload.data(), at(action.operand)};
  std::array<std::uint32_t, 2> ranks{action.received_ranks, action.operand_ranks};
  if (action.landing == schedule::Landing::received_second) {
    std::swap(inputs[0], inputs[1]);
    std::swap(ranks[0], ranks[1]);
  }
  kernels::reduce_step(s.dtype, s.op, inputs, at(action.into), action.into.count,
                       {.divisor = action.divisor, .ranks = ranks});
}

void Strand::received(std::uint32_t index, std::span<std::byte> payload) {
  land(std::get<schedule::Receive>(actions_[index]), payload);
  --outstanding_;
}

void Strand::add_waits(std::vector<std::uint32_t>& ranks) const {
  if (outstanding_ == 0) return;
  for (const schedule::Action& action : actions_) {
    if (const auto* receive = std::get_if<schedule::Receive>(&action)) ranks.push_back(receive->peer);
  }
}

}  // namespace tributary::client
