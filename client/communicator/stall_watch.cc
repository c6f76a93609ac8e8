#include "client/communicator/stall_watch.h"

#include <algorithm>

#include "client/control/time_out.h"
#include "client/recovery/late_inquiry.h"

namespace tributary::client {

using transport::Duration;
using transport::TimePoint;

void StallWatch::on_mismatch(std::uint32_t peer, const PostedReceive& expected, const FrameHeader& arrived) {
  if (arrived.operation == expected.operation && arrived.signature() != expected.signature) {
    report_mismatch(expected.operation, expected.signature, peer, arrived.signature());
  } else if (arrived.operation < expected.operation) {
    check_unwanted_frames();
  } else {
    // The peer is past this operation, and has not sent the data for which this rank waits: rank 0's inquiry will show
    // which operation the peer called instead.
    shared_.whole.tell_rank_0(
        {.type = FrameType::stalled,
         .operation = expected.operation,
         .body = "rank " + std::to_string(peer) + " went on to operation " + std::to_string(arrived.operation)});
  }
}

void StallWatch::report_mismatch(std::uint64_t number, const Signature& mine, std::uint32_t peer,
                                 const Signature& theirs) {
  const MismatchReport report{number, shared_.rank(), peer, mine, theirs};
  shared_.whole.tell_rank_0({.type = FrameType::abort,
                             .operation = number,
                             .value = static_cast<std::uint64_t>(Errc::mismatch),
                             .body = to_string(report)});
}

// Looks for frames of operations that have ended on this rank without these frames. For example, two ranks call a
// broadcast as its root: both send, and both end once their data are on their way. No receive waits for such a frame,
// so only this check finds it.
void StallWatch::check_unwanted_frames() {
  if (mesh_ == nullptr) return;
  const auto look = [this](std::uint32_t peer, const FrameHeader& header) {
    const std::uint64_t number = header.operation;
    const Signature* const mine = parts_.operations.recent(number);
    if (mine == nullptr || number >= parts_.operations.next_to_start()) return;
    const Operation* o = parts_.operations.find(number);
    if (o != nullptr && o->state != Operation::State::done) return;
    report_mismatch(number, *mine, peer, header.signature());
  };
  for (const PeerClass peer_class : {PeerClass::collective, PeerClass::share}) mesh_->visit_held_back(peer_class, look);
}

/// Tells what this rank sees of another one, if it sees its process.
void StallWatch::tell_sighting(std::uint64_t operation, std::uint64_t rank) {
  const auto& neighbours = shared_.settings.neighbours;
  if (!neighbours || rank >= shared_.settings.nranks) return;
  const Progress progress{.sighting = neighbours->sight(static_cast<std::uint32_t>(rank), shared_.clock.now())};
  if (!progress.sighting) return;
  shared_.whole.tell_rank_0({.type = FrameType::progress, .operation = operation, .body = encode(progress)});
}

void StallWatch::on_inquiry(const ControlMessage& message) {
  if (message.value > 0) return tell_sighting(message.operation, message.value - 1);
  const OperationQueue& operations = parts_.operations;
  const TimePoint now = shared_.clock.now();
  Progress p;
  p.called = message.operation < operations.next_number();
  const Operation* const o = operations.find(message.operation);
  if (!operations.empty()) operations.all().front()->asked_at = now;
  leaving_since_ = now;  // rank 0 lives, and finds out which ranks are missing
  p.ended = p.called && o == nullptr;
  if (const Signature* const recent = operations.recent(message.operation)) {
    p.signature_known = true;
    p.signature = *recent;
  }
  if (o != nullptr) {
    const TimePoint since = std::max(o->called_at, operations.progress_at(*o));
    p.waits_for_tree = o->in_trees() && shared_.clock.waited(since, suspect_after() / 2);
    p.steps = parts_.text.steps(*o);
  }
  // Rank 0 waits for an answer for a fifth of the time-out, so it gives up no rank for a shorter absence.
  if (const Duration absence = away(); absence >= timeout() * 3 / 20)
    p.stood_still_ms = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(absence).count());
  if (const auto& troubles = shared_.settings.troubles) p.troubles = troubles->until(now);
  if (!operations.empty()) {  // operations that have ended leave the queue at the front
    p.oldest = operations.first_number();
    p.waits_for = parts_.text.waits_for(*operations.all().front());
  }
  shared_.whole.tell_rank_0({.type = FrameType::progress, .operation = message.operation, .body = encode(p)});
}

Duration StallWatch::suspect_after() const {
  if (shared_.settings.suspect_after > Duration::zero()) return shared_.settings.suspect_after;
  return std::min<Duration>(timeout() / 10, std::chrono::seconds(5));
}

Duration StallWatch::away() const {
  return shared_.clock.away_within(timeout() * 21 / 20);  // a tick may come late
}

std::string StallWatch::stood_still() const {
  const Duration absence = away();
  if (absence < timeout() / 20) return "";
  return "rank " + std::to_string(shared_.known_as()) + " stood still for " + in_seconds(absence) +
         ", and found when it went on: ";
}

/// True if rank 0 has not asked this rank for too long. Rank 0 asks all ranks soon after each suspicion, unless an
/// inquiry is under way. An inquiry takes at most 0.2 of the time-out.
bool StallWatch::rank_0_hangs(const Operation& o) const noexcept {
  return shared_.clock.waited(o.asked_at, timeout() * 7 / 20);
}

void StallWatch::rank_0_is_silent(const std::string& about) {
  shared_.whole.begin_failing(
      {Errc::timed_out, timed_out_after(timeout()) + "rank 0" + parts_.directory.on_host(0) + ": no answer" + about});
}

void StallWatch::tick() {
  if (shared_.settings.troubles) shared_.settings.troubles->look(shared_.clock.now());
  check_operations();
  check_end();
  check_messages();
  check_unwanted_frames();
}

void StallWatch::check_operations() {
  Operation* const o = parts_.operations.first_unfinished();
  if (o == nullptr) return;
  const Clock& clock = shared_.clock;
  const TimePoint since = std::max(o->called_at, parts_.operations.progress_at(*o));
  const Duration patience = timeout() * 7 / 10;
  const auto tell = [&](std::uint64_t how) {
    shared_.whole.tell_rank_0(
        {.type = FrameType::stalled, .operation = o->number, .value = how, .body = parts_.text.waits_for(*o)});
  };
  if (clock.waited(since, rank_0_hangs(*o) ? timeout() : timeout() * 5 / 4))
    return rank_0_is_silent("; missing in " + parts_.text.waits_for(*o));
  tell_that_one_is_late(*o);
  const bool by_tree = o->in_trees();
  if (clock.waited(std::max(since, o->suspected_at), by_tree ? std::min(suspect_after(), patience) : patience)) {
    o->suspected_at = clock.now();
    tell(kSuspicion);
  }
  if (clock.waited(since, timeout()) && clock.waited(o->overdue_at, timeout() / 5)) {
    o->overdue_at = clock.now();
    tell(0);
  }
}

Duration StallWatch::still_for(const Operation& o) const {
  const TimePoint since = std::max(o.called_at, parts_.operations.progress_at(o));
  return shared_.clock.waited(since, LateInquiry::kAskAfter) ? shared_.clock.now() - since : Duration::zero();
}

/// Tells rank 0, from rank 1 alone, that an operation between the ranks stands still. Rank 0 notices this by itself if
/// it has called the operation; this message is for the case that rank 0 is late. An older rank 0 ignores it.
void StallWatch::tell_that_one_is_late(const Operation& o) {
  if (shared_.rank() != 1 || o.in_trees() || still_for(o) < LateInquiry::kAfter) return;
  if (!shared_.clock.waited(told_late_at_, LateInquiry::kAfter)) return;
  told_late_at_ = shared_.clock.now();
  const Progress progress{.called = true,
                          .unasked = true,
                          .oldest = parts_.operations.first_number(),
                          .steps = parts_.text.steps(o),
                          .waits_for = parts_.text.waits_for(o)};
  shared_.whole.tell_rank_0({.type = FrameType::progress, .operation = o.number, .body = encode(progress)});
}

/// Gives up a little later than rank 0 does: rank 0 can name the ranks that have not called finalize.
void StallWatch::check_end() {
  if (shared_.life.state() != Life::State::leaving || !shared_.clock.waited(leaving_since_, timeout() * 21 / 20))
    return;
  rank_0_is_silent(" to finalize");
}

/// Reports a message that takes too long, a little later than a collective: a collective may delay the message, and
/// rank 0 knows better which rank delays the collective.
void StallWatch::check_messages() {
  if (!shared_.life.well()) return;
  const Duration patience = timeout() * 21 / 20;
  if (!shared_.clock.waited(messages_progress_at_, patience)) return;
  const std::string message = parts_.messages.overdue(std::max(shared_.clock.ago(patience), TimePoint{}));
  if (message.empty()) return;
  shared_.whole.tell_rank_0(
      Shared::abort_message({Errc::timed_out, timed_out_after(timeout()) + "rank " + std::to_string(shared_.rank()) +
                                                  ": no partner for " + message + parts_.text.troubles()}));
}

}  // namespace tributary::client
