#pragma once
// The engine: one aggregator's part of one lane of one group in one epoch. A pure state machine: no socket, clock,
// thread or lock, and no allocation after the constructor. It is fed headers and told when payloads have landed, and
// answers through LaneOutput.
//
// A segment's life in its slot (slot = sequence mod window):
//
//      idle --first contribution--> collecting --last one--> [root] complete
//       ^                                          |            ^
//       |                                      to the parent    | its result
//       +--- contribution of sequence + window <--- waiting ----+
//
// Patterns need no knowledge of collectives: contributions that carry data are reduced in child order, bare ones only
// count; the result's data goes to the children that asked for it (kWantsResult), the others get a bare result.
//
// Why a buffer may be used again without asking anyone: a child contributes sequence + window only after it received
// the result of sequence. So when all contributions of sequence + window are here, nobody reads the old result any
// more, and the slot's `out` may be written. A child's own receive buffer is free as soon as its contribution has been
// reduced, which precedes the result. (SwitchML, NSDI 2021, uses the same argument for its pool of slots, with a shadow
// copy against loss; channels here are reliable and ordered.)
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "tributary/kernels/pages.h"
#include "tributary/protocol/frame.h"

namespace tributary::engine {

struct LaneShape {
  std::uint32_t children = 0;       // 1 to kChildrenMax
  std::uint32_t window = 0;         // slots, 1 to kWindowMax
  std::uint32_t segment_bytes = 0;  // a multiple of 64, kSegmentBytesMin to kSegmentBytesMax
  std::uint32_t ranks = 0;          // of the group: avg divides by it, at the root
  bool root = false;
  std::uint32_t ranks_below = 0;  // no root: below this aggregator, or a power of two above; 0: one for each child
};

/// Where the engine's answers go. Payloads stay valid as long as the file comment says; the channel may send straight
/// from them.
class LaneOutput {
 public:
  virtual ~LaneOutput() = default;
  virtual void to_parent(const FrameHeader& header, std::span<const std::byte> payload) = 0;
  virtual void to_child(std::uint32_t child, const FrameHeader& header, std::span<const std::byte> payload) = 0;
  /// A contribution that was read where it lay is summed: its sender may have the memory back.
  virtual void give_back(std::uint32_t /*child*/, std::span<const std::byte> /*payload*/) {}
  /// Children disagree on what `report.operation` is. The lane is over; nothing more comes out of it.
  virtual void fault(std::uint32_t child_a, std::uint32_t child_b, MismatchReport report) = 0;
};

/// Why a frame is not part of the lane's course: harmless, or a breach of the protocol.
enum class Refusal : std::uint8_t {
  stale_epoch,      // drop: an earlier generation's frame
  duplicate,        // drop: counted already, or its result is out
  beyond_window,    // the slot's last result has not been sent
  wrong_length,     // not what the segment's other contributions have, or not whole elements
  unexpected_data,  // data where the pattern has none, or none where it has
  no_such_segment,  // a result that nobody waits for
  over,             // drop: the lane has ended by a fault, and this was under way
};
[[nodiscard]] std::string_view to_string(Refusal refusal) noexcept;
[[nodiscard]] constexpr bool harmless(Refusal refusal) noexcept {
  return refusal == Refusal::stale_epoch || refusal == Refusal::duplicate || refusal == Refusal::over;
}

class Lane {
 public:
  /// Allocates all it will ever use, lane_memory_bytes() for the buffers; throws std::bad_alloc. `memory`, if there is
  /// some: as many zeros that outlive it, and that it uses instead of its own.
  Lane(const LaneShape& shape, std::uint32_t epoch, std::span<std::byte> memory = {});
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// How many ranks contribute through this child, or a power of two above: averages travel scaled by it. One each, if
  /// it is not told. Not while segments are in flight.
  void set_ranks(std::uint32_t child, std::uint32_t ranks) noexcept;

  /// All that it receives into and sends from, as long as it lives.
  [[nodiscard]] std::span<const std::byte> memory() const noexcept { return memory_; }

  /// Where the payload of this contribution goes: `header.payload_bytes` long.
  [[nodiscard]] std::expected<std::span<std::byte>, Refusal> contribution_begins(std::uint32_t child,
                                                                                 const FrameHeader& header) noexcept;
  /// Whether this contribution may stay where it lies, to be summed from there. If so, it is not asked where it goes.
  [[nodiscard]] bool takes_in_place(std::uint32_t child, const FrameHeader& header) noexcept;
  /// The payload has landed there, or lies at `at` until it is given back. Reduces what can be reduced and emits
  /// what follows.
  [[nodiscard]] std::expected<void, Refusal> contribution_landed(std::uint32_t child, const FrameHeader& header,
                                                                 LaneOutput& output,
                                                                 std::span<const std::byte> at = {}) noexcept;
  /// The parent's answer for a segment; not for a root.
  [[nodiscard]] std::expected<std::span<std::byte>, Refusal> result_begins(const FrameHeader& header) noexcept;
  [[nodiscard]] std::expected<void, Refusal> result_landed(const FrameHeader& header, LaneOutput& output) noexcept;

  [[nodiscard]] const LaneShape& shape() const noexcept { return shape_; }
  /// Segments whose results went down.
  [[nodiscard]] std::uint64_t segments_completed() const noexcept { return completed_; }
  /// Segments that some child contributed to and that have no result yet.
  [[nodiscard]] std::uint32_t segments_in_flight() const noexcept { return in_flight_; }

 private:
  enum class SlotState : std::uint8_t { idle, collecting, waiting, complete };
  struct Slot {
    std::uint64_t sequence = 0;  // that it serves, or served last
    std::uint64_t arrived = 0;   // children, one bit each
    std::uint64_t with_data = 0;
    std::uint64_t wants_result = 0;
    FrameHeader first;        // what was asked for, by the first child
    std::uint32_t place = 0;  // among the slots; sequence mod window, without another division
    std::uint32_t first_child = 0;
    std::uint32_t payload_bytes = 0;
    std::uint32_t reduced = 0;  // data of children [0, reduced) is summed in the lowest of them's buffer
    SlotState state = SlotState::idle;
    bool data_known = false;       // payload_bytes is known, from the first contribution with data
    bool data_from_below = false;  // `out` holds a one-to-all segment that came from one of our own children
  };

  /// A window is mostly a power of two: then without a division.
  [[nodiscard]] Slot& slot_of(std::uint64_t sequence) noexcept {
    return slots_[place_bits_ != 0 ? sequence & place_bits_ : sequence % shape_.window];
  }
  [[nodiscard]] std::byte*& receive_buffer(const Slot& slot, std::uint32_t child) noexcept;
  [[nodiscard]] std::byte*& out_buffer(const Slot& slot) noexcept;
  [[nodiscard]] const std::byte*& in_place(const Slot& slot, std::uint32_t child) noexcept;
  /// Where this child's contribution lies.
  [[nodiscard]] const std::byte* input(const Slot& slot, std::uint32_t child) noexcept;
  void give_back(const Slot& slot, std::uint32_t from, std::uint32_t to, LaneOutput& output) noexcept;
  [[nodiscard]] std::expected<void, Refusal> admit(const Slot& slot, std::uint32_t child,
                                                   std::uint64_t sequence) const noexcept;
  void open(Slot& slot, std::uint32_t child, const FrameHeader& header) noexcept;
  [[nodiscard]] std::expected<void, Refusal> check_data(Slot& slot, std::uint32_t child,
                                                        const FrameHeader& header) noexcept;
  void reduce(const Slot& slot, std::uint32_t to, std::byte* into) noexcept;
  void reduce_prefix(Slot& slot, LaneOutput& output) noexcept;
  void reduce_all(Slot& slot, LaneOutput& output) noexcept;
  void finish_collecting(Slot& slot, LaneOutput& output) noexcept;
  void send_up(Slot& slot, LaneOutput& output) noexcept;
  void send_down(Slot& slot, bool have_data, LaneOutput& output) noexcept;

  LaneShape shape_;
  std::uint32_t epoch_;
  std::uint64_t everyone_;    // one bit per child
  std::uint64_t place_bits_;  // of a sequence, where they name its slot; else 0
  std::optional<kernels::Pages> own_memory_;
  std::span<std::byte> memory_;
  std::vector<std::byte*>
      buffers_;  // per slot: one per child, then `out`; data moves between them by swapping pointers
  std::vector<const std::byte*> in_place_;  // per slot and child: a contribution elsewhere, not yet summed; or nullptr
  std::vector<std::uint32_t> ranks_;        // by child
  std::uint32_t ranks_in_all_;              // that all children stand for
  std::vector<Slot> slots_;
  std::uint64_t completed_ = 0;
  std::uint32_t in_flight_ = 0;
  bool over_ = false;
};

}  // namespace tributary::engine
