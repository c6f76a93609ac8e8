#pragma once
// The receiving end of one connection.
//
// A call posts one buffer (maxRecvs is 1). With grouped receives, an early message on the shared stream could hold up
// the message for which the group waits. With one connection per sender, no message waits for another sender's message.
// The system's buffers give the overlap that grouped receives would give.
#include "client/plugins/nccl/p2p/net_comm.h"
#include "client/plugins/nccl/request.h"

namespace tributary::nccl {

/// A message is read directly into the first posted buffer with the message's tag. While no such buffer is posted, the
/// connection is not read, and the sender's socket fills up.
class ReceiveComm : public NetComm {
 public:
  /// Leaves *request NULL if kNetRequestsMax requests have not ended: NCCL then calls again.
  virtual abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) = 0;

 protected:
  using NetComm::NetComm;
};

}  // namespace tributary::nccl
