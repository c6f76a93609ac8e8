#include "client/communicator/local_path.h"

#include <algorithm>

#include "tributary/protocol/reason.h"

namespace tributary::client {

namespace {

/// Returns the limit of the meeting: far below the time-out, because all ranks have started, and each only maps memory.
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

bool all_alike(const std::vector<std::string>& all) {
  return std::ranges::all_of(all, [&](const std::string& one) { return one == all[0]; });
}

}  // namespace

void tell_no_local(const Shared& shared, const std::string& why) {
  if (const auto& record = shared.settings.flight_record) record->noted(Reason::no_shared_memory);
  shared.whole.path_changed(shared.log_prefix() + "shared memory of host " + shared.settings.host_id +
                                " not in use: " + coded(Reason::no_shared_memory, why),
                            false);
}

local::GroupSettings LocalPath::group_settings() const {
  const CommunicatorSettings& settings = shared_.settings;
  local::GroupSettings group;
  group.rank = settings.rank;
  group.ranks = settings.nranks;
  group.timeout = settings.timeout;
  group.host = settings.host_id;
  group.attach = settings.attach;
  group.crowded = settings.nranks > local::usable_cores();
  if (settings.late_ranks) group.late = late_;
  return group;
}

std::optional<local::MeetingPlace> LocalPath::open(const std::vector<std::string>& host_tokens,
                                                   const std::vector<std::string>& host_ids) {
  const CommunicatorSettings& settings = shared_.settings;
  if (settings.path != PathMode::automatic || settings.nranks == 1 || !settings.local) return std::nullopt;
  if (host_tokens[0].empty() || !all_alike(host_tokens) || !all_alike(host_ids)) return std::nullopt;
  auto place = local::MeetingPlace::open(settings.id.secret);
  if (place) return std::move(*place);
  tell_no_local(shared_, place.error().message);
  return std::nullopt;
}

void LocalPath::meet(std::optional<local::MeetingPlace> place) {
  auto settings = group_settings();
  const auto limit = gathering_limit(settings.timeout);
  std::function<LocalMeeting::Outcome(int)> meet;
  if (place) {
    const auto shared = std::make_shared<local::MeetingPlace>(std::move(*place));
    meet = [shared, settings, limit](int stop) { return one(shared->gather(settings, limit, stop)); };
  } else {
    meet = [secret = shared_.settings.id.secret, settings, limit](int stop) {
      return one(local::come(secret, settings, 2 * limit, stop));
    };
  }
  meeting_ = std::make_unique<LocalMeeting>(std::move(meet), [this](LocalMeeting::Outcome outcome) {
    // This object lives until the meeting has ended, but may be gone when the posted call runs.
    const auto shared = std::make_shared<LocalMeeting::Outcome>(std::move(outcome));
    shared_.transport.post([this, alive = shared_.alive, shared] {
      if (!*alive) return;
      if (!*shared) return on_met(std::unexpected(shared->error()));
      on_met(std::move((*shared)->front()));
    });
  });
}

void LocalPath::on_met(Result<std::unique_ptr<local::LocalGroup>> outcome) {
  shared_.whole.look_at_clock();
  meeting_.reset();
  if (shared_.life.failed()) return;
  if (outcome) {
    calls_ = std::make_shared<local::GroupCalls>(std::move(*outcome), shared_.settings.local_left_alone,
                                                 shared_.settings.flight_record);
  } else {
    why_not_ = outcome.error();
    if (shared_.rank() == 0) tell_no_local(shared_, outcome.error().message);
  }
  met_();
}

// Agrees if this rank has its part of the group. Rank 0 has a group only if it told every rank "go"; a rank that did
// not receive this message has no group.
bool LocalPath::agree(const ControlMessage& commit) {
  if (commit.value != kCommitLocal) {
    calls_.reset();
    return true;
  }
  if (calls_) return true;
  const std::string why = why_not_ ? why_not_->message : "rank 0 did not ask it to share memory";
  const Error error{Errc::io, "rank " + std::to_string(shared_.rank()) +
                                  " has no part in the memory that the ranks of host " + shared_.settings.host_id +
                                  " share: " + why + "; set TRIBUTARY_LOCAL=off to work without shared memory"};
  shared_.whole.tell_rank_0(Shared::abort_message(error));
  shared_.whole.begin_failing(error);
  return false;
}

// Reports the group's failure to rank 0, too: rank 0 shares the memory, but may not look at it now.
void LocalPath::tick() {
  for (const local::LateLines::Line& line : late_->take()) tell_late_(shared_.log_prefix() + line.text, line.late);
  if (!calls_ || !shared_.life.well() || !calls_->group->failed()) return;
  const Error error = calls_->group->failure();
  shared_.whole.tell_rank_0(Shared::abort_message(error));
  shared_.whole.begin_failing(error);
}

Error LocalPath::one_error(Error error) {
  if (!calls_) return error;
  calls_->group->fail(error);
  return calls_->group->failure();
}

void LocalPath::fail(const Error& error) {
  if (calls_) calls_->group->fail(error);
}

void LocalPath::account(CommunicatorInfo& info) const {
  if (!calls_) return;
  info.operations += calls_->queue.ended();
  info.bytes_local = calls_->queue.bytes();
  info.direct = calls_->group->direct_calls();
  info.attach_refusal = calls_->group->attach_refusal();
}

}  // namespace tributary::client
