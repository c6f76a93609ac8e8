#pragma once
// One lane of one group in one epoch on this aggregator: the engine, the children's sessions and the channel to the
// parent.
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/engine/lane.h"
#include "aggregator/worker/lane_watch.h"
#include "aggregator/worker/worker.h"
#include "tributary/protocol/bytes_under_way.h"
#include "tributary/protocol/lane_loss.h"
#include "tributary/protocol/reason.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::aggregator {

class LaneNode final : public engine::LaneOutput,
                       public transport::ChannelHandler,
                       public std::enable_shared_from_this<LaneNode> {
 public:
  /// The worker has reserved `memory_bytes` in its budget; the node gives these bytes back. `shared`: the first child
  /// is on this host, and may read its results where they lie.
  LaneNode(Worker& worker, const VerifiedJoin& join, std::uint64_t memory_bytes, bool shared, transport::TimePoint now);
  ~LaneNode() override;

  /// Adds a child. Errc::denied with a sentence if the session cannot become the child that its token names.
  [[nodiscard]] Status add(Session& session, const VerifiedJoin& join);

  // ---- Calls of the children's sessions
  [[nodiscard]] std::expected<std::span<std::byte>, engine::Refusal> contribution_begins(Session& session,
                                                                                         const FrameHeader& header);
  [[nodiscard]] bool takes_in_place(Session& session, const FrameHeader& header);
  /// `in_place`: the place of the payload; empty if it landed in the buffer of contribution_begins().
  void contribution_landed(Session& session, const FrameHeader& header, std::span<const std::byte> in_place);
  void child_fault(Session& session, std::span<const std::byte> payload);
  void child_asks(Session& session, const FrameHeader& header);
  void child_left(Session& session);
  /// Called when the child's connection has ended without a last frame.
  void child_gone(Session& session, const std::string& why);
  /// Called when the child lives, but says that the lane is broken.
  void child_failed(Session& session, const LaneLoss& loss);

  // ---- Calls of engine::LaneOutput
  [[nodiscard]] bool to_parent(const FrameHeader& header, std::span<const std::byte> payload) override;
  [[nodiscard]] bool to_child(std::uint32_t child, const FrameHeader& header,
                              std::span<const std::byte> payload) override;
  void give_back(std::uint32_t child, std::span<const std::byte> payload) override;
  void fault(std::uint32_t child_a, std::uint32_t child_b, MismatchReport report) override;

  // ---- Calls of transport::ChannelHandler, for the parent's channel; on_sent() also for the children's channels
  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(transport::Channel& channel, std::uint64_t cookie) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

  /// Tells the children and the parent, and ends the lane. The group goes on by its fallback.
  /// `sentence`: the reason for people.
  void fail(Reason code, std::string sentence) { fail(LaneLoss{.reason = coded(code, std::move(sentence))}); }
  void fail(const LaneLoss& loss);
  void tick(transport::TimePoint now);
  /// True if the lane has ended and its last frame to the parent was sent: the worker may then forget it.
  [[nodiscard]] bool clearable(transport::TimePoint now) const noexcept {
    return over_ && (!parent_ || parent_->closed() || now >= clear_at_);
  }
  [[nodiscard]] LaneStatus status() const;
  /// Returns a text such as "lane 0 of group 5".
  [[nodiscard]] std::string name() const;

 private:
  void connect_parent(const TokenChain& tokens);
  [[nodiscard]] static transport::ReadableMemory readable_memory(std::uint64_t bytes);
  void make_room(Session& session);
  void expect_result(const FrameHeader& contribution);
  void parent_lost(std::string reason);
  void check_parent(transport::TimePoint now);
  void become_ready_when_complete();
  void close_parent(FrameType type, std::span<const std::byte> payload);
  [[nodiscard]] std::string name_of(const Session& child) const;
  [[nodiscard]] bool leaves_in_order(Session& child);
  /// Keeps the first report. Returns false if the report is malformed, or not the first.
  bool keep_report(std::span<const std::byte> payload);
  void spread_report();
  [[nodiscard]] FrameHeader header(FrameType type) const;
  [[nodiscard]] bool traced() const noexcept { return worker_.trace_.on(job_key_); }
  void trace(SegmentMoment moment, const FrameHeader& header, std::uint32_t child, std::size_t bytes,
             transport::TimePoint at) noexcept;

  Worker& worker_;
  const TokenClaims claims_;  // claims of the first child's token: the lane's shape and place
  const std::uint64_t job_key_;
  const std::uint64_t memory_bytes_;
  std::uint64_t room_bytes_ = 0;        // bytes that make_room() has reserved beside memory_bytes_
  transport::ReadableMemory readable_;  // the lane's memory, if children share it
  engine::Lane lane_;
  std::unique_ptr<transport::KeptMemory> kept_lane_, lent_lane_;
  std::vector<Session*> children_;
  std::string parent_name_;      // empty at a root
  std::vector<std::byte> text_;  // receives the parent's fault and failed frames
  /// The report for every child that two ranks made different calls.
  std::optional<std::array<std::byte, kMismatchReportBytes>> report_;
  transport::TimePoint form_deadline_;
  transport::TimePoint clear_at_{};
  std::uint32_t joined_ = 0;
  std::uint64_t joined_ever_ = 0;  // a bit for each child that ever joined: a token is valid for one join
  std::uint32_t left_ = 0;
  std::optional<LinkName> parent_link_;        // name that is in the link keys until the node ends
  std::uint64_t sent_up_ = 0, came_down_ = 0;  // number of contributions, and of their results
  BytesUnderWay bytes_up_;
  LanePulse pulse_;  // watches whether the parent lives
  LaneWatch watch_;  // watches whether a child is late
  bool parent_ready_;
  bool ready_ = false;
  bool over_ = false;
  std::unique_ptr<transport::Channel> parent_;  // declared last, so that it ends before the buffers from which it sends
};

}  // namespace tributary::aggregator
