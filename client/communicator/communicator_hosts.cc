// How a communicator of several hosts gets its hosts as the lowest level (host_level.h), and what it does with them.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/collectives/hosts/cut.h"
#include "client/communicator/communicator.h"
#include "client/communicator/host_level.h"

namespace tributary::client {

using transport::TimePoint;

// TRIBUTARY_PATH=in-network wants every rank at the tree itself.
std::optional<Endpoint> Communicator::open_host_level() {
  if (settings_.path == PathMode::in_network || !settings_.local) return std::nullopt;
  host_tokens_[0] = host_token();
  auto map = hosts::find_hosts(host_tokens_, directory_.host_ids());
  if (!map.worth_while()) return std::nullopt;
  make_host_level(std::move(map));
  auto place = host_level_->open();
  if (place) return *place;
  tell_no_local(place.error());
  host_level_.reset();
  return std::nullopt;
}

void Communicator::make_host_level(hosts::HostMap map) {
  host_level_ = std::make_unique<HostLevel>(HostLevel::Parts{
      .transport = transport_,
      .service = service_,
      .settings = settings_,
      .map = std::move(map),
      .done = [this](Operation& operation) { finish(operation, {}); },
      .path_changed = settings_.rank == 0 ? std::function<void()>([this] { tell_path_between(); }) : nullptr,
      .second_way = on_second_way});
}

void Communicator::meet_by_hosts(const Endpoint& place) {
  host_level_->start(place, [this](const Status& status) { on_met_by_hosts(status); });
}

// It may be the host level that calls: it stays until the next tick.
void Communicator::on_met_by_hosts(const Status& status) {
  look_at_clock(transport_.now());
  if (error_ || failing_) return;
  if (settings_.rank == 0) {
    if (coordinator_) return;
    if (!status) return do_without_hosts(status.error().message);
    return start_coordinator();
  }
  if (!status) {
    local_error_ = status.error();
    tell_rank_0({.type = FrameType::joined, .body = encode(LaneFailure{"", status.error().message})});
  }
  if (waiting_commit_) on_commit(*std::exchange(waiting_commit_, std::nullopt));
}

void Communicator::do_without_hosts(const std::string& why) {
  tell_no_local({Errc::io, why});
  discarded_host_levels_.push_back(std::move(host_level_));
  start_coordinator();
}

/// Before there is a coordinator to hear it.
void Communicator::on_hosts_failed(std::uint32_t from, const ControlMessage& message) {
  if (!host_level_ || message.type != FrameType::joined || message.body.empty()) return;
  do_without_hosts("rank " + std::to_string(from) + directory_.on_host(from) + ": " +
                   decode_lane_failure(message.body).reason);
}

// A leader that did hear nothing of the others' success has no part in it, and no rank of its host.
bool Communicator::agrees_on_hosts(const ControlMessage& commit) {
  if (commit.value != kCommitHosts) {
    if (host_level_) discarded_host_levels_.push_back(std::move(host_level_));
    return true;
  }
  if (host_level_ && !local_error_) return true;
  const std::string why = local_error_ ? local_error_->message : "it was not asked to";
  const Error error{Errc::io, "rank " + std::to_string(settings_.rank) + " has no part in what the ranks of host " +
                                  settings_.host_id + " do together: " + why + "; TRIBUTARY_LOCAL=off does without"};
  tell_rank_0({.type = FrameType::abort, .value = static_cast<std::uint64_t>(error.code), .body = error.message});
  begin_failing(error);
  return false;
}

/// Rank 0: what the leaders' communicator does has changed.
void Communicator::tell_path_between() {
  if (!ready_ || error_ || !host_level_) return;
  broadcast({.type = FrameType::commit, .operation = kNever, .value = kCommitHosts, .body = path_between()});
}

std::string Communicator::path_between() const {
  return encode_between(host_level_->between()->info());
}

void Communicator::report_hosts_path(const std::string& body) {
  decode_between(body, info_);
  info_.hosts = host_level_->map().hosts();
  if (!on_path_change) return;
  std::string line = "tributary: rank " + std::to_string(settings_.rank) + " of " + std::to_string(settings_.nranks) +
                     ": each of " + std::to_string(info_.hosts) + " hosts reduces in shared memory; between them ";
  if (info_.in_network) {
    line += "in-network reduction in use: epoch " + std::to_string(info_.epoch) + ", " + std::to_string(info_.lanes) +
            " lane(s), tree depth " + std::to_string(info_.levels) + ", window " + std::to_string(info_.window) +
            " x " + std::to_string(info_.segment_bytes) + " bytes";
  } else {
    line += "in-network reduction not in use: " + info_.reason;
  }
  on_path_change(line);
}

bool Communicator::goes_by_hosts(const Operation& o) const {
  return host_level_ != nullptr && hosts::Cut::can(o.signature.collective);
}

transport::Duration Communicator::attend(TimePoint now, transport::Duration limit) {
  if (!host_level_ || !ready_ || error_) return limit;
  look_at_clock(now);
  const bool quiet = messages_idle() && !on_finalized_ && !failing_;
  const auto until = host_level_->attend(now, limit, quiet);
  progress_at_ = std::max(progress_at_, host_level_->progress_at());
  return until;
}

// Ranks that disagree are found by what they call at the same time: pieces, of whose calls only all ranks together can
// tell. A rank that is gone is missed by rank 0, too, which has the better words for it.
void Communicator::check_hosts() {
  discarded_host_levels_.clear();
  if (!host_level_) return;
  host_level_->tick(now_);
  if (!ready_ && settings_.rank == 0 && !coordinator_ && host_level_->late(now_))
    return do_without_hosts("the leaders of the hosts did not meet in time");
  if (!ready_ || error_ || failing_) return;
  const auto error = host_level_->error();
  if (!error) return;
  const bool disagree = error->code == Errc::mismatch || error->code == Errc::timed_out;
  if (hosts_failed_at_ == TimePoint{}) {
    hosts_failed_at_ = now_;
    if (disagree) {
      tell_rank_0({.type = FrameType::stalled,
                   .operation = host_level_->disputed().value_or(first_number_),
                   .value = kDisagreement,
                   .body = error->message});
    }
  }
  const bool spread = error->code == Errc::peer_gone || error->code == Errc::aborted;
  const auto grace = disagree ? settings_.timeout * 2 / 5
                     : spread ? settings_.drain_grace
                              : transport::Duration::zero();
  if (!waited(hosts_failed_at_, grace)) return;
  tell_rank_0({.type = FrameType::abort, .value = static_cast<std::uint64_t>(error->code), .body = error->message});
  begin_failing(*error);
}

}  // namespace tributary::client
