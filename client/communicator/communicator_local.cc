// How the ranks of one host come to shared memory, and how its errors and the communicator's become one.
//
//   rank 0 has met all: same host, same token?  -> opens a place, says "local" in the welcome, gathers
//   the others: come
//   rank 0 has a group, or not                  -> its first commit says which; nobody is ready before
#include <algorithm>

#include "client/communicator/communicator.h"
#include "client/communicator/local_meeting.h"

namespace tributary::client {

namespace {

/// Far inside the time-out: the ranks are all there, and each does no more than map some memory.
std::chrono::milliseconds gathering_limit(transport::Duration timeout) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<transport::Duration>(timeout / 5, std::chrono::seconds(10)));
}

LocalMeeting::Outcome one(Result<std::unique_ptr<local::LocalGroup>> group) {
  if (!group) return std::unexpected(group.error());
  LocalMeeting::Outcome groups;
  groups->push_back(std::move(*group));
  return groups;
}

}  // namespace

std::string Communicator::host_token() const {
  return settings_.local && settings_.nranks > 1 ? local::host_token() : std::string();
}

local::GroupSettings Communicator::local_settings() const {
  local::GroupSettings group;
  group.rank = settings_.rank;
  group.ranks = settings_.nranks;
  group.timeout = settings_.timeout;
  group.host = settings_.host_id;
  group.attach = settings_.attach;
  group.crowded = settings_.nranks > local::usable_cores();
  return group;
}

std::optional<local::MeetingPlace> Communicator::open_local_place() {
  if (settings_.path != PathMode::automatic || settings_.nranks == 1 || !settings_.local) return std::nullopt;
  host_tokens_[0] = host_token();
  const auto differs = [](const auto& all) {
    return std::ranges::any_of(all, [&](auto& one) { return one != all[0]; });
  };
  if (host_tokens_[0].empty() || differs(host_tokens_) || differs(directory_.host_ids())) return std::nullopt;
  auto place = local::MeetingPlace::open(settings_.id.secret);
  if (place) return std::move(*place);
  tell_no_local(place.error());
  return std::nullopt;
}

void Communicator::meet_locally(std::optional<local::MeetingPlace> place) {
  auto settings = local_settings();
  const auto limit = gathering_limit(settings_.timeout);
  std::function<LocalMeeting::Outcome(int)> meet;
  if (place) {
    const auto shared = std::make_shared<local::MeetingPlace>(std::move(*place));
    meet = [shared, settings, limit](int stop) { return one(shared->gather(settings, limit, stop)); };
  } else {
    meet = [secret = settings_.id.secret, settings, limit](int stop) {
      return one(local::come(secret, settings, 2 * limit, stop));
    };
  }
  local_meeting_ = std::make_unique<LocalMeeting>(std::move(meet), [this](LocalMeeting::Outcome outcome) {
    // This object stays until the meeting has ended; what is posted may find it gone.
    const auto shared = std::make_shared<LocalMeeting::Outcome>(std::move(outcome));
    transport_.post([this, alive = alive_, shared] {
      if (!*alive) return;
      if (!*shared) return on_local_meeting(std::unexpected(shared->error()));
      on_local_meeting(std::move((*shared)->front()));
    });
  });
}

void Communicator::on_local_meeting(Result<std::unique_ptr<local::LocalGroup>> outcome) {
  look_at_clock(transport_.now());
  local_meeting_.reset();
  if (error_) return;
  if (outcome) {
    local_ = std::make_shared<local::GroupCalls>(std::move(*outcome), settings_.local_left_alone);
  } else {
    local_error_ = outcome.error();
    if (settings_.rank == 0) tell_no_local(outcome.error());
  }
  if (settings_.rank == 0) return start_coordinator();
  if (waiting_commit_) on_commit(*std::exchange(waiting_commit_, std::nullopt));
}

// Rank 0 has a group only if every rank was told to go; but a rank that did not hear it has none.
bool Communicator::agrees_on_local(const ControlMessage& commit) {
  if (commit.value != kCommitLocal) {
    local_.reset();
    return true;
  }
  if (local_) return true;
  const std::string why = local_error_ ? local_error_->message : "it was not asked to";
  const Error error{Errc::io, "rank " + std::to_string(settings_.rank) +
                                  " has no part in the memory that the ranks of host " + settings_.host_id +
                                  " share: " + why + "; TRIBUTARY_LOCAL=off does without"};
  tell_rank_0({.type = FrameType::abort, .value = static_cast<std::uint64_t>(error.code), .body = error.message});
  begin_failing(error);
  return false;
}

// Every rank of the group finds the failure there by itself. Rank 0 is told all the same: it may be the one that does
// not look.
void Communicator::check_local() {
  if (!local_ || error_ || failing_ || !local_->group->failed()) return;
  const Error error = local_->group->failure();
  tell_rank_0({.type = FrameType::abort, .value = static_cast<std::uint64_t>(error.code), .body = error.message});
  begin_failing(error);
}

// The first text stands, whichever side it comes from.
Error Communicator::one_error(Error error) {
  if (!local_) return error;
  local_->group->fail(error);
  return local_->group->failure();
}

void Communicator::tell_no_local(const Error& why) {
  if (on_path_change) {
    on_path_change("tributary: rank " + std::to_string(settings_.rank) + " of " + std::to_string(settings_.nranks) +
                   ": shared memory of host " + settings_.host_id + " not in use: " + why.message);
  }
}

}  // namespace tributary::client
