#pragma once
// Waits for peers, which must prove that they know the handle's secret (greeting.h).
#include <deque>
#include <memory>

#include "client/plugins/nccl/p2p/receive_comm.h"

namespace tributary::nccl {

class ListenComm final : public transport::Acceptor {
 public:
  /// Listens at the engine's device, and fills the handle.
  [[nodiscard]] static tributary::Result<std::unique_ptr<ListenComm>> open(std::shared_ptr<Engine> engine,
                                                                           const NetDevice& device, void* handle);
  ~ListenComm() override;
  ListenComm(const ListenComm&) = delete;
  ListenComm& operator=(const ListenComm&) = delete;

  /// nullptr: nobody yet. Never blocks.
  [[nodiscard]] std::unique_ptr<ReceiveComm> accept();

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  explicit ListenComm(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

  const std::shared_ptr<Engine> engine_;
  Secret secret_{};
  std::string listening_at_;  // as the handle has it
  std::deque<std::unique_ptr<ReceiveComm>> arrived_;
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace tributary::nccl
