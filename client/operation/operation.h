#pragma once
// One collective call of one rank, from the call to its end.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/operation/direct_memory.h"
#include "client/operation/segmentation.h"
#include "client/operation/staged_memory.h"
#include "client/schedule/schedule.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// The place where an operation is cut into two parts, which run at the same time. The trees carry the segments before
/// the cut, and the ranks reduce the rest between them.
struct Cut {
  std::uint64_t segments = 0;                                 // segments that the trees carry
  std::uint64_t element = 0;                                  // first element of the ranks' part, out of `count`
  schedule::Algorithm algorithm = schedule::Algorithm::ring;  // algorithm of the ranks' part
};

struct Operation {
  enum class State : std::uint8_t { queued, in_network, fallback, by_hosts, done };

  std::uint64_t number = 0;  // number of the call among the communicator's collective calls
  Signature signature;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  // An exact sum between hosts (is_exact_of_hosts): the inputs of the ranks for which this rank acts; the first is
  // `send`. They stay unchanged until the end.
  std::vector<const std::byte*> rank_inputs{};
  bool in_place = false;
  bool memory_kept = false;         // this is a piece of an operation that keeps the memory registered
  std::uint64_t part_of_bytes = 0;  // if this is a piece: bytes of the whole vector, which decide the path; else 0
  using Done = std::move_only_function<void(const Status&) const>;
  Done on_done;  // called once, on the communicator's thread
  transport::TimePoint called_at{};
  // The staged memory if send and recv stand for other memory; nullptr: send and recv are the caller's own memory.
  std::shared_ptr<StagedMemory> staged;

  // Set while the processor cannot reach send and recv: the operation then goes through a tree, or has not begun.
  std::shared_ptr<DirectMemory> direct;
  std::uint32_t direct_generation = 0;  // generation of the trees whose lanes reach these buffers; 0: none

  State state = State::queued;
  std::optional<Cut> cut;                 // set at the start of a split operation
  std::uint32_t parts_left = 1;           // parts that have not ended; a split operation has two
  std::uint64_t share_rounds = 0;         // rounds of the ranks' part, once this part has ended
  std::uint64_t segments_all = 0;         // in-network: segments of the whole operation
  std::uint64_t segments = 0;             // number of segments that the trees carry, from the first on
  std::uint64_t segments_done = 0;        // how many of `segments` have a result
  std::uint64_t segments_in_network = 0;  // how many results came from a tree
  // The times of the parts on this rank, for measurements. Only a split operation has the times of the ranks' share.
  transport::TimePoint started_at{}, trees_ended_at{}, share_started_at{}, share_ended_at{};
  // The times when this rank last suspected the tree or another rank, last told rank 0 that the time-out is over, and
  // was last asked by rank 0.
  transport::TimePoint suspected_at{}, overdue_at{}, asked_at{};

  // The registrations of large buffers, for all segments together. They end before on_done, because the caller may free
  // the buffers from then on.
  std::unique_ptr<transport::KeptMemory> kept_send, kept_recv;
  void release_memory() noexcept {
    kept_send.reset();
    kept_recv.reset();
  }

  /// Returns whether the operation waits for results of trees.
  [[nodiscard]] bool in_trees() const noexcept {
    return state == State::in_network && (segments == 0 || segments_done < segments);
  }
  [[nodiscard]] bool input_whole() const noexcept { return staged == nullptr || staged->input_whole(); }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(signature.dtype); }
  /// Returns where a segment's input starts in `send`, and its result in `recv`. A buffer that holds a single chunk
  /// starts at that chunk.
  [[nodiscard]] const std::byte* input_of(const Segment& segment) const noexcept {
    const std::uint64_t base = signature.collective == Collective::all_gather ? segment.owner * signature.count : 0;
    return send + (segment.offset - base) * element_bytes();
  }
  [[nodiscard]] std::byte* result_of(const Segment& segment) const noexcept {
    const std::uint64_t base = signature.collective == Collective::reduce_scatter ? segment.owner * signature.count : 0;
    return recv + (segment.offset - base) * element_bytes();
  }
};

/// Returns a text such as "operation 17 (all_reduce of 1000 float32 (sum))".
[[nodiscard]] inline std::string to_string(const Operation& operation) {
  return "operation " + std::to_string(operation.number) + " (" + to_string(operation.signature) + ")";
}

}  // namespace tributary::client
