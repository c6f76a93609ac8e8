#include "client/recovery/coordinator.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/control/time_out.h"
#include "client/recovery/places.h"
#include "client/recovery/repair_plan.h"
#include "client/tuning/policy.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"

namespace tributary::client {

using transport::TimePoint;

namespace {

constexpr std::chrono::seconds kLateQuestions{1};

/// Returns the reason for which a request to the manager failed, if its sentence has no code.
Reason reason_of_failure(Errc code) {
  switch (code) {
    case Errc::unreachable:
      return Reason::manager_unreachable;
    case Errc::timed_out:
      return Reason::manager_timed_out;
    case Errc::denied:
      return Reason::not_allowed;
    case Errc::retry:
      return Reason::manager_busy;
    case Errc::bad_argument:
      return Reason::group_forgotten;
    default:
      return Reason::manager_failed;
  }
}

std::string rank_name(const CoordinatorSettings& settings, std::uint32_t rank) {
  TRIBUTARY_ASSERT(rank < settings.hosts.size() && rank < settings.nranks, "rank {} of {} on {} hosts", rank,
                   settings.nranks, settings.hosts.size());
  const std::uint32_t name = settings.known_as.empty() ? rank : settings.known_as[rank];
  return "rank " + std::to_string(name) + " on host " + settings.hosts[rank];
}

/// Returns a text about the rank that stood still longest within the time-out; empty if none did. All ranks have
/// answered. Such a rank answers when it goes on, and may then be ahead of the ranks that waited for it.
std::string who_stood_still(const CoordinatorSettings& settings, std::span<const std::optional<Progress>> answers) {
  const auto longest = std::max_element(answers.begin(), answers.end(), [](const auto& a, const auto& b) {
    return a->stood_still_ms < b->stood_still_ms;
  });
  if ((*longest)->stood_still_ms == 0) return "";
  return rank_name(settings, static_cast<std::uint32_t>(longest - answers.begin())) + " stood still for " +
         in_seconds(std::chrono::milliseconds((*longest)->stood_still_ms)) + "; ";
}

/// Returns the name of a late rank. An aggregator cannot see for which rank of its host a leader waits.
std::string late_name(const CoordinatorSettings& settings, std::uint32_t rank) {
  if (settings.known_as.empty()) return rank_name(settings, rank);
  return "rank " + std::to_string(settings.known_as[rank]) + " or another rank of host " + settings.hosts[rank];
}

/// Returns whether the answer has rates for the trees of this epoch, and these rates differ much from `last`.
bool tells_other_rates(const GroupLease& lease, std::uint32_t epoch, const PathRates& last) {
  return lease.epoch == epoch && lease.rates != PathRates{} && tuning::differ(last, lease.rates);
}

/// `settings` must outlive the group.
LateLog::Group group_of_late(const CoordinatorSettings& settings) {
  return {.members = settings.nranks,
          .ranks = std::max(settings.processes, settings.nranks),
          .name_of = [&settings](std::uint32_t rank) { return late_name(settings, rank); }};
}

/// Returns the operation if it stands still and no tree carries it.
std::optional<LateInquiry::Wait> still_between_ranks(const std::optional<CoordinatorSettings::Waiting>& waiting) {
  if (!waiting || waiting->by_trees || waiting->wait.time < LateInquiry::kAskAfter) return std::nullopt;
  return waiting->wait;
}

/// Asks other ranks of their hosts about the ranks that do not answer.
void ask_witnesses(LateInquiry& inquiry, const CoordinatorSettings& settings, CoordinatorOutput& output,
                   TimePoint now) {
  if (!settings.witnesses) return;
  for (const std::uint32_t about : inquiry.unheard(now)) {
    for (const std::uint32_t witness : settings.witnesses(about))
      output.send(witness,
                  {.type = FrameType::inquiry, .operation = inquiry.operation(), .value = std::uint64_t{about} + 1});
  }
}

}  // namespace

Coordinator::Coordinator(CoordinatorOutput& output, GroupService* service, CoordinatorSettings settings)
    : output_(output),
      service_(service),
      settings_(std::move(settings)),
      renewals_{.late = LateLog(group_of_late(settings_), settings_.tell_late)},
      late_inquiry_(group_of_late(settings_), settings_.tell_late),
      retry_delay_(settings_.retry_first),
      move_pause_(settings_.move_pause_first),
      own_absence_(settings_.timeout, settings_.away),
      answers_(settings_.nranks),
      holdings_(settings_.nranks),
      finalized_(settings_.nranks),
      inquiry_{.progress = std::vector<std::optional<Progress>>(settings_.nranks)},
      silent_(settings_.nranks),
      alive_(std::make_shared<bool>(true)) {}

Coordinator::~Coordinator() {
  *alive_ = false;
}

void Coordinator::start(TimePoint now) {
  now_ = now;
  if (!settings_.use_trees || service_ == nullptr) return rest(settings_.why_not);
  if (settings_.begin_within != transport::Duration::max()) begin_at_ = now + settings_.begin_within;
  ask(now);
}

void Coordinator::ask(TimePoint now) {
  TRIBUTARY_ASSERT(service_ != nullptr && state_ != State::stopped && state_ != State::in_network,
                   "the manager is asked for trees in state {}", state_);
  state_ = State::asking;
  deadline_ = now + settings_.answer_limit;
  retry_at_ = TimePoint::max();
  auto answer = [this, alive = alive_](Result<GroupDescriptor> descriptor) {
    if (*alive) on_descriptor(std::move(descriptor));
  };
  if (group_ != 0) {
    lost_.ask();
    service_->rebuild(group_, epoch_, lost_.untold(), false, std::move(answer));
  } else {
    lost_.ask_without();
    service_->request({.job = settings_.job,
                       .user = settings_.user,
                       .processes = settings_.processes,
                       .hosts = settings_.hosts,
                       .lanes = settings_.lanes,
                       .priority = settings_.priority,
                       .form_senders = settings_.form_senders,
                       .link_rate = settings_.link_rate,
                       .rail = settings_.rail,
                       .packet_security = settings_.packet_security,
                       .exchange_key = settings_.exchange_key,
                       .attempt = attempt_},
                      std::move(answer));
  }
}

// Stays on the fallback until the next request for trees. The first call also lets the ranks begin.
void Coordinator::rest(const std::string& reason) {
  state_ = State::resting;
  deadline_ = TimePoint::max();
  search_.why_not = reason;
  if (settings_.use_trees && !search_.hopeless) {
    retry_at_ = now_ + retry_delay_;
    retry_delay_ = std::min(2 * retry_delay_, settings_.retry_last);
  }
  begin_without(generation_, reason);
}

/// Lets the ranks begin, if they have not begun, and gives up trees of this generation. Ranks that require trees go on
/// waiting as long as trees may still come.
void Coordinator::begin_without(std::uint32_t generation, const std::string& reason) {
  if (settings_.require_trees && settings_.use_trees && !search_.hopeless) return;
  if (!std::exchange(initial_, false)) return;
  own_absence_.begin(now_);
  output_.broadcast({.type = FrameType::commit,
                     .epoch = generation,
                     .operation = kNever,
                     .value = settings_.first_commit,
                     .body = reason});
}

void Coordinator::on_descriptor(Result<GroupDescriptor> answer) {
  if (state_ != State::asking) return;
  if (!answer) {
    if (answer.error().code == Errc::bad_argument) {  // the manager has forgotten the group: ask for a new one
      group_ = 0;
      ++attempt_;
    }
    // If the ranks require trees and the manager denies them, they need not wait: no later answer will differ.
    if (answer.error().code == Errc::denied && settings_.require_trees && initial_) search_.hopeless = true;
    return rest(coded(reason_of_failure(answer.error().code), answer.error().message));
  }
  lost_.answered();
  ++attempt_;
  take(*answer);
  // These trees may contain an aggregator that was lost meanwhile.
  if (lost_.any_untold() && group_ != 0) return ask(now_);
  if (answer->empty())
    return rest(
        coded(Reason::no_tree, answer->reason.empty() ? "the manager has no tree for this group" : answer->reason));
  join(*answer);
}

/// Takes over the group's facts from the manager's answer.
void Coordinator::take(const GroupDescriptor& descriptor) {
  if (descriptor.group != 0) group_ = descriptor.group;
  epoch_ = descriptor.epoch;
  lease_seconds_ = descriptor.lease_seconds;
  if (lease_seconds_ > 0) renewals_.next = now_ + std::chrono::milliseconds(lease_seconds_ * 1000 / 3);
}

void Coordinator::join(const GroupDescriptor& descriptor) {
  const bool by_pages = comes_by_pages(descriptor);
  if (!by_pages && descriptor.lanes[0].entries.size() != settings_.nranks)
    return rest(coded(Reason::manager_failed, "the manager answered for another number of ranks"));
  TRIBUTARY_ASSERT(generation_ < UINT32_MAX, "generation {} of trees is the last", generation_);
  ++generation_;
  lost_.forget_told();
  terms_ = {.tuning = settings_.tuning_of ? settings_.tuning_of(descriptor) : std::string(), .rates = descriptor.rates};
  state_ = State::joining;
  deadline_ = now_ + settings_.join_limit;
  answers_.begin();
  if (!by_pages) {
    for (std::uint32_t rank = 0; rank < settings_.nranks; ++rank) give_place(rank, descriptor.for_rank(rank));
    return;
  }
  // Each page starts the limit again: a rank joins when it has its place, and then waits for ranks whose page has not
  // come.
  fetch_places(
      *service_, std::make_shared<const GroupDescriptor>(descriptor), settings_.nranks,
      {.wanted = [this, alive = alive_,
                  generation = generation_] { return *alive && state_ == State::joining && generation == generation_; },
       .give = [this](std::uint32_t rank, const GroupDescriptor& part) { give_place(rank, part); },
       .page_came = [this] { deadline_ = now_ + settings_.join_limit; },
       .failed = [this](const std::string& why) { abandon(coded(Reason::manager_failed, why)); }});
}

void Coordinator::give_place(std::uint32_t rank, const GroupDescriptor& part) {
  nlohmann::json place = to_json(part);
  if (!terms_.tuning.empty()) place["tuning"] = terms_.tuning;
  output_.send(rank, {.type = FrameType::descriptor, .epoch = generation_, .body = place.dump()});
}

void Coordinator::ask_for_better(const std::string& why) {
  if (!settings_.may_move || state_ != State::in_network || now_ < may_move_at_) return;
  may_move_at_ = now_ + move_pause_;
  move_pause_ = std::min(2 * move_pause_, settings_.move_pause_last);
  service_->rebuild(group_, epoch_, {}, true,
                    [this, alive = alive_, generation = generation_, why](Result<GroupDescriptor> answer) {
                      if (*alive) on_better(generation, why, std::move(answer));
                    });
}

/// Takes the answer to a request for better trees. Gives up the present trees only if the answer has other trees.
void Coordinator::on_better(std::uint32_t generation, const std::string& why, Result<GroupDescriptor> answer) {
  if (state_ == State::stopped || !answer || answer->empty()) return;
  take(*answer);  // the manager counts the group as moved, in every state
  if (state_ != State::in_network || generation != generation_) return;
  better_ = std::move(*answer);
  lose_tree(coded(Reason::moved_to_better_trees, "moves to other trees: " + why), kMoves);
}

void Coordinator::abandon(const std::string& reason) {
  if (!initial_)
    output_.broadcast({.type = FrameType::commit, .epoch = generation_, .operation = kNever, .body = reason});
  rest(reason);
}

void Coordinator::on_joined(std::uint32_t rank, const ControlMessage& message) {
  if (message.epoch != generation_ || generation_ == 0) return;
  if (!message.body.empty()) {
    const LaneFailure failure = decode_lane_failure(message.body);
    lost_.note(failure);
    if (state_ != State::joining) return;
    if (message.value == kCannotJoin) {  // for good: every new tree would fail in the same way, at the cost of a pause
      search_.hopeless = true;
      retry_at_ = renewals_.next = TimePoint::max();
      if (group_ != 0) service_->release(std::exchange(group_, 0), lost_.untold());
    }
    return abandon(coded(Reason::lane_broken, failure.reason));
  }
  if (state_ != State::joining || !answers_.count(rank)) return;
  answers_.begin();
  next_operation_ = 0;
  state_ = State::proposing;
  deadline_ = TimePoint::max();
  output_.broadcast({.type = FrameType::propose, .epoch = generation_});
}

bool Coordinator::amend(std::string amendment) {
  if (state_ != State::in_network || amendment_) return false;
  amendment_ = std::move(amendment);
  answers_.begin();
  next_operation_ = 0;
  output_.broadcast({.type = FrameType::amend, .epoch = generation_});
  return true;
}

void Coordinator::on_next_operation(std::uint32_t rank, const ControlMessage& message) {
  const bool amends = state_ == State::in_network && amendment_;
  if ((state_ != State::proposing && !amends) || message.epoch != generation_) return;
  next_operation_ = std::max(next_operation_, message.operation);
  if (!answers_.count(rank)) return;
  if (amends) {
    output_.broadcast({.type = FrameType::amended,
                       .epoch = generation_,
                       .operation = next_operation_,
                       .body = *std::exchange(amendment_, std::nullopt)});
    return;
  }
  state_ = State::in_network;
  if (std::exchange(initial_, false)) own_absence_.begin(now_);
  search_.why_not.clear();
  lost_.found_trees();
  retry_delay_ = settings_.retry_first;
  output_.broadcast({.type = FrameType::commit, .epoch = generation_, .operation = next_operation_});
}

void Coordinator::on_lane_failed(const ControlMessage& message) {
  if (message.epoch != generation_ || generation_ == 0) return;
  const LaneFailure failure = decode_lane_failure(message.body);
  lost_.note(failure);  // in every state: if the request is already under way, the next request carries it
  const std::string reason = coded(Reason::lane_broken, failure.reason);
  if (state_ == State::joining || state_ == State::proposing) return abandon(reason);
  if (state_ == State::in_network) lose_tree(reason);
}

void Coordinator::lose_tree(const std::string& reason, std::uint64_t how) {
  TRIBUTARY_ASSERT(state_ == State::in_network && generation_ > 0, "trees of generation {} are lost in state {}",
                   generation_, state_);
  state_ = State::freezing;
  amendment_.reset();
  begun_ = 0;
  answers_.begin();
  output_.broadcast({.type = FrameType::freeze, .epoch = generation_, .value = how, .body = reason});
}

void Coordinator::on_holdings(std::uint32_t rank, const ControlMessage& message) {
  if (state_ != State::freezing || message.epoch != generation_) return;
  auto holdings = decode_holdings(message.body);
  if (!holdings) return abort(Errc::corrupt, rank_name(settings_, rank) + " sent " + holdings.error().message);
  holdings_[rank] = std::move(*holdings);
  begun_ = std::max(begun_, message.operation);
  if (!answers_.count(rank)) return;
  TRIBUTARY_ASSERT(holdings_.size() == settings_.nranks, "{} holdings of {} ranks", holdings_.size(), settings_.nranks);
  const auto plan = RepairPlan::make(holdings_);
  if (!plan) return abort(plan.error().code, plan.error().message);
  for (std::uint32_t r = 0; r < settings_.nranks; ++r)
    output_.send(
        r, {.type = FrameType::recover, .epoch = generation_, .operation = begun_, .body = encode(plan->for_rank(r))});
  const auto better = std::exchange(better_, std::nullopt);
  if (better && !lost_.any_untold()) return join(*better);
  rest("");  // an aggregator of the better trees may have failed meanwhile, too
  if (retry_at_ != TimePoint::max()) retry_at_ = std::min(retry_at_, now_ + settings_.ask_after_loss);
}

void Coordinator::on_message(std::uint32_t rank, const ControlMessage& message, TimePoint now) {
  now_ = now;
  if (state_ == State::stopped) return;
  switch (message.type) {
    case FrameType::joined:
      return on_joined(rank, message);
    case FrameType::next_operation:
      return on_next_operation(rank, message);
    case FrameType::lane_failed:
      return on_lane_failed(message);
    case FrameType::holdings:
      return on_holdings(rank, message);
    case FrameType::stalled:
      return on_stalled(rank, message, now);
    case FrameType::progress:
      return on_progress(rank, message);
    case FrameType::abort:
      // An inquiry after the time-out will name the rank for which all wait. A rank that waits for a message reports
      // again.
      if (static_cast<Errc>(message.value) == Errc::timed_out && inquiry_.operation && !inquiry_.suspicion &&
          !inquiry_.disagreement)
        return;
      if (static_cast<Errc>(message.value) == Errc::peer_gone) return abort_as_gone(message.body);
      return abort(static_cast<Errc>(message.value), message.body, message.operation);
    case FrameType::finalize:
      return on_finalize(rank);
    default:
      return;
  }
}

void Coordinator::on_finalize(std::uint32_t rank) {
  if (finalized_.none()) finalize_deadline_ = now_ + settings_.finalize_limit;
  if (!finalized_.count(rank)) return;
  finalize_deadline_ = TimePoint::max();
  output_.broadcast({.type = FrameType::finalize});
}

std::string Coordinator::unanswered() const {
  std::string names;
  if (state_ != State::joining && state_ != State::proposing && state_ != State::freezing && !amendment_) return names;
  for (std::uint32_t r = 0; r < settings_.nranks && names.size() < 200; ++r) {
    if (!answers_.has(r)) names += (names.empty() ? "" : ", ") + rank_name(settings_, r);
  }
  return names;
}

// Finds the rank that keeps the other ranks from finalizing. A rank may wait in an operation for the rank at fault,
// so rank 0 first asks in which operation each rank waits, then about that operation. It asks a little before the
// limit, so that it knows the silent ranks when the limit is over.
void Coordinator::check_finalize() {
  if (state_ == State::stopped) return;
  const bool in_earnest = now_ >= finalize_deadline_;
  if (!in_earnest && (finalize_asked_ || now_ < finalize_deadline_ - settings_.inquiry_limit)) return;
  if (inquiry_.operation && !inquiry_.suspicion && !inquiry_.disagreement)
    return;  // an inquiry is looking for the rank at fault
  finalize_asked_ = true;
  if (!in_earnest && inquiry_.operation) return;
  if (in_earnest) finalize_deadline_ = TimePoint::max();
  inquiry_.disagreement = false;
  inquiry_.suspicion = !in_earnest;
  inquire(kNever, 0, "");
}

std::string Coordinator::not_finalized() const {
  std::string names;
  for (std::uint32_t r = 0; r < settings_.nranks && names.size() < 200; ++r) {
    if (!finalized_.has(r)) names += (names.empty() ? "" : ", ") + rank_name(settings_, r);
  }
  return names;
}

void Coordinator::on_rank_gone(std::uint32_t rank, const std::string& why) {
  if (finalized_.all()) return;
  abort_as_gone(rank_name(settings_, rank) + " is gone: " + why);
}

/// Ends the communicator because a rank is gone. The error names rank 0 if rank 0 itself stood still: other ranks gave
/// up waiting for it.
void Coordinator::abort_as_gone(const std::string& text) {
  const auto absence = own_absence_.of(now_);
  if (absence == transport::Duration::zero()) return abort(Errc::peer_gone, text);
  abort(Errc::peer_gone,
        rank_name(settings_, 0) + " stood still for " + in_seconds(absence) + ", and found when it went on: " + text);
}

void Coordinator::abort(Errc code, const std::string& text, std::uint64_t operation) {
  if (state_ == State::stopped) return;
  output_.broadcast(
      {.type = FrameType::abort, .operation = operation, .value = static_cast<std::uint64_t>(code), .body = text});
  stop();
}

void Coordinator::on_stalled(std::uint32_t rank, const ControlMessage& message, TimePoint now) {
  const bool more_urgent =
      message.value == kDisagreement ? !inquiry_.disagreement : inquiry_.suspicion && message.value != kSuspicion;
  if (inquiry_.operation && !more_urgent) return;
  inquiry_.disagreement = message.value == kDisagreement;
  inquiry_.suspicion = message.value == kSuspicion;
  now_ = now;
  inquire(message.operation, rank, message.body);
}

void Coordinator::inquire(std::uint64_t operation, std::uint32_t rank, const std::string& waits_for) {
  inquiry_.operation = operation;
  inquiry_.rank = rank;
  inquiry_.text = waits_for;
  inquiry_.decide_at = now_ + settings_.inquiry_limit;
  std::fill(inquiry_.progress.begin(), inquiry_.progress.end(), std::nullopt);
  output_.broadcast({.type = FrameType::inquiry, .operation = operation});
}

void Coordinator::on_progress(std::uint32_t rank, const ControlMessage& message) {
  silent_[rank] = false;
  auto progress = decode_progress(message.body);
  if (!progress) return abort(Errc::corrupt, rank_name(settings_, rank) + " sent " + progress.error().message);
  if (progress->unasked) return late_inquiry_.report_wait(message.operation, now_);
  late_inquiry_.on_progress(rank, message.operation, *progress);
  if (progress->sighting) return;
  if (!inquiry_.operation || message.operation != *inquiry_.operation) return;
  inquiry_.progress[rank] = std::move(*progress);
  if (std::all_of(inquiry_.progress.begin(), inquiry_.progress.end(), [](const auto& p) { return p.has_value(); }))
    decide();
}

// True if every rank has called the operation and contributed, but no result comes. Then no rank is at fault, and the
// operation goes on by the fallback, without the tree.
bool Coordinator::tree_hangs() const {
  return state_ == State::in_network &&
         std::all_of(inquiry_.progress.begin(), inquiry_.progress.end(),
                     [](const auto& p) { return p && p->called && (p->ended || p->waits_for_tree); }) &&
         std::any_of(inquiry_.progress.begin(), inquiry_.progress.end(),
                     [](const auto& p) { return p->waits_for_tree; });
}

/// True if the inquiry may end. For ranks that were silent in the last inquiry, it waits only a tenth of the usual
/// time.
bool Coordinator::heard_enough() const {
  for (std::uint32_t r = 0; r < settings_.nranks; ++r) {
    if (!inquiry_.progress[r] && !silent_[r]) return now_ >= inquiry_.decide_at;
  }
  return now_ >= inquiry_.decide_at - settings_.inquiry_limit * 9 / 10;
}

// Ends the inquiry. It names, in this order: ranks that do not answer, a rank that called another operation, ranks that
// have not called this operation, the rank that stood still longest, the rank that is furthest behind.
void Coordinator::decide() {
  TRIBUTARY_ASSERT(inquiry_.operation.has_value(), "no inquiry is under way in state {}", state_);
  const std::uint64_t operation = *inquiry_.operation;
  inquiry_.operation.reset();
  const std::string where = "operation " + std::to_string(operation) + ", where " +
                            rank_name(settings_, inquiry_.rank) + " waits: " + inquiry_.text;
  // A rank that has not called this operation may still wait in an earlier one: ask about that operation first.
  const bool all_answered =
      std::all_of(inquiry_.progress.begin(), inquiry_.progress.end(), [](const auto& p) { return p.has_value(); });
  if (all_answered && !inquiry_.disagreement) {
    const auto earliest = std::min_element(inquiry_.progress.begin(), inquiry_.progress.end(),
                                           [](const auto& a, const auto& b) { return a->oldest < b->oldest; });
    if ((*earliest)->oldest < operation) {
      return inquire((*earliest)->oldest, static_cast<std::uint32_t>(earliest - inquiry_.progress.begin()),
                     std::string((*earliest)->waits_for));
    }
  }
  if (tree_hangs()) {
    if (finalize_asked_) finalize_deadline_ = now_ + settings_.finalize_limit;
    return lose_tree(
        coded(Reason::aggregator_hangs, "operation " + std::to_string(operation) +
                                            " stands still though every rank has contributed: an aggregator hangs"));
  }
  const auto list = [&](auto&& is_one) {
    std::string names;
    std::uint32_t more = 0, listed = 0;
    for (std::uint32_t r = 0; r < settings_.nranks; ++r) {
      if (!is_one(inquiry_.progress[r])) continue;
      if (listed == 8) {
        ++more;
        continue;
      }
      names += (listed++ == 0 ? "" : ", ") + rank_name(settings_, r);
    }
    return more == 0 ? names : names + " and " + std::to_string(more) + " more";
  };
  for (std::uint32_t r = 0; r < settings_.nranks; ++r) silent_[r] = !inquiry_.progress[r];
  if (inquiry_.suspicion && !all_answered) return;
  const bool at_the_end = operation == kNever;  // no rank has an operation under way
  if (const auto silent = list([](const auto& p) { return !p.has_value(); }); !silent.empty()) {
    return abort(Errc::timed_out, timed_out_after(settings_.timeout) + silent + ": no answer; missing in " +
                                      (at_the_end ? "finalize" : where));
  }
  if (at_the_end && inquiry_.suspicion) return;
  if (at_the_end)
    return abort(Errc::timed_out,
                 timed_out_after(settings_.timeout) + not_finalized() + ": did not finalize, as other ranks did");
  const auto first = std::find_if(inquiry_.progress.begin(), inquiry_.progress.end(),
                                  [](const auto& p) { return p->signature_known; });
  for (auto it = first; it != inquiry_.progress.end(); ++it) {
    if (!(*it)->signature_known || (*it)->signature == (*first)->signature) continue;
    return abort(Errc::mismatch,
                 to_string(MismatchReport{operation, static_cast<std::uint32_t>(first - inquiry_.progress.begin()),
                                          static_cast<std::uint32_t>(it - inquiry_.progress.begin()),
                                          (*first)->signature, (*it)->signature}),
                 operation);
  }
  if (inquiry_.disagreement) return;  // the rank that saw the mismatch reports it
  if (inquiry_.suspicion) return;     // the rank is merely late
  if (const auto absent = list([](const auto& p) { return !p->called; }); !absent.empty()) {
    return abort(Errc::timed_out, timed_out_after(settings_.timeout) + absent + ": did not call " + where);
  }
  if (const std::string text = who_stood_still(settings_, inquiry_.progress); !text.empty())
    return abort(Errc::timed_out, timed_out_after(settings_.timeout) + text + "missing in " + where);
  const auto behind = std::min_element(
      inquiry_.progress.begin(), inquiry_.progress.end(),
      [](const auto& a, const auto& b) { return std::pair(a->ended, a->steps) < std::pair(b->ended, b->steps); });
  abort(Errc::timed_out, timed_out_after(settings_.timeout) +
                             rank_name(settings_, static_cast<std::uint32_t>(behind - inquiry_.progress.begin())) +
                             ": furthest behind, at " + (*behind)->waits_for + ", in " + where);
}

void Coordinator::renew(TimePoint now) {
  TRIBUTARY_ASSERT(group_ != 0 && service_ != nullptr, "no group is there to renew in state {}", state_);
  renewals_.next = now + std::chrono::milliseconds(std::max<std::uint32_t>(1, lease_seconds_) * 1000 / 3);
  renewals_.last = now;
  renewals_.under_way = true;
  const GroupTraffic traffic = settings_.traffic ? settings_.traffic() : GroupTraffic{};
  service_->renew(group_, traffic, [this, alive = alive_](const Result<GroupLease>& answer) {
    if (!*alive) return;
    renewals_.under_way = false;
    if (answer) {
      renewals_.late.take(answer->late, now_);
      if (state_ == State::in_network && tells_other_rates(*answer, epoch_, terms_.rates)) {
        terms_.rates = answer->rates;
        if (settings_.rates_changed) settings_.rates_changed(terms_.rates);
      }
      if (answer->leave && settings_.may_move && state_ == State::in_network)
        lose_tree(coded(Reason::moved_to_better_trees, "gives up its trees: " + answer->why), kMoves);
      else if (answer->better_trees)
        ask_for_better(answer->why);
      return;
    }
    // If the manager cannot be reached, go on: the data plane does not need the manager. If the manager has forgotten
    // the group, the trees stay in use, and the next request makes a new group.
    if (answer.error().code == Errc::bad_argument) {
      group_ = 0;
      renewals_.next = TimePoint::max();
    }
  });
}

/// While the ranks wait, and for a second after, asks once a second: the manager may know for whom they wait.
bool Coordinator::Renewals::due(TimePoint now, bool waits) {
  if (waits) waited = now;
  const bool waited_just_now = waited && now - *waited <= kLateQuestions;
  return now >= next || (waited_just_now && !under_way && now - last >= kLateQuestions);
}

void Coordinator::excuse(transport::Duration absence, TimePoint now) {
  now_ = now;
  own_absence_.add(absence, now);
  late_inquiry_.excuse(absence);
  for (TimePoint* limit : {&deadline_, &begin_at_, &finalize_deadline_, &inquiry_.decide_at}) {
    if (*limit != TimePoint::max()) *limit += absence;
  }
}

void Coordinator::tick(TimePoint now) {
  now_ = now;
  if (state_ == State::stopped) return;
  if (inquiry_.operation && heard_enough()) decide();
  check_finalize();
  if (state_ == State::stopped) return;
  const auto waiting = settings_.waits ? settings_.waits() : std::nullopt;
  // For the leaders of hosts the communicator of all ranks asks: it can name the rank itself.
  const bool leaders = settings_.processes > settings_.nranks;
  if (const auto operation = leaders ? std::nullopt : late_inquiry_.tick(still_between_ranks(waiting), now))
    output_.broadcast({.type = FrameType::inquiry, .operation = *operation});
  ask_witnesses(late_inquiry_, settings_, output_, now);
  if (service_ == nullptr) return;
  if (group_ != 0 && renewals_.due(now, state_ == State::in_network && waiting.has_value())) renew(now);
  if (state_ == State::resting && now >= retry_at_) return ask(now);
  // Once rank 0 has proposed trees, wait for them: all ranks have joined them.
  if (initial_ && now >= begin_at_ && state_ != State::proposing) {
    begin_without(0, state_ == State::asking ? coded(Reason::manager_late, "the manager has not answered yet")
                                             : coded(Reason::trees_forming, "the trees are still forming"));
  }
  if (now < deadline_) return;
  if (state_ == State::asking) return rest(coded(Reason::manager_timed_out, "the manager did not answer in time"));
  if (state_ == State::joining) {
    abandon(coded(Reason::forming_timed_out, "the trees of epoch " + std::to_string(epoch_) +
                                                 " did not form in time: not ready: " + unanswered()));
  }
}

void Coordinator::stop() {
  if (state_ == State::stopped) return;
  state_ = State::stopped;
  if (service_ != nullptr && group_ != 0) service_->release(group_, lost_.untold());
}

}  // namespace tributary::client
