#pragma once
// Transports with a second way (tributary/transport/second_way.h): which connections of this rank use it, and which
// ranks learn of that.
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

  /// Handles a break of the first way between this rank and `peer`, of their connection or of one side's device.
  /// The higher rank makes the second connection, and may not have noticed the break: the lower rank tells it through
  /// rank 0.
  void broken_with(std::uint32_t peer, const std::string& reason);
  /// Called when a connection breaks. If this rank's device is gone, tells all others, who would try to reach it.
  void check_device();
  [[nodiscard]] bool device_gone() const noexcept { return device_gone_; }
  /// On rank 0: passes the message on to the rank that it is for, or to all.
  void spread(const ControlMessage& message);
  /// Takes another rank's message that it has left the first way.
  void on_word(const ControlMessage& message);
  /// The error says why this rank cannot reach aggregators, and need not try.
  [[nodiscard]] Status may_reach_trees() const;

  /// Called with the line for the log when connections of this rank go the second way from now on. `device_gone`: all
  /// of them do.
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
