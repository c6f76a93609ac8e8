#pragma once
// The use of a transport's second way (tributary/transport/second_way.h): moves this rank's connections to the second
// way, and tells the ranks that must know.
#include <functional>
#include <string>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/communicator/whole.h"
#include "tributary/transport/second_way.h"

namespace tributary::client {

class SecondWayUse {
 public:
  explicit SecondWayUse(Shared& shared)
      : shared_(shared), two_ways_(dynamic_cast<transport::HasSecondWay*>(&shared.transport)) {}

  /// Returns whether the transport has a second way.
  [[nodiscard]] bool exists() const noexcept { return two_ways_ != nullptr; }
  [[nodiscard]] transport::Transport& second() const { return two_ways_->second_way(); }
  [[nodiscard]] PeerWays ways() const;
  /// Watches from now on the connections to other ranks and the address of this rank's device on the first way.
  void watch(PeerMesh& mesh, std::string device_address);

  /// Handles a break of the first way between this rank and `peer`: the connection broke, or one side's device is gone.
  /// The higher rank makes the second connection. It may not have noticed the break, so the lower rank tells it through
  /// rank 0.
  void broken_with(std::uint32_t peer, const std::string& reason);
  /// Checks this rank's device; called when a connection breaks. If the device is gone, tells all other ranks, which
  /// would else try to reach it.
  void check_device();
  [[nodiscard]] bool device_gone() const noexcept { return device_gone_; }
  /// On rank 0: passes the message on to the rank, or to all ranks, for which it is meant.
  void spread(const ControlMessage& message);
  /// Takes another rank's message that this other rank has left the first way.
  void on_word(const ControlMessage& message);
  /// Returns success if this rank may try to reach aggregators. The error says why it cannot reach them.
  [[nodiscard]] Status may_reach_trees() const;

  /// Called with the line for the log when connections of this rank begin to use the second way. `device_gone`: all
  /// connections of this rank use it.
  std::function<void(const std::string&, bool device_gone)> on_use;

 private:
  void tell_user(const std::string& whose, const std::string& reason, bool device_gone) const;
  void tell_others(std::uint64_t whom, const std::string& reason);

  Shared& shared_;
  transport::HasSecondWay* const two_ways_;
  PeerMesh* mesh_ = nullptr;
  std::string device_address_;
  bool device_gone_ = false;
};

}  // namespace tributary::client
