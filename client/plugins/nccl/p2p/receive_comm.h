#pragma once
// The receiving end of one connection.
//
// A call posts one buffer (maxRecvs is 1). With grouped receives, a message that comes early on the shared stream could
// stand in front of the message for which the group waits. With a connection for each sender no message waits for
// another sender's, and the system's buffers give the overlap that grouping is meant for.
#include "client/plugins/nccl/p2p/net_comm.h"
#include "client/plugins/nccl/request.h"

namespace tributary::nccl {

/// A message is read straight into the buffer that was posted first with its tag. While there is no such buffer, the
/// connection is not read, and the sender's socket fills up.
class ReceiveComm : public NetComm {
 public:
  /// Leaves *request NULL if kNetRequestsMax requests are under way: NCCL calls again.
  virtual abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) = 0;

 protected:
  using NetComm::NetComm;
};

}  // namespace tributary::nccl
