#pragma once
// The path of a communicator of several hosts with hosts as the lowest level (host_level.h). The communicator tries to
// make this level, works without it if that fails, and ends if the level fails later.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/communicator/host_level.h"
#include "client/communicator/whole.h"
#include "client/control/directory.h"

namespace tributary::client {

class HostPath {
 public:
  struct Parts {
    GroupService* service;  // rank 0: the manager, for the leaders' communicator
    const Directory& directory;
    std::function<void(Operation&)> done;                      // an operation has ended
    std::function<void()> met;                                 // the meeting has ended, with or without success
    std::function<void()> path_changed;                        // rank 0: the leaders' communicator has changed path
    std::function<void(const std::string&, bool)> second_way;  // the leaders' SecondWayUse::on_use
    std::function<void(const std::string&, bool)> late;        // the leaders' Communicator::on_late
  };
  HostPath(Shared& shared, Parts parts) : shared_(shared), parts_(std::move(parts)) {}

  /// On rank 0, when all ranks have come: opens the place where the leaders meet, if some host has several ranks.
  [[nodiscard]] std::optional<Endpoint> open(const std::vector<std::string>& host_tokens);
  void make(hosts::HostMap map);
  void meet(const Endpoint& place);
  [[nodiscard]] bool meeting() const noexcept { return level_ && level_->meeting(); }
  /// On rank 0, before the first commit: takes a rank's message that the rank could not meet. Returns false for any
  /// other message.
  [[nodiscard]] bool on_failure_told(std::uint32_t from, const ControlMessage& message);
  /// Takes the first commit. Returns false if the commit needs the level and this rank has no level: the communicator
  /// then fails.
  [[nodiscard]] bool agree(const ControlMessage& commit);
  /// On rank 0, before the first commit: returns true if ranks have not met in time, and then makes rank 0 go on
  /// without this level.
  [[nodiscard]] bool gave_up_in_time();
  /// Drives the level, and checks whether it has failed.
  void tick(std::uint64_t oldest_operation);
  [[nodiscard]] transport::Duration attend(transport::Duration limit, bool quiet);
  void excuse(transport::Duration absence) noexcept;

  /// Returns the level of hosts; nullptr if the communicator has none.
  [[nodiscard]] HostLevel* level() noexcept { return level_.get(); }
  [[nodiscard]] const HostLevel* level() const noexcept { return level_.get(); }
  /// Returns the leaders' communicator; nullptr on a rank that is no leader.
  [[nodiscard]] const Communicator* between() const noexcept { return level_ ? level_->between() : nullptr; }
  [[nodiscard]] bool takes(const Operation& operation) const noexcept;
  /// Reads rank 0's report on the path of the leaders' communicator.
  void report(const std::string& body);
  void account(CommunicatorInfo& info) const;

 private:
  void on_met(const Status& status);
  void do_without(const std::string& why);
  void on_error(const Error& error, std::uint64_t oldest_operation);

  Shared& shared_;
  const Parts parts_;
  std::unique_ptr<HostLevel> level_;
  std::vector<std::unique_ptr<HostLevel>> discarded_;  // levels that may be in a callback until the next tick
  std::optional<Error> why_not_;
  transport::TimePoint failed_at_{};
};

}  // namespace tributary::client
