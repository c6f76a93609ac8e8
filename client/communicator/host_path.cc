#include "client/communicator/host_path.h"

#include <algorithm>

#include "client/collectives/hosts/cut.h"
#include "client/communicator/communicator.h"
#include "client/communicator/local_path.h"
#include "client/communicator/path_report.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

using transport::TimePoint;

// Makes no level if TRIBUTARY_PATH=in-network: this setting asks that every rank is itself a child of the tree.
std::optional<Endpoint> HostPath::open(const std::vector<std::string>& host_tokens) {
  if (shared_.settings.path == PathMode::in_network || !shared_.settings.local) return std::nullopt;
  auto map = hosts::find_hosts(host_tokens, parts_.directory.host_ids());
  if (!map.worth_while()) return std::nullopt;
  make(std::move(map));
  auto place = level_->open();
  if (place) return *place;
  tell_no_local(shared_, place.error().message);
  level_.reset();
  return std::nullopt;
}

void HostPath::make(hosts::HostMap map) {
  level_ = std::make_unique<HostLevel>(HostLevel::Parts{
      .transport = shared_.transport,
      .service = parts_.service,
      .settings = shared_.settings,
      .map = std::move(map),
      .done = parts_.done,
      .path_changed = shared_.rank() == 0 ? parts_.path_changed : nullptr,
      .second_way = parts_.second_way,
      .late = parts_.late,
      .came = [this](const Operation& operation) { shared_.part_came(operation.number, shared_.clock.now()); }});
}

void HostPath::meet(const Endpoint& place) {
  level_->start(place, [this](const Status& status) { on_met(status); });
}

// Keeps the host level until the next tick, because the level itself may be the caller.
void HostPath::on_met(const Status& status) {
  shared_.whole.look_at_clock();
  if (!shared_.life.well() || !level_) return;
  if (shared_.rank() == 0) {
    if (!status) do_without(status.error().message);
  } else if (!status) {
    why_not_ = status.error();
    shared_.whole.tell_rank_0({.type = FrameType::joined, .body = encode(LaneFailure{"", status.error().message})});
  }
  parts_.met();
}

void HostPath::do_without(const std::string& why) {
  tell_no_local(shared_, why);
  discarded_.push_back(std::move(level_));
}

bool HostPath::on_failure_told(std::uint32_t from, const ControlMessage& message) {
  if (!level_ || message.type != FrameType::joined || message.body.empty()) return false;
  do_without("rank " + std::to_string(from) + parts_.directory.on_host(from) + ": " +
             decode_lane_failure(message.body).reason);
  return true;
}

bool HostPath::gave_up_in_time() {
  if (!level_ || !level_->late(shared_.clock.now())) return false;
  do_without("the leaders of the hosts did not meet in time");
  return true;
}

// Agrees only if this rank's meeting has succeeded. If a leader has not met the leaders, no rank of its host agrees.
bool HostPath::agree(const ControlMessage& commit) {
  if (commit.value != kCommitHosts) {
    if (level_) discarded_.push_back(std::move(level_));
    return true;
  }
  if (level_ && !why_not_) return true;
  const std::string why = why_not_ ? why_not_->message : "rank 0 did not ask it to share memory";
  const Error error{Errc::io, "rank " + std::to_string(shared_.rank()) + " has no part in what the ranks of host " +
                                  shared_.settings.host_id + " do together: " + why +
                                  "; set TRIBUTARY_LOCAL=off to work without shared memory"};
  shared_.whole.tell_rank_0(Shared::abort_message(error));
  shared_.whole.begin_failing(error);
  return false;
}

void HostPath::tick(std::uint64_t oldest_operation) {
  discarded_.clear();
  if (!level_) return;
  level_->tick(shared_.clock.now());
  if (!shared_.life.has_begun() || !shared_.life.well()) return;
  if (const auto error = level_->error()) on_error(*error, oldest_operation);
}

// Leaves the decision to rank 0. If ranks disagree, rank 0 compares the calls of all ranks, because the leaders see
// only pieces of the calls. If a rank is gone, rank 0 notices this, too, and has a better error text.
void HostPath::on_error(const Error& error, std::uint64_t oldest_operation) {
  const bool disagree = error.code == Errc::mismatch || error.code == Errc::timed_out;
  if (failed_at_ == TimePoint{}) {
    failed_at_ = shared_.clock.now();
    if (disagree) {
      shared_.whole.tell_rank_0({.type = FrameType::stalled,
                                 .operation = level_->disputed().value_or(oldest_operation),
                                 .value = kDisagreement,
                                 .body = error.message});
    }
  }
  const bool spread = error.code == Errc::peer_gone || error.code == Errc::aborted;
  const auto grace = disagree ? shared_.settings.timeout * 2 / 5
                     : spread ? shared_.settings.drain_grace
                              : transport::Duration::zero();
  if (!shared_.clock.waited(failed_at_, grace)) return;
  shared_.whole.tell_rank_0(Shared::abort_message(error));
  shared_.whole.begin_failing(error);
}

transport::Duration HostPath::attend(transport::Duration limit, bool quiet) {
  return level_->attend(shared_.clock.now(), limit, quiet);
}

void HostPath::excuse(transport::Duration absence) noexcept {
  if (level_) level_->excuse(absence);
}

bool HostPath::takes(const Operation& o) const noexcept {
  // A host could only send a part of an ordered product.
  return level_ != nullptr && hosts::Cut::can(o.signature.collective) && o.signature.op != kOrderedProduct;
}

void HostPath::report(const std::string& body) {
  CommunicatorInfo& info = shared_.info;
  const std::string before = info.reason;
  decode_between(body, info);
  if (info.reason != before) count_reason(shared_, info.reason);
  info.hosts = level_->map().hosts();
  std::string line =
      shared_.log_prefix() + "each of " + std::to_string(info.hosts) + " hosts reduces in shared memory; between them ";
  if (info.in_network) {
    line += (info.reason == "in use" ? "in-network reduction in use: " : "trees are ready: ") + trees_text(info);
  } else {
    line += "in-network reduction not in use: " + info.reason;
  }
  shared_.whole.path_changed(line, info.lacks_tree && !std::exchange(shared_.lack_warned, true));
}

void HostPath::account(CommunicatorInfo& info) const {
  if (!level_) return;
  info.direct = level_->direct_pieces();
  info.attach_refusal = level_->attach_refusal();
  const local::BytesBetweenHosts bytes = level_->bytes_between_hosts();
  info.bytes_in_network += bytes.in_network;
  info.bytes_fallback += bytes.between_ranks;
  if (level_->between() == nullptr) return;
  const CommunicatorInfo between = level_->between()->info();
  info.lanes_shared = between.lanes_shared;
  info.links += between.links;
  info.links_shared += between.links_shared;
}

}  // namespace tributary::client
