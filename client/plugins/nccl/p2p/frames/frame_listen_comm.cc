#include "client/plugins/nccl/p2p/frames/frame_listen_comm.h"

#include <algorithm>

namespace tributary::nccl {
namespace {

// Strangers that connect and send nothing must not keep a peer out for long: each new one may displace the oldest.
constexpr std::size_t kArrivedMax = 64;

}  // namespace

FrameListenComm::~FrameListenComm() {
  const auto lock = engine().lock();
  stop_listening();
  for (const auto& comm : arrived_) comm->close_locked();
}

transport::ChannelHandler* FrameListenComm::on_accept(std::unique_ptr<transport::Channel> channel) {
  if (arrived_.size() >= kArrivedMax) {
    const auto stranger = std::ranges::find(arrived_, false, &FrameReceiveComm::greeted);
    if (stranger == arrived_.end()) return nullptr;
    (*stranger)->close_locked();
    arrived_.erase(stranger);
  }
  arrived_.push_back(
      std::make_unique<FrameReceiveComm>(shared_engine(), std::move(channel), handle().secret, listening_at()));
  return arrived_.back().get();
}

std::unique_ptr<ReceiveComm> FrameListenComm::accept() {
  const auto lock = engine().lock();
  engine().poll();
  for (auto it = arrived_.begin(); it != arrived_.end();) {
    // Accept a peer that has greeted even if it has closed since: its messages may still be received.
    if ((*it)->greeted()) {
      auto comm = std::move(*it);
      arrived_.erase(it);
      return comm;
    }
    if ((*it)->failed()) {
      (*it)->close_locked();
      it = arrived_.erase(it);
    } else {
      ++it;
    }
  }
  return nullptr;
}

}  // namespace tributary::nccl
