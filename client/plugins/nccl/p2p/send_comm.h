#pragma once
// The sending end of one connection.
#include "client/plugins/nccl/p2p/handle.h"
#include "client/plugins/nccl/p2p/net_comm.h"
#include "client/plugins/nccl/request.h"

namespace tributary::nccl {

/// Messages leave in the order of the calls, directly from the caller's buffer.
class SendComm : public NetComm {
 public:
  enum class Opening : std::uint8_t { under_way, open, failed };

  /// Begins to connect, over sockets or frames as the engine decides. The connection is open once both ends have proved
  /// that they know the handle's secret.
  [[nodiscard]] static std::unique_ptr<SendComm> connect(std::shared_ptr<Engine> engine, const NetHandle& to);

  [[nodiscard]] virtual Opening opening() = 0;
  /// Leaves *request NULL if kNetRequestsMax requests have not ended: NCCL then calls again.
  virtual abi::Result send(const void* data, std::size_t bytes, int tag, nccl::Request** request) = 0;

 protected:
  using NetComm::NetComm;
};

}  // namespace tributary::nccl
