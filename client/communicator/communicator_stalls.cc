// Who waits for whom for too long, and who called something else than the others.
#include <algorithm>

#include "client/communicator/communicator.h"
#include "client/communicator/host_level.h"
#include "client/control/control_link.h"
#include "client/control/time_out.h"

namespace tributary::client {

using transport::TimePoint;

void Communicator::peer_mismatch(std::uint32_t peer, PeerClass, const PostedReceive& expected,
                                 const FrameHeader& arrived) {
  if (arrived.operation == expected.operation && arrived.signature() != expected.signature) {
    report_mismatch(expected.operation, expected.signature, peer, arrived.signature());
  } else if (arrived.operation < expected.operation) {
    check_unwanted_frames();
  } else {
    // The peer is past this operation without what we wait for: the inquiry will show what it called instead.
    tell_rank_0(
        {.type = FrameType::stalled,
         .operation = expected.operation,
         .body = "rank " + std::to_string(peer) + " went on to operation " + std::to_string(arrived.operation)});
  }
}

void Communicator::report_mismatch(std::uint64_t number, const Signature& mine, std::uint32_t peer,
                                   const Signature& theirs) {
  const MismatchReport report{number, settings_.rank, peer, mine, theirs};
  tell_rank_0({.type = FrameType::abort,
               .operation = number,
               .value = static_cast<std::uint64_t>(Errc::mismatch),
               .body = to_string(report)});
}

// A frame of an operation that has ended here was not wanted for it: with two roots, for example, both send, and are
// done when their data is on its way. Nobody waits for such a frame, so it has to be looked for.
void Communicator::check_unwanted_frames() {
  if (!mesh_) return;
  mesh_->visit_held_back(PeerClass::collective, [this](std::uint32_t peer, const FrameHeader& header) {
    const std::uint64_t number = header.operation;
    if (number >= next_to_start_ || next_number_ - number > recent_.size()) return;
    const Operation* o = operation(number);
    if (o != nullptr && o->state != Operation::State::done) return;
    report_mismatch(number, recent_[number % recent_.size()], peer, header.signature());
  });
}

namespace {

std::string troubles_in_brackets(const PeerMesh& mesh) {
  const std::string troubles = mesh.troubles();
  return troubles.empty() ? "" : " (" + troubles + ")";
}

}  // namespace

std::string Communicator::waits_for(const Operation& o) const {
  const std::string name = to_string(o);
  if (o.state == Operation::State::in_network) {
    std::uint64_t segment = o.segments;
    std::size_t lane_of = 0;
    for (std::size_t lane = 0; trees_ && lane < trees_->lanes.size(); ++lane) {
      const std::uint64_t first = trees_->lanes[lane]->first_unfinished(o, trees_->lanes[lane]->prefix());
      if (first < segment) {
        segment = first;
        lane_of = lane;
      }
    }
    return name + ", segment " + std::to_string(segment) + " (lane " + std::to_string(lane_of) + ")";
  }
  if (o.state == Operation::State::queued) return name + ", segment 0 (not begun)";
  if (o.state == Operation::State::by_hosts) return name + ", " + host_level_->waits_for();
  std::string text = name + ", segment " + std::to_string(runner_->round()) + " of the fallback";
  const auto ranks = runner_->waits_for();
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i == 0 ? ", which needs rank " : ", ") + std::to_string(ranks[i]);
  return text + troubles_in_brackets(*mesh_);
}

void Communicator::on_inquiry(const ControlMessage& message) {
  Progress p;
  p.called = message.operation < next_number_;
  Operation* o = operation(message.operation);
  if (!operations_.empty()) operations_.front()->asked_at = now_;
  if (finalize_sent_) finalize_sent_at_ = now_;  // rank 0 lives, and finds out who is missing
  p.ended = p.called && o == nullptr;
  p.signature_known = p.called && next_number_ - message.operation <= recent_.size();
  if (p.signature_known) p.signature = recent_[message.operation % recent_.size()];
  if (o != nullptr) {
    p.waits_for_tree =
        o->state == Operation::State::in_network && waited(std::max(o->called_at, progress_at_), suspect_after() / 2);
    p.steps = o->state == Operation::State::in_network ? o->segments_done
              : o->state == Operation::State::by_hosts ? host_level_->steps()
                                                       : runner_->round();
  }
  if (!operations_.empty()) {  // those that have ended leave from the front
    p.oldest = first_number_;
    p.waits_for = waits_for(*operations_.front());
  }
  tell_rank_0({.type = FrameType::progress, .operation = message.operation, .body = encode(p)});
}

transport::Duration Communicator::suspect_after() const {
  if (settings_.suspect_after > transport::Duration::zero()) return settings_.suspect_after;
  return std::min<transport::Duration>(settings_.timeout / 10, std::chrono::seconds(5));
}

bool Communicator::waited(TimePoint since, transport::Duration time) const noexcept {
  return since <= absences_.ago(time, now_);
}

// Every way in begins here: nothing is judged to be late before what this process was away for is excused.
void Communicator::look_at_clock(TimePoint now) {
  now_ = now;
  if (const auto absence = absences_.look(now); absence > transport::Duration::zero()) excuse(absence);
}

/// The others have waited no longer for this rank than it waits for them: where it was away within that time, it says
/// so first.
std::string Communicator::stood_still() const {
  const transport::Duration time = settings_.timeout * 21 / 20;  // and what a tick comes late
  const auto absence = now_ - absences_.ago(time, now_) - time;
  if (absence < settings_.timeout / 20) return "";
  return "rank " + std::to_string(known_as(settings_.rank)) + " stood still for " + in_seconds(absence) +
         ", and found when it went on: ";
}

// What was due while this process was away could not come.
void Communicator::excuse(transport::Duration absence) {
  for (TimePoint* limit : {&ready_deadline_, &fail_at_, &report_lost_at_}) {
    if (*limit != TimePoint::max()) *limit += absence;
  }
  arrivals_.excuse(absence);
  if (coordinator_) coordinator_->excuse(absence, now_);
  if (mesh_) mesh_->excuse(absence);
  if (host_level_) host_level_->excuse(absence);
}

/// Rank 0 asks soon after each suspicion that it is told of, unless an inquiry is under way: for 0.2 of the time-out at
/// most.
bool Communicator::rank_0_hangs(const Operation& o) const noexcept {
  return waited(o.asked_at, settings_.timeout * 7 / 20);
}

// Sums of the limits: a suspicion at 0.7 of the time-out at the latest, so that rank 0 knows who answers; in earnest at
// 1, when those who answer do so at once. On our own, if rank 0 is the one that hangs, at 1, or at 1.25 if it began to
// hang after it was told of the suspicion.
void Communicator::check_stall() {
  const auto first = std::find_if(operations_.begin(), operations_.end(),
                                  [](const auto& o) { return o->state != Operation::State::done; });
  if (first != operations_.end()) {
    Operation& o = **first;
    const TimePoint since = std::max(o.called_at, progress_at_);
    const transport::Duration patience = settings_.timeout * 7 / 10;
    if (waited(since, rank_0_hangs(o) ? settings_.timeout : settings_.timeout * 5 / 4)) {
      return begin_failing({Errc::timed_out, timed_out_after(settings_.timeout) + "rank 0" + directory_.on_host(0) +
                                                 ": no answer; missing in " + waits_for(o)});
    }
    if (waited(std::max(since, o.suspected_at),
               o.state == Operation::State::in_network ? std::min(suspect_after(), patience) : patience)) {
      o.suspected_at = now_;
      tell_rank_0({.type = FrameType::stalled, .operation = o.number, .value = kSuspicion, .body = waits_for(o)});
    }
    if (waited(since, settings_.timeout) && waited(o.overdue_at, settings_.timeout / 5)) {
      o.overdue_at = now_;
      tell_rank_0({.type = FrameType::stalled, .operation = o.number, .body = waits_for(o)});
    }
  }
  // Rank 0 names those that do not come, a little earlier.
  if (finalize_sent_ && !finalized_ && waited(finalize_sent_at_, settings_.timeout * 21 / 20)) {
    return begin_failing({Errc::timed_out, timed_out_after(settings_.timeout) + "rank 0" + directory_.on_host(0) +
                                               ": no answer to finalize"});
  }
  // A little later than collectives: of those rank 0 knows better which rank everybody waits for.
  const transport::Duration patience = settings_.timeout * 21 / 20;
  if (!waited(messages_progress_at_, patience)) return;
  if (const std::string message = messages_.overdue(std::max(absences_.ago(patience, now_), TimePoint{}));
      !message.empty()) {
    tell_rank_0({.type = FrameType::abort,
                 .value = static_cast<std::uint64_t>(Errc::timed_out),
                 .body = timed_out_after(settings_.timeout) + "rank " + std::to_string(settings_.rank) +
                         ": no partner for " + message + troubles_in_brackets(*mesh_)});
  }
}

}  // namespace tributary::client
