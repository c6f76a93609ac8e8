#pragma once
// Waits for peers whose connections use channels of frames.
#include <deque>
#include <memory>

#include "client/plugins/nccl/p2p/frames/frame_receive_comm.h"
#include "client/plugins/nccl/p2p/listen_comm.h"

namespace tributary::nccl {

class FrameListenComm final : public ListenComm {
 public:
  explicit FrameListenComm(std::shared_ptr<Engine> engine) : ListenComm(std::move(engine)) {}
  ~FrameListenComm() override;
  FrameListenComm(const FrameListenComm&) = delete;
  FrameListenComm& operator=(const FrameListenComm&) = delete;

  [[nodiscard]] std::unique_ptr<ReceiveComm> accept() override;
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  std::deque<std::unique_ptr<FrameReceiveComm>> arrived_;
};

}  // namespace tributary::nccl
