#pragma once
// The listener behind a unique id, where a group meets. It lives from tributary_get_unique_id until rank 0's
// communicator ends.
#include <cstddef>
#include <memory>

#include "client/api/dpdk_module.h"
#include "client/api/transports.h"
#include "client/control/unique_id.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// A meeting. One thread at a time uses it: the thread that takes it from the registry also takes over its transport.
class Meeting {
 public:
  /// Makes an id, and listens at `host` with the transport of this name.
  [[nodiscard]] static Result<std::unique_ptr<Meeting>> open(const std::string& transport, const std::string& host,
                                                             const TcpWish& tcp, PacketSecurity security,
                                                             const DpdkRank& dpdk, const RdmaWish& rdma,
                                                             const UdpRank& udp);
  ~Meeting();

  [[nodiscard]] const UniqueId& id() const noexcept { return id_; }
  [[nodiscard]] transport::Transport& transport() noexcept { return *transport_; }
  [[nodiscard]] const std::shared_ptr<transport::LinkKeys>& keys() const noexcept { return keys_; }
  /// Sets another secret, before a connection is accepted.
  void change_secret(const Secret& secret);
  /// Passes connections to `acceptor` from now on. Earlier connections have waited in the system's queue, because no
  /// thread polled the transport.
  void deliver_to(transport::Acceptor& acceptor) noexcept;

 private:
  class Relay;
  Meeting();

  UniqueId id_;
  std::shared_ptr<transport::LinkKeys> keys_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<transport::Listener> listener_;
};

/// The most meetings that no communicator has taken yet. Each of them costs a listener and a few descriptors. If there
/// are more, open_meeting() closes the oldest meeting, whose id is then invalid.
inline constexpr std::size_t kMeetingsMax = 64;
[[nodiscard]] Result<UniqueIdBytes> open_meeting(const std::string& transport, const std::string& host,
                                                 const TcpWish& tcp, PacketSecurity security, const DpdkRank& dpdk,
                                                 const RdmaWish& rdma, const UdpRank& udp);
/// Takes the meeting of an id. Returns nullptr if this process did not make the id, if a communicator has taken it, or
/// if kMeetingsMax newer meetings closed it.
[[nodiscard]] std::unique_ptr<Meeting> take_meeting(const UniqueId& id);
/// Gives the meeting with the secret `from` the secret `to`. Without such a meeting nothing happens.
void change_secret(const Secret& from, const Secret& to);

}  // namespace tributary::client
