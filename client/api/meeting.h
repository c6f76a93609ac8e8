#pragma once
// Where a group meets: the listener behind a unique id, from tributary_get_unique_id until rank 0's communicator ends.
#include <cstddef>
#include <memory>

#include "client/api/dpdk_module.h"
#include "client/api/transports.h"
#include "client/control/unique_id.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// One thread at a time: whoever takes it from the registry also takes its transport over.
class Meeting {
 public:
  /// Listens at `host`, by the transport of that name, and makes the id.
  [[nodiscard]] static Result<std::unique_ptr<Meeting>> open(const std::string& transport, const std::string& host,
                                                             bool shared_memory, PacketSecurity security,
                                                             const DpdkRank& dpdk, const RdmaWish& rdma,
                                                             const UdpRank& udp);
  ~Meeting();

  [[nodiscard]] const UniqueId& id() const noexcept { return id_; }
  [[nodiscard]] transport::Transport& transport() noexcept { return *transport_; }
  [[nodiscard]] const std::shared_ptr<transport::LinkKeys>& keys() const noexcept { return keys_; }
  /// Connections go to `acceptor` from now on. Until then none is taken: they wait in the system's queue, because
  /// nobody polls the transport.
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

/// The meetings that no communicator has taken yet. An id that nobody takes costs a listener and a few descriptors, so
/// at most kMeetingsMax are kept: the oldest is closed, and its id is then good for nothing. Any thread.
inline constexpr std::size_t kMeetingsMax = 64;
[[nodiscard]] Result<UniqueIdBytes> open_meeting(const std::string& transport, const std::string& host,
                                                 bool shared_memory, PacketSecurity security, const DpdkRank& dpdk,
                                                 const RdmaWish& rdma, const UdpRank& udp);
/// nullptr: not made by this process, taken already, or closed because kMeetingsMax newer ones were made.
[[nodiscard]] std::unique_ptr<Meeting> take_meeting(const UniqueId& id);

}  // namespace tributary::client
