#pragma once
// One child's connection. First it is the connection of a stranger; after a valid join frame it is the connection of
// one child of one lane.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/worker/tenant_limits.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/waiting_room.h"
#include "tributary/transport/channel.h"

namespace tributary::aggregator {

class LaneNode;
class Worker;

class Session final : public transport::ChannelHandler {
 public:
  Session(Worker& worker, transport::TimePoint join_deadline) : worker_(worker), join_deadline_(join_deadline) {}
  void attach(std::unique_ptr<transport::Channel> channel) { channel_ = std::move(channel); }
  ~Session() override { wait_no_more(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Waits in `room` as `id` until the session has joined or has ended. The room must outlive the session.
  void wait_in(WaitingRoom& room, WaitingRoom::Id id) noexcept {
    waits_in_ = &room;
    waits_as_ = id;
  }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  bool takes_in_place(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_sent(transport::Channel& channel, std::uint64_t cookie) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

  /// The join that has come, and is not checked yet.
  struct Join {
    FrameHeader header;
    std::span<const std::byte> payload;
    transport::TimePoint key_until;  // the time until which it waits for the manager's key
  };
  void begin_join(const FrameHeader& header, transport::TimePoint key_until) {
    join_ = Join{header, join_payload_, key_until};
  }
  void end_join() noexcept { join_.reset(); }
  [[nodiscard]] bool waits_for_key() const noexcept { return join_.has_value(); }
  [[nodiscard]] const Join& join_under_way() const noexcept { return *join_; }

  /// Keeps its connection's place among its tenant's connections until the session is destroyed. May be nullptr.
  void take_place(std::shared_ptr<TenantLimits::Place> place) noexcept { place_ = std::move(place); }
  /// Tells the child that its lane is ready.
  void lane_ready(const FrameHeader& header);
  void joined(std::shared_ptr<LaneNode> node, std::uint32_t child, std::uint32_t rank, std::string name);
  /// Sends a last frame and closes; the worker destroys the session when the frame is sent.
  void end(FrameType type, std::span<const std::byte> payload);
  void refuse(std::string_view reason);
  void close();
  /// Called when the lane has ended in order: the session sends and reads no more frames.
  void finish();
  /// Called when the lane has ended, or goes on without this child.
  void leave_node() noexcept { serving_ = false; }

  [[nodiscard]] transport::Channel& channel() noexcept { return *channel_; }
  [[nodiscard]] bool is_joined() const noexcept { return serving_; }
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] bool has_left() const noexcept { return left_; }
  [[nodiscard]] std::uint32_t child() const noexcept { return child_; }
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  /// Returns the name of the child if it is an aggregator; empty for a rank.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] transport::TimePoint join_deadline() const noexcept { return join_deadline_; }
  /// True if the session may be destroyed: its last frame was sent, or the time for it is over.
  [[nodiscard]] bool clearable(transport::TimePoint now) const noexcept {
    return over_ && (channel_->closed() || now >= clear_at_);
  }

 private:
  void wait_no_more() noexcept {
    if (auto* const room = std::exchange(waits_in_, nullptr)) room->leave(waits_as_);
  }

  Worker& worker_;
  WaitingRoom* waits_in_ = nullptr;
  WaitingRoom::Id waits_as_ = 0;
  std::shared_ptr<TenantLimits::Place> place_;
  /// The lane's node. It is kept to the end, and declared before the channel, which may be sending from the node's
  /// buffers.
  std::shared_ptr<LaneNode> node_;
  std::vector<std::byte> join_payload_;
  std::optional<Join> join_;
  std::unique_ptr<transport::Channel> channel_;  // ends before the buffers into which it may be receiving
  transport::TimePoint join_deadline_;
  transport::TimePoint clear_at_{};
  std::uint32_t child_ = 0;
  std::uint32_t rank_ = 0;
  std::string name_;
  bool in_place_ = false;  // the payload of the present frame stays where the child wrote it
  bool dropping_ = false;  // the present frame is dropped
  bool serving_ = false;   // the session is a child of node_
  bool left_ = false;      // the child has sent `leave`: its closing is no failure
  bool over_ = false;
};

}  // namespace tributary::aggregator
