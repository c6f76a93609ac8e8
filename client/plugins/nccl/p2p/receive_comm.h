#pragma once
// The receiving end of one connection.
//
// One buffer a call (maxRecvs is 1): with grouped receives one sender of the group could run ahead on the stream and
// keep the bytes of another, for which the group waits, behind its own. A separate connection each has no such wait,
// and the system's buffers do what grouping is for.
#include "client/plugins/nccl/p2p/net_comm.h"
#include "client/plugins/nccl/request.h"

namespace tributary::nccl {

/// Messages are read straight into the posted buffers, the first posted with the message's tag; while there is none the
/// connection is not read, and the sender's socket fills up.
class ReceiveComm : public NetComm {
 public:
  /// *request stays NULL when kNetRequestsMax are under way.
  virtual abi::Result receive(void* data, std::size_t bytes, int tag, nccl::Request** request) = 0;

 protected:
  using NetComm::NetComm;
};

}  // namespace tributary::nccl
