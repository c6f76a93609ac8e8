#pragma once
// One child's connection: first a stranger's connection, and after a valid join frame the connection of one child of
// one lane.
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  /// Waits in `room` as `id` until the session has joined or is over. The room outlives the session.
  void wait_in(WaitingRoom& room, WaitingRoom::Id id) noexcept {
    waits_in_ = &room;
    waits_as_ = id;
  }

  transport::Placement on_header(transport::Channel& channel, const FrameHeader& header) override;
  bool takes_in_place(transport::Channel& channel, const FrameHeader& header) override;
  void on_frame(transport::Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override;
  void on_closed(transport::Channel& channel, const Error& error) override;

  void joined(std::shared_ptr<LaneNode> node, std::uint32_t child, std::uint32_t rank, std::string name);
  /// Sends a last frame and closes; the worker destroys the session when the frame is out.
  void end(FrameType type, std::span<const std::byte> payload);
  void refuse(std::string_view reason);
  void close();
  /// The lane has ended in good order: the session sends and reads nothing more.
  void finish();
  /// The lane is over, or goes on without this child.
  void leave_node() noexcept { serving_ = false; }

  [[nodiscard]] transport::Channel& channel() noexcept { return *channel_; }
  [[nodiscard]] bool is_joined() const noexcept { return serving_; }
  [[nodiscard]] bool over() const noexcept { return over_; }
  [[nodiscard]] bool has_left() const noexcept { return left_; }
  [[nodiscard]] std::uint32_t child() const noexcept { return child_; }
  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  /// Returns the name of an aggregator that is the child; empty for a rank.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] transport::TimePoint join_deadline() const noexcept { return join_deadline_; }
  /// True when the session may be destroyed: its last frame is out, or has had its time.
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
  /// Kept to the end, and declared before the channel, which may be sending from its buffers.
  std::shared_ptr<LaneNode> node_;
  std::vector<std::byte> join_payload_;
  std::unique_ptr<transport::Channel> channel_;  // ends before the buffers that it may be receiving into
  transport::TimePoint join_deadline_;
  transport::TimePoint clear_at_{};
  std::uint32_t child_ = 0;
  std::uint32_t rank_ = 0;
  std::string name_;
  bool in_place_ = false;  // the payload of the frame being read stays where the child wrote it
  bool dropping_ = false;  // the frame being read is dropped
  bool serving_ = false;   // it is a child of node_
  bool left_ = false;      // the child said leave: its closing is no failure
  bool over_ = false;
};

}  // namespace tributary::aggregator
