#include "client/plugins/nccl/p2p/sockets/socket_listen_comm.h"

#include <algorithm>

#include "client/plugins/nccl/p2p/sockets/socket_receive_comm.h"

namespace tributary::nccl {
namespace {

// Strangers that connect and send nothing must not keep a peer out for long: each new one may displace the oldest.
constexpr std::size_t kStrangersMax = 64;
constexpr std::size_t kPeersAtATime = 4;  // peers whose sockets may all come before the first socket is proved

}  // namespace

SocketListenComm::~SocketListenComm() {
  const auto lock = engine().lock();
  stop_listening();
  arrived_.clear();
}

std::size_t SocketListenComm::arrived_max() const noexcept {
  return kStrangersMax + kPeersAtATime * handle().counts.sockets;
}

transport::ChannelHandler* SocketListenComm::on_accept(std::unique_ptr<transport::Channel> channel) {
  if (arrived_.size() >= arrived_max()) {
    const auto stranger = std::ranges::find(arrived_, false, &ArrivingSocket::proved);
    if (stranger == arrived_.end()) return nullptr;
    arrived_.erase(stranger);
  }
  arrived_.push_back(std::make_unique<ArrivingSocket>(engine(), std::move(channel), handle()));
  return arrived_.back().get();
}

std::unique_ptr<ReceiveComm> SocketListenComm::accept() {
  const auto lock = engine().lock();
  engine().poll();
  std::erase_if(arrived_, [](const auto& one) { return one->failed(); });
  while (true) {
    const auto one = std::ranges::find(arrived_, true, &ArrivingSocket::ready);
    if (one == arrived_.end()) return nullptr;
    if (!gathering_) gathering_.emplace(1U + handle().counts.sockets);
    auto sockets = gathering_->add((*one)->part(), (*one)->take());
    arrived_.erase(one);
    if (!sockets.empty())
      return std::make_unique<SocketReceiveComm>(shared_engine(), std::move(sockets), handle().counts);
  }
}

}  // namespace tributary::nccl
