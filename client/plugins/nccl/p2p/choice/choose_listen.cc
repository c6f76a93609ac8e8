#include "client/plugins/nccl/p2p/listen_comm.h"

#include "client/plugins/nccl/p2p/frames/frame_listen_comm.h"
#include "client/plugins/nccl/p2p/sockets/socket_listen_comm.h"
#include "client/plugins/nccl/wire.h"

namespace tributary::nccl {

tributary::Result<std::unique_ptr<ListenComm>> ListenComm::open(std::shared_ptr<Engine> engine, const NetDevice& device,
                                                                void* handle) {
  std::unique_ptr<ListenComm> comm;
  if (engine->has_sockets()) {
    comm = std::make_unique<SocketListenComm>(std::move(engine));
  } else {
    comm = std::make_unique<FrameListenComm>(std::move(engine));
  }
  if (const auto listens = comm->listen(device); !listens) return std::unexpected(listens.error());
  comm->handle_.write(handle);
  return comm;
}

Status ListenComm::listen(const NetDevice& device) {
  const auto secret = client::random_secret();
  if (!secret) return std::unexpected(secret.error());
  handle_.secret = *secret;
  handle_.wire = *wire();  // valid: the engine was opened over this wire
  if (engine().has_sockets()) handle_.counts = device.socket_counts;
  const auto lock = engine().lock();
  engine().keys().listen(handle_.secret);
  auto listener = engine().transport().listen({device.address, 0}, *this);
  if (!listener) return std::unexpected(listener.error());
  listener_ = std::move(*listener);
  const Endpoint local = listener_->local();
  if (local.host.size() >= handle_.host.size()) return fail(Errc::io, "the address " + local.host + " is too long");
  local.host.copy(handle_.host.data(), handle_.host.size() - 1);
  handle_.port = local.port;
  return {};
}

}  // namespace tributary::nccl
