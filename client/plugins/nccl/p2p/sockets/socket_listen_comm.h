#pragma once
// Waits for peers whose connections become bare sockets.
#include <deque>
#include <memory>

#include "client/plugins/nccl/p2p/listen_comm.h"
#include "client/plugins/nccl/p2p/sockets/arriving_sockets.h"

namespace tributary::nccl {

class SocketListenComm final : public ListenComm {
 public:
  explicit SocketListenComm(std::shared_ptr<Engine> engine) : ListenComm(std::move(engine)) {}
  ~SocketListenComm() override;
  SocketListenComm(const SocketListenComm&) = delete;
  SocketListenComm& operator=(const SocketListenComm&) = delete;

  [[nodiscard]] std::unique_ptr<ReceiveComm> accept() override;
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  [[nodiscard]] std::size_t arrived_max() const noexcept;

  std::deque<std::unique_ptr<ArrivingSocket>> arrived_;  // in the order in which they came
  std::optional<GatheringSockets> gathering_;            // set by the first proved socket
};

}  // namespace tributary::nccl
