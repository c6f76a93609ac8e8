#include "aggregator/engine/lane.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "tributary/kernels/partial_sum.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/lane_memory.h"
#include "tributary/protocol/numerics.h"

namespace tributary::engine {
namespace {

// The number of waiting contributions from which an early, partial reduction pays: it reads and writes the sum once
// more, and several inputs must share this cost.
constexpr std::uint32_t kEagerInputs = 4;

bool reduces(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::reduce_scatter;
}

/// The size of an element is a power of two, so no division is needed.
bool whole_elements(const FrameHeader& header) noexcept {
  return (header.payload_bytes & (size_of(header.dtype) - 1)) == 0;
}
std::size_t elements(std::uint32_t bytes, DType dtype) noexcept {
  return bytes >> static_cast<unsigned>(std::countr_zero(size_of(dtype)));
}

bool same_call(const FrameHeader& a, const FrameHeader& b) noexcept {
  return a.operation == b.operation && a.count == b.count && a.segment == b.segment && a.root == b.root &&
         a.collective == b.collective && a.dtype == b.dtype && a.op == b.op;
}

std::uint64_t bytes_of(const LaneShape& shape) noexcept {
  return lane_memory_bytes(shape.children, shape.window, shape.segment_bytes);
}

}  // namespace

std::string_view to_string(Refusal refusal) noexcept {
  switch (refusal) {
    case Refusal::stale_epoch:
      return "frame of another epoch";
    case Refusal::duplicate:
      return "contribution that was counted already";
    case Refusal::beyond_window:
      return "contribution beyond the window";
    case Refusal::wrong_length:
      return "contribution of the wrong length";
    case Refusal::unexpected_data:
      return "contribution whose data does not fit its collective";
    case Refusal::no_such_segment:
      return "result for a segment that is not waiting";
    case Refusal::over:
      return "frame after a fault";
    case Refusal::partial_exact:
      return "exact sum, and the children do not stand for all ranks";
    case Refusal::malformed_form:
      return "partial sum that is no form";
    case Refusal::too_early:
      return "contribution before the lane is ready";
  }
  return "unknown";
}

Lane::Lane(const LaneShape& shape, std::uint32_t epoch, std::span<std::byte> memory)
    : shape_(shape),
      epoch_(epoch),
      everyone_(shape.children == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << shape.children) - 1),
      place_bits_(std::has_single_bit(shape.window) ? shape.window - 1 : 0),
      memory_(memory.empty() ? own_memory_.emplace(bytes_of(shape)).bytes() : memory),
      buffers_(memory_, bytes_of(shape), shape.segment_bytes),
      taken_(std::size_t{shape.window} * (shape.children + 1U)),
      in_place_(std::size_t{shape.window} * shape.children),
      ranks_(shape.children, 1),
      form_bytes_(in_place_.size()),
      ranks_in_all_(std::max(shape.root ? shape.ranks : shape.ranks_below, shape.children)),
      slots_(shape.window) {
  TRIBUTARY_ASSERT(shape.children >= 1 && shape.children <= kChildrenMax, "a lane of {} children", shape.children);
  TRIBUTARY_ASSERT(shape.window >= 1 && shape.window <= kWindowMax, "a lane whose window has {} slots", shape.window);
  TRIBUTARY_ASSERT(shape.segment_bytes <= kSegmentBytesMax && shape.segment_bytes % 64 == 0,
                   "a lane whose segments have {} bytes", shape.segment_bytes);
  TRIBUTARY_ASSERT(buffers_.count() == taken_.size(), "a lane has {} buffers, and its slots take {}", buffers_.count(),
                   taken_.size());
  for (std::uint32_t i = 0; i < shape.window; ++i) slots_[i].sequence = slots_[i].place = i;
}

void Lane::set_child(std::uint32_t child, std::uint32_t ranks, bool aggregator) noexcept {
  TRIBUTARY_ASSERT(child < shape_.children, "child {} of {}", child, shape_.children);
  TRIBUTARY_ASSERT(ranks > 0, "child {} stands for no rank", child);
  TRIBUTARY_ASSERT(in_flight_ == 0, "child {} gets its number of ranks while {} segments are in flight", child,
                   in_flight_);
  ranks_[child] = ranks;
  const std::uint64_t bit = std::uint64_t{1} << child;
  aggregators_ = aggregator ? aggregators_ | bit : aggregators_ & ~bit;
}

std::byte*& Lane::buffer(const Slot& slot, std::uint32_t child) noexcept {
  TRIBUTARY_ASSERT(child <= shape_.children && slot.place < shape_.window, "buffer {} of slot {}", child, slot.place);
  return taken_[std::size_t{slot.place} * (shape_.children + 1U) + child];
}

std::byte* Lane::receive_buffer(const Slot& slot, std::uint32_t child) noexcept {
  std::byte*& taken = buffer(slot, child);
  if (taken == nullptr) taken = is_read_elsewhere(child) ? buffers_.take_for_readers() : buffers_.take();
  return taken;
}

void Lane::release(const Slot& slot, std::uint32_t from, std::uint32_t to) noexcept {
  for (std::uint32_t child = from; child < to; ++child) {
    std::byte* const taken = std::exchange(buffer(slot, child), nullptr);
    if (taken == nullptr) continue;
    if (is_read_elsewhere(child)) {
      buffers_.give_back_from_readers(taken);
    } else {
      buffers_.give_back(taken);
    }
  }
}

void Lane::pass_on(const Slot& slot, std::uint32_t child) noexcept {
  std::swap(buffer(slot, shape_.children), buffer(slot, child));
  release(slot, child, child + 1);
}

void Lane::sent(std::uint64_t sequence) noexcept {
  Slot& slot = slot_of(sequence);
  if (slot.out_sequence != sequence || slot.readers == 0) return;  // the slot has another sum by now
  if (--slot.readers == 0 && slot.state == SlotState::complete) release(slot, shape_.children, shape_.children + 1);
}

const std::byte*& Lane::in_place(const Slot& slot, std::uint32_t child) noexcept {
  TRIBUTARY_ASSERT(child < shape_.children && slot.place < shape_.window, "child {} in slot {}", child, slot.place);
  return in_place_[std::size_t{slot.place} * shape_.children + child];
}

const std::byte* Lane::input(const Slot& slot, std::uint32_t child) noexcept {
  const std::byte* elsewhere = in_place(slot, child);
  return elsewhere != nullptr ? elsewhere : receive_buffer(slot, child);
}

void Lane::give_back(const Slot& slot, std::uint32_t from, std::uint32_t to, LaneOutput& output) noexcept {
  for (std::uint32_t child = from; child < to; ++child) {
    const std::byte* elsewhere = std::exchange(in_place(slot, child), nullptr);
    if (elsewhere != nullptr) output.give_back(child, {elsewhere, slot.payload_bytes});
  }
}

// A slot takes a contribution for the sequence that it collects. If it is idle, or its result was sent, it takes a
// contribution for the next sequence of this slot.
std::expected<void, Refusal> Lane::admit(const Slot& slot, std::uint32_t child, std::uint64_t sequence) const noexcept {
  if (over_) return std::unexpected(Refusal::over);
  const std::uint64_t next = slot.state == SlotState::complete ? slot.sequence + shape_.window : slot.sequence;
  if (sequence < next) return std::unexpected(Refusal::duplicate);
  if (sequence > next) return std::unexpected(Refusal::beyond_window);
  if (slot.state == SlotState::waiting) return std::unexpected(Refusal::duplicate);
  if (slot.state == SlotState::collecting && ((slot.arrived >> child) & 1U) != 0)
    return std::unexpected(Refusal::duplicate);
  return {};
}

std::expected<std::span<std::byte>, Refusal> Lane::contribution_begins(std::uint32_t child,
                                                                       const FrameHeader& header) noexcept {
  TRIBUTARY_ASSERT(child < shape_.children, "child {} of {} contributes", child, shape_.children);
  if (header.epoch != epoch_) return std::unexpected(Refusal::stale_epoch);
  Slot& slot = slot_of(header.sequence);
  if (auto ok = admit(slot, child, header.sequence); !ok) return std::unexpected(ok.error());
  if (header.payload_bytes > shape_.segment_bytes || (header.bare() && header.payload_bytes != 0))
    return std::unexpected(Refusal::wrong_length);
  return std::span(receive_buffer(slot, child), header.payload_bytes);
}

bool Lane::is_form(std::uint32_t child, const FrameHeader& header) const noexcept {
  return is_exact(header.op) && reduces(header.collective) &&
         (is_exact_of_hosts(header.op) || ((aggregators_ >> child) & 1U) != 0);
}

std::uint32_t& Lane::form_bytes(const Slot& slot, std::uint32_t child) noexcept {
  TRIBUTARY_ASSERT(child < shape_.children && slot.place < shape_.window, "form {} of slot {}", child, slot.place);
  return form_bytes_[std::size_t{slot.place} * shape_.children + child];
}

/// A contribution that is not summed (from an only child, or of a pattern that passes data on) moves by a swap of
/// buffers, so it must be in a buffer of the lane. So must a form, which is checked once and read later.
bool Lane::takes_in_place(std::uint32_t child, const FrameHeader& header) noexcept {
  return header.epoch == epoch_ && shape_.children > 1 && !header.bare() && reduces(header.collective) &&
         !is_form(child, header) && header.payload_bytes <= shape_.segment_bytes &&
         admit(slot_of(header.sequence), child, header.sequence);
}

void Lane::open(Slot& slot, std::uint32_t child, const FrameHeader& header) noexcept {
  TRIBUTARY_ASSERT(slot.state == SlotState::idle || slot.state == SlotState::complete,
                   "segment {} opens the slot of segment {}, which is in state {}", header.sequence, slot.sequence,
                   slot.state);
  TRIBUTARY_ASSERT(header.sequence == slot.sequence + (slot.state == SlotState::complete ? shape_.window : 0),
                   "segment {} follows segment {} in a window of {}", header.sequence, slot.sequence, shape_.window);
  TRIBUTARY_ASSERT(in_flight_ < shape_.window, "{} segments are in flight in a window of {}", in_flight_,
                   shape_.window);
  slot.sequence = header.sequence;
  slot.arrived = slot.with_data = slot.wants_result = 0;
  slot.first = header;
  slot.first_child = child;
  slot.payload_bytes = slot.up_bytes = 0;
  slot.reduced = 0;
  slot.state = SlotState::collecting;
  slot.data_known = slot.data_from_below = false;
  ++in_flight_;
}

// The result of an exact sum, and its form in the worst case, must fit in a segment.
std::expected<std::uint32_t, Refusal> Lane::length_of(std::uint32_t child, const FrameHeader& header,
                                                      const std::byte* data) const noexcept {
  if (!is_exact(header.op) || !reduces(header.collective)) {
    if (!whole_elements(header)) return std::unexpected(Refusal::wrong_length);
    return header.payload_bytes;
  }
  std::size_t count = elements(header.payload_bytes, header.dtype);
  if (is_form(child, header)) {
    const auto of_form = kernels::partial_sum_elements(header.dtype, {data, header.payload_bytes});
    if (!of_form) return std::unexpected(Refusal::malformed_form);
    count = *of_form;
  } else if (!whole_elements(header)) {
    return std::unexpected(Refusal::wrong_length);
  }
  const std::size_t most = shape_.root ? elements(shape_.segment_bytes, header.dtype)
                                       : form_elements_max(header.dtype, shape_.segment_bytes);
  if (count > most) return std::unexpected(Refusal::wrong_length);
  return static_cast<std::uint32_t>(count * size_of(header.dtype));
}

std::expected<void, Refusal> Lane::check_data(Slot& slot, std::uint32_t child, const FrameHeader& header,
                                              const std::byte* data) noexcept {
  if (header.bare())
    return reduces(header.collective) ? std::unexpected(Refusal::unexpected_data) : std::expected<void, Refusal>{};
  if (header.op == kOrderedProduct && reduces(header.collective)) return std::unexpected(Refusal::unexpected_data);
  const bool lacks_ranks = shape_.root && aggregators_ == 0 && shape_.children != shape_.ranks;
  if (is_exact(header.op) && reduces(header.collective) && lacks_ranks) return std::unexpected(Refusal::partial_exact);
  if (!reduces(header.collective) && slot.with_data != 0) return std::unexpected(Refusal::unexpected_data);
  const auto bytes = length_of(child, header, data);
  if (!bytes) return std::unexpected(bytes.error());
  if (slot.data_known && slot.payload_bytes != *bytes) return std::unexpected(Refusal::wrong_length);
  TRIBUTARY_ASSERT(header.payload_bytes <= shape_.segment_bytes && *bytes <= shape_.segment_bytes,
                   "{} bytes landed in a segment of {}, for {} bytes", header.payload_bytes, shape_.segment_bytes,
                   *bytes);
  slot.payload_bytes = *bytes;
  form_bytes(slot, child) = header.payload_bytes;
  slot.data_known = true;
  slot.with_data |= std::uint64_t{1} << child;
  return {};
}

std::expected<void, Refusal> Lane::contribution_landed(std::uint32_t child, const FrameHeader& header,
                                                       LaneOutput& output, std::span<const std::byte> at) noexcept {
  TRIBUTARY_ASSERT(child < shape_.children, "child {} of {} contributed", child, shape_.children);
  TRIBUTARY_ASSERT(at.empty() || at.size() == header.payload_bytes, "a contribution of {} bytes lies in {}",
                   header.payload_bytes, at.size());
  Slot& slot = slot_of(header.sequence);
  if (auto ok = admit(slot, child, header.sequence); !ok) return ok;
  if (slot.state != SlotState::collecting) open(slot, child, header);
  if (!same_call(slot.first, header)) {
    over_ = true;
    output.fault(slot.first_child, child, {slot.first.operation, 0, 0, slot.first.signature(), header.signature()});
    return {};
  }
  if (auto ok = check_data(slot, child, header, at.empty() ? receive_buffer(slot, child) : at.data()); !ok) return ok;
  slot.arrived |= std::uint64_t{1} << child;
  in_place(slot, child) = at.data();
  if (header.wants_result()) slot.wants_result |= std::uint64_t{1} << child;
  TRIBUTARY_ASSERT((slot.with_data & ~slot.arrived) == 0 && (slot.arrived & ~everyone_) == 0,
                   "contributions of children {} have come, of {}, with data of {}", slot.arrived, everyone_,
                   slot.with_data);
  if (slot.arrived == everyone_) {
    finish_collecting(slot, output);
  } else if (reduces(header.collective) && !accumulates_wider(header.dtype) && !is_exact(header.op)) {
    reduce_prefix(slot, output);
  }
  return {};
}

/// Sums the data of children [0, to) in their order; children below `reduced` are summed already.
void Lane::reduce(const Slot& slot, std::uint32_t to, std::byte* into) noexcept {
  std::array<const void*, kChildrenMax> inputs;
  std::array<std::uint32_t, kChildrenMax> ranks;
  std::uint32_t count = 0;
  if (slot.reduced > 0) {
    ranks[count] = 1;
    inputs[count++] = receive_buffer(slot, 0);
  }
  for (std::uint32_t child = slot.reduced; child < to; ++child) {
    ranks[count] = ranks_[child];
    inputs[count++] = input(slot, child);
  }
  TRIBUTARY_ASSERT(slot.reduced < to && to <= shape_.children, "children {} to {} of {} are summed", slot.reduced, to,
                   shape_.children);
  TRIBUTARY_ASSERT(count >= 1 && count <= kChildrenMax, "{} inputs are summed", count);
  const bool whole = to == shape_.children;
  kernels::reduce_step(slot.first.dtype, slot.first.op, {inputs.data(), count}, into,
                       elements(slot.payload_bytes, slot.first.dtype),
                       {.divisor = whole && shape_.root ? shape_.ranks : 1,
                        .ranks = {ranks.data(), count},
                        .ranks_in_all = ranks_in_all_,
                        .begun = slot.reduced > 0,
                        .unfinished = !whole});
}

// Sums the longest run of arrived children that begins with child 0, so that less work is left when the last child's
// contribution comes. The sum stays in child 0's receive buffer: `out` may still be on its way to a slow child. Types
// with a wider accumulator wait for all children: see accumulates_wider().
void Lane::reduce_prefix(Slot& slot, LaneOutput& output) noexcept {
  const auto prefix = static_cast<std::uint32_t>(std::countr_one(slot.arrived));
  if (prefix < slot.reduced + kEagerInputs) return;
  TRIBUTARY_ASSERT(prefix < shape_.children, "a prefix of {} of {} children is summed early", prefix, shape_.children);
  reduce(slot, prefix, receive_buffer(slot, 0));
  give_back(slot, slot.reduced, prefix, output);
  release(slot, std::max(slot.reduced, 1U), prefix);
  slot.reduced = prefix;
}

/// Sums the values of ranks and the forms of aggregators and hosts. The root rounds; the other aggregators make a form.
void Lane::reduce_exact(Slot& slot) noexcept {
  std::array<kernels::PartialInput, kChildrenMax> inputs;
  std::uint32_t ranks = 0;
  for (std::uint32_t child = 0; child < shape_.children; ++child) {
    const bool form = is_form(child, slot.first);
    inputs[child] = {.bytes = {input(slot, child), form ? form_bytes(slot, child) : slot.payload_bytes},
                     .is_form = form};
    ranks += kernels::ranks_of(slot.first.dtype, inputs[child]);
  }
  const std::span<const kernels::PartialInput> all(inputs.data(), shape_.children);
  const DType dtype = slot.first.dtype;
  const std::size_t count = elements(slot.payload_bytes, dtype);
  if (shape_.root) {
    const ReduceOp op = slot.first.op;
    const std::uint32_t divisor = op == kExactAverage ? shape_.ranks : op == kExactAverageOfHosts ? ranks : 1;
    kernels::round_partial_sums(dtype, all, out_buffer(slot), count, std::min(divisor, kRanksMax));
  } else {
    slot.up_bytes = static_cast<std::uint32_t>(
        kernels::add_partial_sums(dtype, all, count, {out_buffer(slot), shape_.segment_bytes}));
  }
}

void Lane::reduce_all(Slot& slot, LaneOutput& output) noexcept {
  if (is_exact(slot.first.op) && (is_exact_of_hosts(slot.first.op) || !has_all_ranks())) {
    reduce_exact(slot);
    give_back(slot, 0, shape_.children, output);
    return release(slot, 0, shape_.children);
  }
  const bool divides = shape_.root && slot.first.op == ReduceOp::avg;
  if (shape_.children == 1 && !divides) return pass_on(slot, 0);
  reduce(slot, shape_.children, out_buffer(slot));
  give_back(slot, slot.reduced, shape_.children, output);
  release(slot, 0, shape_.children);
}

void Lane::finish_collecting(Slot& slot, LaneOutput& output) noexcept {
  TRIBUTARY_ASSERT(slot.state == SlotState::collecting && slot.arrived == everyone_,
                   "segment {} is complete in state {} with children {} of {}", slot.sequence, slot.state, slot.arrived,
                   everyone_);
  TRIBUTARY_ASSERT(!reduces(slot.first.collective) || slot.with_data == everyone_,
                   "segment {} is summed with data of children {} of {}", slot.sequence, slot.with_data, everyone_);
  slot.up_bytes = slot.payload_bytes;
  slot.out_sequence = slot.sequence;
  slot.readers = 0;
  if (slot.with_data != 0) {
    if (reduces(slot.first.collective)) {
      reduce_all(slot, output);
    } else {
      pass_on(slot, static_cast<std::uint32_t>(std::countr_zero(slot.with_data)));  // one to all
      slot.data_from_below = true;
    }
  }
  if (shape_.root) {
    send_down(slot, slot.with_data != 0, output);
  } else {
    send_up(slot, output);
  }
}

void Lane::send_up(Slot& slot, LaneOutput& output) noexcept {
  TRIBUTARY_ASSERT(!shape_.root, "a root sends segment {} up", slot.sequence);
  slot.state = SlotState::waiting;
  FrameHeader header = slot.first;
  header.type = FrameType::contribution;
  header.flags = 0;
  header.payload_bytes = slot.payload_bytes;
  if (slot.with_data == 0) header.flags |= frame_flags::kBare;
  // The parent need not send back data that came from a child: `out` keeps the data for the other children.
  if (slot.wants_result != 0 && !slot.data_from_below) header.flags |= frame_flags::kWantsResult;
  std::span<const std::byte> payload;
  if (slot.with_data != 0) payload = {out_buffer(slot), slot.up_bytes};
  if (output.to_parent(header, payload)) ++slot.readers;
}

void Lane::send_down(Slot& slot, bool have_data, LaneOutput& output) noexcept {
  TRIBUTARY_ASSERT(slot.state == (shape_.root ? SlotState::collecting : SlotState::waiting),
                   "the result of segment {} goes down in state {}", slot.sequence, slot.state);
  TRIBUTARY_ASSERT(in_flight_ > 0, "segment {} ends, and none is in flight", slot.sequence);
  slot.state = SlotState::complete;
  --in_flight_;
  ++completed_;
  FrameHeader header = slot.first;
  header.type = FrameType::result;
  for (std::uint32_t child = 0; child < shape_.children; ++child) {
    const bool with_data = have_data && ((slot.wants_result >> child) & 1U) != 0;
    header.flags = with_data ? 0 : frame_flags::kBare;
    std::span<const std::byte> payload;
    if (with_data) payload = {out_buffer(slot), slot.payload_bytes};
    if (output.to_child(child, header, payload)) ++slot.readers;
  }
  if (slot.readers == 0) release(slot, shape_.children, shape_.children + 1);
}

std::expected<std::span<std::byte>, Refusal> Lane::result_begins(const FrameHeader& header) noexcept {
  if (header.epoch != epoch_) return std::unexpected(Refusal::stale_epoch);
  if (over_) return std::unexpected(Refusal::over);
  Slot& slot = slot_of(header.sequence);
  if (slot.state != SlotState::waiting || slot.sequence != header.sequence || !same_call(slot.first, header))
    return std::unexpected(Refusal::no_such_segment);
  if (header.bare()) {
    if (header.payload_bytes != 0) return std::unexpected(Refusal::wrong_length);
    if (slot.wants_result != 0 && !slot.data_from_below && reduces(header.collective))
      return std::unexpected(Refusal::unexpected_data);
    return std::span<std::byte>{};
  }
  if (slot.data_from_below || header.payload_bytes > shape_.segment_bytes ||
      (slot.data_known && header.payload_bytes != slot.payload_bytes)) {
    return std::unexpected(Refusal::wrong_length);
  }
  return std::span(out_buffer(slot), header.payload_bytes);
}

std::expected<void, Refusal> Lane::result_landed(const FrameHeader& header, LaneOutput& output) noexcept {
  Slot& slot = slot_of(header.sequence);
  if (over_ || slot.state != SlotState::waiting || slot.sequence != header.sequence)
    return std::unexpected(Refusal::no_such_segment);
  TRIBUTARY_ASSERT(header.payload_bytes <= shape_.segment_bytes, "a result of {} bytes landed in a segment of {}",
                   header.payload_bytes, shape_.segment_bytes);
  if (!header.bare()) slot.payload_bytes = header.payload_bytes;
  send_down(slot, !header.bare() || slot.data_from_below, output);
  return {};
}

}  // namespace tributary::engine
