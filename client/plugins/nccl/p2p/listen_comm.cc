#include "client/plugins/nccl/p2p/listen_comm.h"

#include <algorithm>

#include "client/plugins/nccl/wire.h"

namespace tributary::nccl {
namespace {

// Strangers who connect and say nothing must not keep the peer out for long: the eldest of them gives way.
constexpr std::size_t kArrivedMax = 64;

}  // namespace

tributary::Result<std::unique_ptr<ListenComm>> ListenComm::open(std::shared_ptr<Engine> engine, const NetDevice& device,
                                                                void* handle) {
  std::unique_ptr<ListenComm> comm(new ListenComm(std::move(engine)));
  const auto secret = client::random_secret();
  if (!secret) return std::unexpected(secret.error());
  comm->secret_ = *secret;
  {
    const auto lock = comm->engine_->lock();
    auto listener = comm->engine_->transport().listen({device.address, 0}, *comm);
    if (!listener) return std::unexpected(listener.error());
    comm->listener_ = std::move(*listener);
  }
  const Endpoint local = comm->listener_->local();
  NetHandle to;
  to.secret = comm->secret_;
  to.port = local.port;
  to.wire = *wire();  // the engine stands on it
  if (local.host.size() >= to.host.size()) return fail(Errc::io, "the address " + local.host + " is too long");
  local.host.copy(to.host.data(), to.host.size() - 1);
  comm->listening_at_ = to_string(to.endpoint());
  to.write(handle);
  return comm;
}

ListenComm::~ListenComm() {
  const auto lock = engine_->lock();
  listener_.reset();
  for (const auto& comm : arrived_) comm->close_locked();
}

transport::ChannelHandler* ListenComm::on_accept(std::unique_ptr<transport::Channel> channel) {
  if (arrived_.size() >= kArrivedMax) {
    const auto stranger = std::ranges::find(arrived_, false, &ReceiveComm::greeted);
    if (stranger == arrived_.end()) return nullptr;
    (*stranger)->close_locked();
    arrived_.erase(stranger);
  }
  return arrived_.emplace_back(std::make_unique<ReceiveComm>(engine_, std::move(channel), secret_, listening_at_))
      .get();
}

std::unique_ptr<ReceiveComm> ListenComm::accept() {
  const auto lock = engine_->lock();
  engine_->poll();
  for (auto it = arrived_.begin(); it != arrived_.end();) {
    // One that greeted and has closed since is accepted all the same: what it sent before is still to be received.
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
