#pragma once
// The sending end of one connection that uses channels of frames. It sends a message as several frames in order.
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client/plugins/nccl/p2p/greeting.h"
#include "client/plugins/nccl/p2p/send_comm.h"

namespace tributary::nccl {

/// A frame carries at most kPeerBytesMax bytes. All calls take the engine's lock themselves.
class FrameSendComm final : public SendComm, private transport::ChannelHandler {
 public:
  FrameSendComm(std::shared_ptr<Engine> on, const NetHandle& to);
  ~FrameSendComm() override;
  FrameSendComm(const FrameSendComm&) = delete;
  FrameSendComm& operator=(const FrameSendComm&) = delete;

  [[nodiscard]] Opening opening() override;
  abi::Result send(const void* data, std::size_t bytes, int tag, nccl::Request** request) override;

 private:
  transport::Placement on_header(transport::Channel&, const FrameHeader&) override;
  void on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte>) override;
  void on_sent(transport::Channel&, std::uint64_t cookie) override;
  void on_closed(transport::Channel&, const Error& error) override;

  class Message final : public nccl::Request {
   public:
    abi::Result test(int* finished, int* sizes) override;

    FrameSendComm* comm = nullptr;
    std::span<const std::byte> data;
    int tag = 0;
    std::uint64_t number = 0;
    std::size_t queued_bytes = 0;
    std::uint32_t frames_queued = 0;
    bool all_queued = false;
    bool done = false;
  };

  void queue_frames();
  [[nodiscard]] bool queue_next_frame(Message& message);

  std::array<Message, kNetRequestsMax> messages_;
  std::vector<Message*> free_;
  std::deque<Message*> to_queue_;  // messages some of whose frames are not queued yet
  std::uint32_t frames_queued_ = 0;
  std::uint64_t next_number_ = 0;
  const std::string listening_at_;
  const transport::TimePoint open_until_;  // the connection fails if the greeting has not ended by this time
  const Secret secret_;
  ConnectingGreeting greeting_;
  bool failed_ = false;
  std::string failure_;
  std::unique_ptr<transport::Channel> channel_;  // last member: its callbacks use the other members
};

}  // namespace tributary::nccl
