#pragma once
// The secrets that seal an engine's connections, one for each handle. The caller holds the engine's lock in every call.
//
// The link secret follows from the handle's secret, which NCCL carries between the ranks, and each connection's keys
// follow from the link secret and two X25519 keys of its own. So a process that overhears NCCL's handles and the
// connection still cannot read encrypted messages.
#include <cstdint>
#include <map>
#include <memory>

#include "client/plugins/nccl/p2p/handle.h"
#include "tributary/transport/link_keys.h"

namespace tributary::nccl {

class HandleKeys {
 public:
  /// With security `off` the calls have no effect.
  explicit HandleKeys(PacketSecurity security);

  /// Returns the keys for the engine's transport; nullptr: connections are not sealed.
  [[nodiscard]] const std::shared_ptr<transport::LinkKeys>& of_transport() const noexcept { return keys_; }
  /// Lets sealed connections for this handle come in, until stop_listening().
  void listen(const Secret& handle);
  void stop_listening(const Secret& handle);
  /// Prepares a connection to this handle, until connected(). Returns the group that its first frame names; 0: the
  /// connection is not sealed.
  [[nodiscard]] std::uint64_t connect(const Secret& handle);
  void connected(const Secret& handle);

 private:
  using Secrets = std::map<std::uint64_t, LinkSecret>;  // key: the group that stands for the handle

  const PacketSecurity security_;
  const std::shared_ptr<Secrets> listening_ = std::make_shared<Secrets>();
  std::map<std::uint64_t, int> connecting_;  // number of connections that are being made to each handle
  std::shared_ptr<transport::LinkKeys> keys_;
};

}  // namespace tributary::nccl
