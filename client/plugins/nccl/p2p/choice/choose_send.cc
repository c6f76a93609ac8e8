#include "client/plugins/nccl/p2p/send_comm.h"

#include "client/plugins/nccl/p2p/frames/frame_send_comm.h"
#include "client/plugins/nccl/p2p/sockets/socket_send_comm.h"

namespace tributary::nccl {

std::unique_ptr<SendComm> SendComm::connect(std::shared_ptr<Engine> engine, const NetHandle& to) {
  if (engine->has_sockets()) return std::make_unique<SocketSendComm>(std::move(engine), to);
  return std::make_unique<FrameSendComm>(std::move(engine), to);
}

}  // namespace tributary::nccl
