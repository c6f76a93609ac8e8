#pragma once
// Hosts as the lowest level of a communicator with ranks on several hosts. The ranks of each host share memory, and the
// hosts' leaders have a communicator of their own, in which each leader acts for its host. Like every communicator, it
// has trees (the manager plans them for one rank per host), fallback, failover and return. It uses the transport of the
// outer communicator, and the same thread drives both communicators.
//
//   rank 0 has met all ranks, and some hosts have several  -> it opens a place for the leaders, and its welcome says
//                                                             which ranks are on which host
//   the ranks of each host                                 -> meet in shared memory; then the leaders meet at the place
//   rank 0 has met the leaders, or some meeting failed     -> its first commit says which; no rank is ready before
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/hosts/host_runner.h"
#include "client/communicator/settings.h"
#include "client/recovery/group_service.h"

namespace tributary::client {

class Communicator;
class LocalMeeting;

/// Describes the leaders' communicator, as a text that rank 0 sends to all ranks.
[[nodiscard]] std::string encode_between(const CommunicatorInfo& info);
/// Sets the members of `info` that the text names. A malformed text changes nothing.
void decode_between(const std::string& body, CommunicatorInfo& info);

class HostLevel {
 public:
  struct Parts {
    transport::Transport& transport;
    GroupService* service;          // on rank 0: the service for the leaders' communicator
    CommunicatorSettings settings;  // settings of the outer communicator
    hosts::HostMap map;
    std::function<void(Operation&)> done;
    std::function<void()> path_changed;                          // rank 0: encode_between() returns another text
    std::function<void(const std::string&, bool)> second_way{};  // the leaders' Communicator::on_second_way
    std::function<void(const std::string&, bool)> late{};        // the leaders' Communicator::on_late
    std::function<void(const Operation&)> came{};                // HostRunner::Parts::came
  };
  explicit HostLevel(Parts parts);
  HostLevel(const HostLevel&) = delete;
  HostLevel& operator=(const HostLevel&) = delete;
  ~HostLevel();

  /// On rank 0: opens the place where the leaders meet.
  [[nodiscard]] Result<Endpoint> open();
  /// Begins to meet. Calls `then` once: with success if this rank has met its host's ranks and, on a leader, the other
  /// leaders; else with the error.
  void start(const Endpoint& place, std::function<void(const Status&)> then);
  /// Returns whether the meeting is under way: start() has not called `then` yet.
  [[nodiscard]] bool meeting() const noexcept { return then_ != nullptr; }
  /// On rank 0: returns whether the limit is over, and not all leaders have come: some host's ranks have not met.
  [[nodiscard]] bool late(transport::TimePoint now) const;

  void submit(Operation& operation);
  /// Does all work that need not wait; the driver calls it in each of its turns. Returns how long the driver may then
  /// wait for the transport, at most `limit`. `quiet`: no other work of the driver waits for the transport.
  [[nodiscard]] transport::Duration attend(transport::TimePoint now, transport::Duration limit, bool quiet);
  void tick(transport::TimePoint now);
  /// Extends the limits by `absence`: this process was away, and could receive no message meanwhile.
  void excuse(transport::Duration absence) noexcept;
  /// Returns the error that keeps the level from going on.
  [[nodiscard]] std::optional<Error> error() const;
  /// Returns the number of the outer communicator's operation on which ranks disagree, if they do.
  [[nodiscard]] std::optional<std::uint64_t> disputed() const;
  void fail(const Error& error);
  /// Ends the level when all ranks have finalized: a leader takes leave of the other leaders.
  void finalize(std::function<void()> done);

  /// Returns the time of the last progress on this host or, on a leader, between the hosts.
  [[nodiscard]] transport::TimePoint progress_at() const noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept { return runner_ ? runner_->steps() : 0; }
  [[nodiscard]] std::vector<std::shared_ptr<local::Regions>> regions() const {
    return runner_ ? runner_->regions() : std::vector<std::shared_ptr<local::Regions>>{};
  }
  [[nodiscard]] std::string attach_refusal() const { return runner_ ? runner_->attach_refusal() : std::string(); }
  [[nodiscard]] std::uint64_t direct_pieces() const noexcept { return runner_ ? runner_->direct_pieces() : 0; }
  /// Returns the bytes that the leader of this host has moved for the host's ranks. On the other ranks the last piece
  /// may be missing, if they need no result of it.
  [[nodiscard]] local::BytesBetweenHosts bytes_between_hosts() const noexcept {
    return runner_ ? runner_->bytes_between_hosts() : local::BytesBetweenHosts{};
  }
  [[nodiscard]] std::string waits_for() const { return runner_ ? runner_->waits_for() : "nothing"; }
  [[nodiscard]] const hosts::HostMap& map() const noexcept { return parts_.map; }
  /// Returns the leaders' communicator; nullptr on a rank that is no leader.
  [[nodiscard]] const Communicator* between() const noexcept { return between_.get(); }

 private:
  [[nodiscard]] CommunicatorSettings settings_between() const;
  [[nodiscard]] local::GroupSettings settings_here() const;
  void meet_here();
  void on_met_here(Result<std::vector<std::unique_ptr<local::LocalGroup>>> groups);
  void meet_leaders();
  void answer(const Status& status);
  [[nodiscard]] bool leads() const noexcept { return parts_.map.leads(parts_.settings.rank); }

  Parts parts_;
  Endpoint place_;
  std::function<void(const Status&)> then_;
  transport::TimePoint late_at_ = transport::TimePoint::max();
  std::vector<std::unique_ptr<local::LocalGroup>> groups_;  // groups of the stages up and down
  std::string told_between_;  // text of encode_between() at the last call of parts_.path_changed
  std::unique_ptr<Communicator> between_;
  std::unique_ptr<transport::Listener> listener_;  // on rank 0: the place where the leaders meet
  std::unique_ptr<hosts::HostRunner> runner_;      // set once all ranks have met
  transport::TimePoint moved_at_{};
  transport::TimePoint leaves_until_ = transport::TimePoint::max();
  std::function<void()> left_;
  std::shared_ptr<bool> alive_;
  std::unique_ptr<LocalMeeting> meeting_;  // last member: its end may still post a call
};

}  // namespace tributary::client
