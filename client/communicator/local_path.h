#pragma once
// The path of a communicator with all ranks on one host. It gets shared memory for the ranks. If both the group in
// shared memory and the communicator fail, it chooses one error.
//
//   rank 0 has met all ranks, on one host and with one token  -> it opens a place, says "local" in the welcome, gathers
//   the other ranks                                           -> come to the place
//   rank 0 has a group, or gathering failed                   -> its first commit says which; no rank is ready before
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/local/call_queue.h"
#include "client/collectives/local/meeting_place.h"
#include "client/communicator/local_meeting.h"
#include "client/communicator/whole.h"

namespace tributary::client {

class LocalPath {
 public:
  /// `met`: called when the meeting has ended, with or without success. `late` gets lines about ranks that call late,
  /// from tick().
  LocalPath(Shared& shared, std::function<void()> met, std::function<void(const std::string&, bool)> late)
      : shared_(shared), met_(std::move(met)), tell_late_(std::move(late)) {}

  /// On rank 0, when all ranks have come: opens the place where the ranks meet, if they are all on one host.
  [[nodiscard]] std::optional<local::MeetingPlace> open(const std::vector<std::string>& host_tokens,
                                                        const std::vector<std::string>& host_ids);
  /// Begins to meet. `place`: on rank 0, the place that it opened; none on other ranks.
  void meet(std::optional<local::MeetingPlace> place);
  [[nodiscard]] bool meeting() const noexcept { return meeting_ != nullptr; }
  /// Takes the first commit. Returns false if the commit needs this rank's group and this rank has none: the
  /// communicator then fails.
  [[nodiscard]] bool agree(const ControlMessage& commit);
  /// Checks whether the group has failed, and takes its lines about late ranks; each rank does this by itself.
  void tick();
  /// Returns the error that came first: the group's error, or the communicator's.
  [[nodiscard]] Error one_error(Error error);
  void fail(const Error& error);

  /// Returns the object that takes all collectives once the ranks share memory; before that nullptr.
  [[nodiscard]] const std::shared_ptr<local::GroupCalls>& calls() const noexcept { return calls_; }
  void account(CommunicatorInfo& info) const;

 private:
  [[nodiscard]] local::GroupSettings group_settings() const;
  void on_met(Result<std::unique_ptr<local::LocalGroup>> outcome);

  Shared& shared_;
  const std::function<void()> met_;
  const std::function<void(const std::string&, bool)> tell_late_;
  const std::shared_ptr<local::LateLines> late_ = std::make_shared<local::LateLines>();
  std::shared_ptr<local::GroupCalls> calls_;
  std::optional<Error> why_not_;
  std::unique_ptr<LocalMeeting> meeting_;  // the last member: its destructor may still post a call
};

/// Logs why the ranks do not use shared memory.
void tell_no_local(const Shared& shared, const std::string& why);

}  // namespace tributary::client
