#pragma once
// A rank's end of one lane in one epoch. It contributes segments as far as the window allows, takes results, and keeps
// the data that recovery may need.
//
// The lane keeps the following data, which suffice (architecture.md, invariants 3 to 5). Let `prefix` be the number of
// results that this rank has received, in sequence.
//   - No rank receives the result of sequence s + window before every rank has the result of s. So a rank that has
//     `prefix` results knows that all ranks have the first prefix - window results, and other ranks are at most
//     `window` results behind or ahead: entries of 2 * window sequences are enough.
//   - While an operation runs, its buffers hold inputs and results. When it ends, the lane copies the last window of
//     data that recovery could still ask for to `retained`: results; or, if this rank got only a bare result for its
//     data (reduce, reduce_scatter), its inputs.
//   - A result that would overwrite input (in place) arrives in `staging`, and the lane copies it once it is whole: if
//     the connection breaks in mid-payload, the input must still be intact. Some transports write results to their
//     places as soon as the aggregator sends them; each segment of the window then has its own place. Over the other
//     transports all results arrive in the same place, which stays in the processor's cache.
//   - The form that a leader contributes to an exact sum between hosts is its input for recovery (sent_forms.h).
//   - If the processor cannot reach the buffers of an operation (direct_memory.h), staging and retained data are in
//     memory of the same kind, and retained data come to the host when they are needed (direct_lane.h).
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/in_network/direct_lane.h"
#include "client/collectives/in_network/lane_window.h"
#include "client/collectives/in_network/result_staging.h"
#include "client/collectives/in_network/sent_forms.h"
#include "client/operation/dealing.h"
#include "client/operation/neighbours.h"
#include "client/operation/operation.h"
#include "client/operation/own_troubles.h"
#include "tributary/kernels/pages.h"
#include "tributary/protocol/bytes_under_way.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/lane_loss.h"
#include "tributary/protocol/lane_pulse.h"
#include "tributary/protocol/rank_troubles.h"
#include "tributary/protocol/segment_trace.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// The part of a communicator that a lane calls.
class LaneUser {
 public:
  virtual ~LaneUser() = default;
  /// Returns the operation with this number; nullptr if it was not started yet. An operation between the ranks has no
  /// segments.
  virtual Operation* started_operation(std::uint64_t number) = 0;
  /// Returns the number below which every operation has ended and is forgotten.
  virtual std::uint64_t first_operation_kept() const = 0;
  virtual void lane_ready(std::uint32_t lane) = 0;
  virtual void lane_failed(std::uint32_t lane, const std::string& reason) = 0;
  /// Called when a result of this operation has come. Returns the time.
  virtual transport::TimePoint lane_progress(const Operation& operation) = 0;
  virtual void lane_fault(const MismatchReport& report) = 0;
  /// Called when the last missing result of this operation has arrived.
  virtual void segments_finished(Operation& operation) = 0;
};

/// The state of one sequence.
struct SequenceEntry {
  std::uint64_t sequence = UINT64_MAX;
  Operation* operation = nullptr;  // nullptr once the operation has ended: see `retained`
  std::uint64_t number = 0;        // number of the operation
  std::uint32_t segment_index = 0;
  Signature signature;
  Segment segment;
  DirectLane* retained_in = nullptr;  // the place of retained data; nullptr: host memory
};

struct LaneSettings {
  std::uint32_t lane = 0;
  LaneTurns turns{};
  std::uint32_t rank = 0;
  std::uint32_t nranks = 1;
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint64_t first_operation = 0;
  LanePulseSettings pulse{};
  bool one_level = true;                  // all trees of the group have one level
  bool rates_known = false;               // see LaneWindow
  std::shared_ptr<SegmentTrace> trace{};  // gets the moments of segments; nullptr: no trace
  /// Finds this rank's troubles, for its word to the aggregator; nullptr: it has none.
  std::shared_ptr<OwnTroubles> troubles{};
  std::shared_ptr<Neighbours> neighbours{};  // the processes at which this rank looks; nullptr: none
};

class LaneLink final : public transport::ChannelHandler {
 public:
  LaneLink(LaneUser& user, const LaneDescriptor& descriptor, const LaneSettings& settings);

  void connect(transport::Transport& transport, transport::Duration limit);
  /// Sets the first operation that goes in-network; call it before the first pump().
  void start_at(std::uint64_t operation) noexcept { cursor_operation_ = operation; }
  /// Prepares for operations whose buffers are on this device, and lets the network reach `memory`. The error says why
  /// the network cannot reach it.
  [[nodiscard]] Status prepare(transport::Transport& transport, const std::shared_ptr<DirectDevice>& device,
                               const std::vector<std::span<const std::byte>>& memory);
  /// Checks, many times a second, whether the aggregator still answers while a result is outstanding. `tell`: tell the
  /// aggregator this rank's troubles.
  void look(transport::TimePoint now, bool tell = false);
  /// Contributes as much as the window and the channel take.
  void pump(transport::TimePoint now);
  /// Copies the data that recovery could ask for after the caller has got `operation`'s buffers back.
  void retain(const Operation& operation);
  /// Tells the aggregator that every rank has finished with the group, and closes.
  void leave(transport::Duration limit);
  /// Stops for good: frames that arrive later have no effect.
  void freeze();

  [[nodiscard]] bool ready() const noexcept { return ready_; }
  [[nodiscard]] bool shares_memory() const noexcept { return channel_ != nullptr && channel_->shares_memory(); }
  [[nodiscard]] std::uint64_t prefix() const noexcept { return prefix_; }
  [[nodiscard]] std::uint64_t contributed() const noexcept { return contributed_; }
  [[nodiscard]] std::uint32_t segment_bytes() const noexcept { return descriptor_.segment_bytes; }
  [[nodiscard]] const LaneDescriptor& descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] const std::string& aggregator() const { return descriptor_.entries[0].aggregator_name; }
  /// Returns, after lane_failed, the aggregator to avoid from now on; empty if no aggregator was lost. If this lane's
  /// own aggregator has reported the loss, it lives, and it has named the lost aggregator.
  [[nodiscard]] const std::string& failed_aggregator() const { return told_ ? told_->aggregator : aggregator(); }
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

  // Functions for recovery, to be called after freeze().
  /// Begins to copy retained data from devices to the host, and returns the number of copies. Each copy calls `done` at
  /// its end, on any thread. The copies may outlive this object.
  std::size_t bring_down(const std::function<void()>& done);
  /// Returns the first segment of `operation` on this lane that has no result on any rank; at least operation.segments
  /// if there is no such segment. All results below sequence `hi`, and no others, exist on some rank. turns() gives the
  /// later segments of this lane.
  [[nodiscard]] std::uint64_t first_unfinished(const Operation& operation, std::uint64_t hi) const noexcept;
  [[nodiscard]] const LaneTurns& turns() const noexcept { return settings_.turns; }
  [[nodiscard]] const SequenceEntry* entry(std::uint64_t sequence) const noexcept;
  /// Return this rank's input of an entry, and its result once the result has come. Call them only for data that the
  /// pattern gives to this rank. The input of an exact sum between hosts is a form.
  [[nodiscard]] std::span<const std::byte> input_bytes(const SequenceEntry& entry) const noexcept;
  [[nodiscard]] const std::byte* result_bytes(const SequenceEntry& entry) const noexcept;

  bool takes_in_place(transport::Channel& channel, const FrameHeader& header) override;
  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

 private:
  [[nodiscard]] Operation* advance_cursor();
  [[nodiscard]] bool input_there(const Operation& operation) const;
  [[nodiscard]] bool contribute_one(transport::TimePoint now);
  [[nodiscard]] transport::Placement place_result(const FrameHeader& header);
  /// Returns the place that receives the data of this entry's result; the result must have data.
  [[nodiscard]] std::byte* result_place(const SequenceEntry& entry) noexcept;
  /// True if the operation's results would overwrite its input.
  [[nodiscard]] static bool overwrites(const Operation& operation) noexcept {
    return operation.in_place && pattern_of(operation.signature.collective) != Pattern::one_to_all;
  }
  /// Returns the device's part of this lane; nullptr if prepare() has not made one.
  [[nodiscard]] DirectLane* direct_lane(const DirectDevice* device) const noexcept;
  void expect_result(const SequenceEntry& entry, const FrameHeader& contribution);
  void take_result(std::span<std::byte> payload);
  void fail(const std::string& reason);
  void send_word();
  [[nodiscard]] FrameHeader header_of(FrameType type) const;
  [[nodiscard]] FrameHeader header_for(const SequenceEntry& entry) const;
  [[nodiscard]] SequenceEntry& entry_slot(std::uint64_t sequence) noexcept {
    return entries_[sequence % entries_.size()];
  }
  [[nodiscard]] bool wants_result(const SequenceEntry& entry) const noexcept;
  [[nodiscard]] bool has_data(const SequenceEntry& entry) const noexcept;
  [[nodiscard]] std::uint64_t first_retained() const noexcept {
    return prefix_ > descriptor_.window ? prefix_ - descriptor_.window : 0;
  }
  /// True if `retained` still holds the data of this entry, whose operation has ended.
  [[nodiscard]] bool is_retained(const SequenceEntry& entry) const noexcept {
    return entry.sequence < prefix_ && entry.sequence >= first_retained();
  }
  [[nodiscard]] std::byte* retained(std::uint64_t sequence) noexcept {
    return retained_->data() + (sequence % descriptor_.window) * descriptor_.segment_bytes;
  }
  [[nodiscard]] const std::byte* retained(std::uint64_t sequence) const noexcept {
    return retained_->data() + (sequence % descriptor_.window) * descriptor_.segment_bytes;
  }

  LaneUser& user_;
  const LaneDescriptor descriptor_;
  const LaneSettings settings_;
  std::vector<SequenceEntry> entries_;
  std::shared_ptr<kernels::Pages> retained_;  // shared with copies that a device has under way
  ResultStaging staging_;
  SentForms forms_;
  std::vector<std::unique_ptr<DirectLane>> direct_lanes_;  // one for each device
  std::vector<std::byte> text_;
  LaneWindow window_;
  std::uint64_t prefix_ = 0;        // the results of all sequences below this have come
  std::uint64_t contributed_ = 0;   // the contributions of all sequences below this have been sent
  std::uint64_t expected_ = 0;      // the results of all sequences below this were announced to the channel
  std::uint64_t cursor_operation_;  // the operation of the next segment to contribute
  std::uint64_t cursor_segment_ = 0;
  bool cursor_open_ = false;  // cursor_segment_ is set for cursor_operation_
  std::uint64_t bytes_sent_ = 0;
  BytesUnderWay bytes_;
  LanePulse pulse_;
  bool ready_ = false;
  bool over_ = false;
  std::optional<LaneLoss> told_;                 // content of the `failed` frame, if one came
  std::unique_ptr<transport::Channel> channel_;  // last member: it must be gone before the buffers that it uses
};

}  // namespace tributary::client
