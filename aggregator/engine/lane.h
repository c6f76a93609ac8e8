#pragma once
// The engine: one aggregator's part of one lane of one group in one epoch. It is a pure state machine without socket,
// clock, thread or lock, and allocates only in the constructor. The caller gives it headers, and tells it when payloads
// have landed; it answers through LaneOutput.
//
// A segment's life in its slot (slot = sequence mod window):
//
//      idle --first contribution--> collecting --last one--> [root] complete
//       ^                                          |            ^
//       |                                      to the parent    | its result
//       +--- contribution of sequence + window <--- waiting ----+
//
// Contributions with data are reduced in child order, and contributions without data are only counted. The result's
// data goes to the children that asked for it (kWantsResult); the other children get a bare result.
//
// An exact sum (numerics.h) is rounded only at the root. A rank sends its values, and every aggregator below the root
// sends the form of its sum (partial_sum.h), whose length depends on the values. So does a rank that acts for a host of
// several ranks. A result has the type of the ranks.
//
// A slot takes a buffer for each contribution, and one, `out`, for the sum. The buffer of a contribution is free when the
// lane has reduced the contribution. `out` is free when the caller has called sent() for each frame that it sent from
// there. Without these calls the slot keeps its `out` for the next segment: a child contributes sequence + window only
// after it has received the result of sequence, so when all contributions of sequence + window are here, no child reads
// the old result. (SwitchML, NSDI 2021, uses the same argument for its pool of slots, with a shadow copy against loss;
// channels here are reliable and ordered.)
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "aggregator/engine/segment_buffers.h"
#include "tributary/kernels/pages.h"
#include "tributary/protocol/frame.h"

namespace tributary::engine {

struct LaneShape {
  std::uint32_t children = 0;       // 1 to kChildrenMax
  std::uint32_t window = 0;         // number of slots, 1 to kWindowMax
  std::uint32_t segment_bytes = 0;  // a multiple of 64, kSegmentBytesMin to kSegmentBytesMax
  std::uint32_t ranks = 0;          // ranks of the group, by which the root divides an average
  bool root = false;
  /// The number of ranks below this aggregator, or a greater power of two; 0: one for each child. The root does not use
  /// it.
  std::uint32_t ranks_below = 0;
};

/// Receives the engine's answers. Payloads stay valid as long as the comment of this file says, so the channel may send
/// directly from them. A function that returns true still reads the payload: until Lane::sent(header.sequence), if that
/// call follows.
class LaneOutput {
 public:
  virtual ~LaneOutput() = default;
  /// The header's payload_bytes are those of the result; the payload of an exact sum is longer or shorter.
  [[nodiscard]] virtual bool to_parent(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  [[nodiscard]] virtual bool to_child(std::uint32_t child, const FrameHeader& header,
                                      std::span<const std::byte> payload) = 0;
  /// A contribution was summed where it lay, and its memory must be given back to the child.
  virtual void give_back(std::uint32_t /*child*/, std::span<const std::byte> /*payload*/) {}
  /// Two children made different calls for `report.operation`. The lane has ended, and gives no more answers.
  virtual void fault(std::uint32_t child_a, std::uint32_t child_b, MismatchReport report) = 0;
};

/// The reason why the lane refuses a frame. Frames marked "drop" are harmless; the other frames break the protocol.
enum class Refusal : std::uint8_t {
  stale_epoch,      // drop: a frame of another epoch
  duplicate,        // drop: counted already, or its result was sent
  beyond_window,    // the slot's last result has not been sent
  wrong_length,     // length differs from the segment's other contributions, or is no whole number of elements
  unexpected_data,  // data that the pattern forbids, or no data where it needs some
  no_such_segment,  // a result for which no slot waits
  over,             // drop: a fault has ended the lane while the frame was under way
  partial_exact,    // an exact sum, but the children do not stand for all ranks
  malformed_form,   // an exact sum of an aggregator or a host, but it is no form
  too_early,        // the lane is not ready: set_child() may still follow. The caller refuses such frames
};
[[nodiscard]] std::string_view to_string(Refusal refusal) noexcept;
[[nodiscard]] constexpr bool harmless(Refusal refusal) noexcept {
  return refusal == Refusal::stale_epoch || refusal == Refusal::duplicate || refusal == Refusal::over;
}

class Lane {
 public:
  /// Allocates all memory of the lane, with lane_memory_bytes() for the buffers; throws std::bad_alloc. If `memory` is
  /// not empty, it is used for the buffers: it has as many bytes, is zeroed, and must outlive the lane.
  Lane(const LaneShape& shape, std::uint32_t epoch, std::span<std::byte> memory = {});
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Sets the number of ranks that contribute through this child, or a greater power of two: averages travel scaled by
  /// it. `aggregator`: the child is an aggregator, whose exact sums are forms. Without this call the child is one rank.
  /// Do not call it while segments are in flight.
  void set_child(std::uint32_t child, std::uint32_t ranks, bool aggregator) noexcept;

  /// Notes that a receiver reads sums where they lie, from a core of its own. See segment_buffers.h.
  void sums_are_read_elsewhere() noexcept { read_elsewhere_ = true; }

  /// Returns the memory into which the lane receives and from which it sends; it lives as long as the lane.
  [[nodiscard]] std::span<const std::byte> memory() const noexcept { return memory_; }

  /// Returns the buffer for the payload of this contribution, with `header.payload_bytes` bytes.
  [[nodiscard]] std::expected<std::span<std::byte>, Refusal> contribution_begins(std::uint32_t child,
                                                                                 const FrameHeader& header) noexcept;
  /// True if this contribution may stay where it lies, to be summed from there. Then do not call
  /// contribution_begins().
  [[nodiscard]] bool takes_in_place(std::uint32_t child, const FrameHeader& header) noexcept;
  /// Call it when the payload has landed in that buffer, or lies at `at` until give_back(). Reduces
  /// contributions as far as possible, and passes answers to `output`.
  [[nodiscard]] std::expected<void, Refusal> contribution_landed(std::uint32_t child, const FrameHeader& header,
                                                                 LaneOutput& output,
                                                                 std::span<const std::byte> at = {}) noexcept;
  /// Returns the buffer for the parent's result of a segment; never called at a root.
  [[nodiscard]] std::expected<std::span<std::byte>, Refusal> result_begins(const FrameHeader& header) noexcept;
  [[nodiscard]] std::expected<void, Refusal> result_landed(const FrameHeader& header, LaneOutput& output) noexcept;
  /// Notes that one frame of this sequence, for which LaneOutput returned true, is no longer read.
  void sent(std::uint64_t sequence) noexcept;

  [[nodiscard]] const LaneShape& shape() const noexcept { return shape_; }
  /// Returns the number of segments whose results were sent down.
  [[nodiscard]] std::uint64_t segments_completed() const noexcept { return completed_; }
  /// Returns the number of segments with a contribution but no result yet.
  [[nodiscard]] std::uint32_t segments_in_flight() const noexcept { return in_flight_; }

 private:
  enum class SlotState : std::uint8_t { idle, collecting, waiting, complete };
  struct Slot {
    std::uint64_t sequence = 0;  // the sequence that the slot serves, or served last
    std::uint64_t arrived = 0;   // a bit for each child whose contribution has come
    std::uint64_t with_data = 0;
    std::uint64_t wants_result = 0;
    std::uint64_t out_sequence = 0;  // the sequence whose sum `out` holds
    FrameHeader first;               // header of the first contribution
    std::uint32_t place = 0;         // index in slots_: sequence mod window, stored to save a division
    std::uint32_t first_child = 0;
    std::uint32_t payload_bytes = 0;  // of the segment in the ranks' type
    std::uint32_t up_bytes = 0;       // of the contribution to the parent
    std::uint32_t reduced = 0;        // the data of children [0, reduced) is summed in child 0's receive buffer
    std::uint32_t readers = 0;        // frames that are still sent from `out`
    SlotState state = SlotState::idle;
    bool data_known = false;       // payload_bytes is known, from the first contribution with data
    bool data_from_below = false;  // `out` holds a one-to-all segment that came from a child
  };

  /// Returns a sequence's slot. Needs no division if the window is a power of two, which is the usual case.
  [[nodiscard]] Slot& slot_of(std::uint64_t sequence) noexcept {
    return slots_[place_bits_ != 0 ? sequence & place_bits_ : sequence % shape_.window];
  }
  /// Returns the buffer for a contribution of this child; the `out` of the slot if `child` is the number of children.
  /// nullptr: the slot has taken none.
  [[nodiscard]] std::byte*& buffer(const Slot& slot, std::uint32_t child) noexcept;
  /// Returns the same, after it has taken a buffer if there was none.
  [[nodiscard]] std::byte* receive_buffer(const Slot& slot, std::uint32_t child) noexcept;
  [[nodiscard]] std::byte* out_buffer(const Slot& slot) noexcept { return receive_buffer(slot, shape_.children); }
  /// True for the `out` of slots, if other cores read it.
  [[nodiscard]] bool is_read_elsewhere(std::uint32_t child) const noexcept {
    return read_elsewhere_ && child == shape_.children;
  }
  /// Gives the buffers of children [from, to) back.
  void release(const Slot& slot, std::uint32_t from, std::uint32_t to) noexcept;
  /// Makes the contribution of this child the slot's `out`, without a copy.
  void pass_on(const Slot& slot, std::uint32_t child) noexcept;
  [[nodiscard]] const std::byte*& in_place(const Slot& slot, std::uint32_t child) noexcept;
  /// Returns the place of this child's contribution.
  [[nodiscard]] const std::byte* input(const Slot& slot, std::uint32_t child) noexcept;
  void give_back(const Slot& slot, std::uint32_t from, std::uint32_t to, LaneOutput& output) noexcept;
  [[nodiscard]] std::expected<void, Refusal> admit(const Slot& slot, std::uint32_t child,
                                                   std::uint64_t sequence) const noexcept;
  void open(Slot& slot, std::uint32_t child, const FrameHeader& header) noexcept;
  /// Returns whether every rank of the group is a child, so that an exact sum needs one rounding. An aggregator of one
  /// rank is no rank: it sends a form.
  [[nodiscard]] bool has_all_ranks() const noexcept {
    return shape_.root && aggregators_ == 0 && shape_.children == shape_.ranks;
  }
  /// Returns whether this contribution is a form.
  [[nodiscard]] bool is_form(std::uint32_t child, const FrameHeader& header) const noexcept;
  [[nodiscard]] std::uint32_t& form_bytes(const Slot& slot, std::uint32_t child) noexcept;
  /// Returns the bytes of a contribution in the ranks' type.
  [[nodiscard]] std::expected<std::uint32_t, Refusal> length_of(std::uint32_t child, const FrameHeader& header,
                                                                const std::byte* data) const noexcept;
  [[nodiscard]] std::expected<void, Refusal> check_data(Slot& slot, std::uint32_t child, const FrameHeader& header,
                                                        const std::byte* data) noexcept;
  void reduce_exact(Slot& slot) noexcept;
  void reduce(const Slot& slot, std::uint32_t to, std::byte* into) noexcept;
  void reduce_prefix(Slot& slot, LaneOutput& output) noexcept;
  void reduce_all(Slot& slot, LaneOutput& output) noexcept;
  void finish_collecting(Slot& slot, LaneOutput& output) noexcept;
  void send_up(Slot& slot, LaneOutput& output) noexcept;
  void send_down(Slot& slot, bool have_data, LaneOutput& output) noexcept;

  LaneShape shape_;
  std::uint32_t epoch_;
  std::uint64_t everyone_;    // one bit for each child
  std::uint64_t place_bits_;  // the bits of a sequence that give its slot; 0 if the window is no power of two
  std::optional<kernels::Pages> own_memory_;
  std::span<std::byte> memory_;
  SegmentBuffers buffers_;
  /// For each slot, the buffer of each child, then `out`; nullptr: none is taken.
  std::vector<std::byte*> taken_;
  /// For each slot and child, a contribution outside the buffers that is not summed yet, or nullptr.
  std::vector<const std::byte*> in_place_;
  std::vector<std::uint32_t> ranks_;       // number of ranks; index: child
  std::vector<std::uint32_t> form_bytes_;  // for each slot and child, the bytes of its form
  std::uint64_t aggregators_ = 0;          // a bit for each child that is an aggregator
  std::uint32_t ranks_in_all_;             // the number of ranks below all children together
  std::vector<Slot> slots_;
  std::uint64_t completed_ = 0;
  std::uint32_t in_flight_ = 0;
  bool read_elsewhere_ = false;
  bool over_ = false;
};

}  // namespace tributary::engine
