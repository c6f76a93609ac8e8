// Rank 0's messages, by which the ranks get to know each other, agree on a path, and leave the group.
#include "client/communicator/communicator.h"
#include "client/communicator/host_level.h"
#include "client/communicator/path_report.h"
#include "client/control/time_out.h"

namespace tributary::client {

using transport::TimePoint;

namespace {

constexpr std::chrono::milliseconds kMayBeLate{200};  // after this time in one operation, rank 0 asks who is late

}  // namespace

void Communicator::start(std::function<void(const Status&)> on_ready) {
  look_at_clock();
  on_ready_ = std::move(on_ready);
  const CommunicatorSettings& settings = shared_.settings;
  // Rank 0 gives up first, so that it can tell the other ranks which ranks are missing.
  ready_deadline_ = shared_.clock.now() + (settings.rank == 0 ? settings.timeout : settings.timeout * 21 / 20);
  if (auto ok = membership_.start(); !ok) return begin_failing(ok.error());
  if (settings.rank == 0 && settings.nranks == 1) all_have_come();
}

/// On rank 0: decides the policy and the path for all ranks, and welcomes them.
void Communicator::all_have_come() {
  const Directory& directory = membership_.directory();
  Welcome welcome{.policy = policy_for(shared_.settings, directory)};
  auto place = local_.open(membership_.host_tokens(), directory.host_ids());
  const auto leaders = place ? std::nullopt : hosts_.open(membership_.host_tokens());
  welcome.local = place.has_value();
  if (leaders) welcome.hosts = Welcome::Hosts{hosts_.level()->map(), leaders->port};
  const Witnesses witnesses = directory.witnesses();
  for (std::uint32_t rank = 1; rank < shared_.settings.nranks; ++rank) {
    welcome.neighbours = witnesses.seen_by(rank);
    membership_.tell(rank, {.type = FrameType::welcome, .body = encode(welcome, directory, rank)});
  }
  look_at(witnesses.seen_by(0), shared_.settings);
  have_met(std::move(welcome.policy));
  if (place) return local_.meet(std::move(place));
  if (leaders) return hosts_.meet(*leaders);
  start_coordinator();
}

void Communicator::on_welcome(const std::string& body) {
  if (!shared_.life.well()) return;
  if (shared_.life.has_met())
    return begin_failing({Errc::corrupt, "rank 0 sent a malformed table of members: a second welcome"});
  auto welcome = decode_welcome(body, membership_, shared_.settings.nranks);
  if (!welcome) return begin_failing(welcome.error());
  look_at(welcome->neighbours, shared_.settings);
  have_met(std::move(welcome->policy));
  if (welcome->local) local_.meet(std::nullopt);
  if (!welcome->hosts) return;
  hosts_.make(std::move(welcome->hosts->map));
  hosts_.meet({shared_.settings.id.root.host, welcome->hosts->leaders_port});
}

/// Takes note that all ranks are known, so that this rank can connect to each of them.
void Communicator::have_met(tuning::Policy policy) {
  routes_.use(std::move(policy));
  traffic_.open(routes_.policy());
  trees_.use(*traffic_.mesh());
  stalls_.use(*traffic_.mesh());
  shared_.life.meet();
  membership_.use(*traffic_.mesh());
}

void Communicator::start_coordinator() {
  const FirstPath path = local_.calls()              ? FirstPath::local
                         : hosts_.level() != nullptr ? FirstPath::by_hosts
                                                     : FirstPath::between_ranks_or_tree;
  const std::string between = path == FirstPath::by_hosts ? encode_between(hosts_.between()->info()) : std::string();
  // With a level of hosts, the leaders' communicator asks the manager for trees.
  GroupService* const service = path == FirstPath::by_hosts ? nullptr : service_;
  CoordinatorSettings settings = coordinator_settings(shared_.settings, membership_.directory(), path, between);
  settings.tuning_of = [this](const GroupDescriptor& trees) {
    if (trees.rates == PathRates{}) return std::string();
    return tuning::encode(
        policy_for(shared_.settings, membership_.directory(), tuning::shape_of(trees), shared_.staging_gbytes));
  };
  // When this process stands still while the ranks meet, it may find at once that all have come and that one gave up.
  settings.away = stalls_.away();
  settings.traffic = [this] { return traffic_of(info()); };
  if (shared_.settings.late_ranks) {
    settings.waits = [this]() -> std::optional<CoordinatorSettings::Waiting> {
      const Operation* const first = operations_.first_unfinished();
      if (first == nullptr || !shared_.clock.waited(first->called_at, kMayBeLate)) return std::nullopt;
      return CoordinatorSettings::Waiting{.by_trees = first->in_trees(),
                                          .wait = {first->number, stalls_.still_for(*first)}};
    };
    settings.tell_late = [this](const std::string& line, bool late) {
      if (on_late) on_late(shared_.log_prefix() + line, late);
    };
    settings.witnesses = [witnesses = membership_.directory().witnesses()](std::uint32_t rank) {
      return witnesses.of(rank);
    };
  }
  settings.rates_changed = [this](const PathRates& rates) {
    if (!trees_.in_use()) return;
    tuning::TreeShape shape = tuning::shape_of(trees_.trees()->descriptor);
    shape.rates = rates;
    const Directory& directory = membership_.directory();
    shared_.info.figures = figures_for(shared_.settings, directory, shape, shared_.staging_gbytes);
    routes_.tune_again(*shared_.info.figures, policy_for(shared_.settings, directory, shape, shared_.staging_gbytes));
  };
  coordinator_ = std::make_unique<Coordinator>(static_cast<CoordinatorOutput&>(*this), service, std::move(settings));
  coordinator_->start(shared_.clock.now());
}

/// Continues after a meeting in shared memory, which may have failed.
void Communicator::paths_are_known() {
  if (shared_.rank() == 0) {
    if (!coordinator_) start_coordinator();
  } else if (const auto commit = std::exchange(waiting_commit_, std::nullopt)) {
    on_commit(*commit);
  }
}

void Communicator::on_word_to_rank_0(std::uint32_t from, const ControlMessage& message) {
  if (coordinator_) return coordinator_->on_message(from, message, shared_.clock.now());
  if (from != 0 && hosts_.on_failure_told(from, message)) start_coordinator();
}

void Communicator::on_rank_gone(std::uint32_t rank, const std::string& why) {
  if (coordinator_) return coordinator_->on_rank_gone(rank, why);
  membership_.tell_all(  // no coordinator exists yet: the ranks still try to share memory
      Shared::abort_message({Errc::peer_gone, stalls_.stood_still() + "rank " + std::to_string(rank) +
                                                  membership_.directory().on_host(rank) + " is gone: " + why}));
}

void Communicator::on_word_of_rank_0(const ControlMessage& message) {
  switch (message.type) {
    case FrameType::welcome:
      return on_welcome(message.body);
    case FrameType::descriptor:
      return trees_.on_descriptor(message);
    case FrameType::propose:
      return trees_.on_propose(message);
    case FrameType::commit:
      return on_commit(message);
    case FrameType::amend:
    case FrameType::amended:
      if (shared_.life.well()) routes_.on_amendment(message);
      return finalize_when_idle();
    case FrameType::freeze:
      return trees_.on_freeze(message);
    case FrameType::recover:
      return trees_.on_recover(message);
    case FrameType::inquiry:
      return stalls_.on_inquiry(message);
    case FrameType::second_way:
      return second_way_.on_word(message);
    case FrameType::abort:
      if (shared_.life.well()) disputed_ = message.operation;
      return begin_failing({static_cast<Errc>(message.value), message.body});
    case FrameType::finalize:
      return take_leave();
    default:
      return;
  }
}

void Communicator::on_commit(const ControlMessage& message) {
  if (!shared_.life.well()) return;
  const bool by_hosts = message.value == kCommitHosts;
  if (local_.meeting() || (hosts_.meeting() && by_hosts)) {
    waiting_commit_ = message;
    return;
  }
  const bool first = !shared_.life.has_begun();
  if (first && !(local_.agree(message) && hosts_.agree(message))) return;
  if (by_hosts && hosts_.level() == nullptr)
    return begin_failing({Errc::corrupt, "rank 0 speaks of hosts, and this rank has no part in any"});
  const bool taken = trees_.on_commit(message);
  if (!shared_.life.well()) return;
  if (coordinator_) {
    const auto shape = trees_.in_use() ? tuning::shape_of(trees_.trees()->descriptor) : tuning::TreeShape{};
    shared_.info.figures = figures_for(shared_.settings, membership_.directory(), shape, shared_.staging_gbytes);
  }
  if (message.operation == kNever) {
    shared_.looks_for_trees = coordinator_ && coordinator_->search().under_way;
    by_hosts ? hosts_.report(message.body) : routes_.report_path(message.body, PathEvent::news);
    if (const std::string unmet = unmet_requirement(shared_.settings, shared_.info); !unmet.empty()) {
      tell_rank_0(Shared::abort_message({Errc::unreachable, unmet}));
      return begin_failing({Errc::unreachable, unmet});
    }
  } else if (taken) {
    routes_.report_path("", PathEvent::news);
    if (coordinator_ && membership_.all_can_amend()) routes_.tune_online(*shared_.info.figures);
  }
  if (first) {
    shared_.life.begin();
    ready_deadline_ = TimePoint::max();
    if (auto ready = std::exchange(on_ready_, nullptr)) ready({});
  }
  operations_.advance();
  finalize_when_idle();
}

/// On rank 0: tells the other ranks about a change in the leaders' communicator.
void Communicator::tell_path_between() {
  if (!shared_.life.has_begun() || shared_.life.failed() || hosts_.between() == nullptr) return;
  membership_.tell_all({.type = FrameType::commit,
                        .operation = kNever,
                        .value = kCommitHosts,
                        .body = encode_between(hosts_.between()->info())});
}

void Communicator::take_leave() {
  if (!shared_.life.well() || shared_.life.left()) return;
  if (!shared_.life.leaving()) {
    return begin_failing({Errc::corrupt, "rank 0 ends the communicator, which rank " +
                                             std::to_string(shared_.known_as()) + " still uses"});
  }
  shared_.life.end();
  trees_.leave();
  auto done = std::exchange(on_finalized_, nullptr);
  if (!done) return;
  if (hosts_.level() == nullptr) return done({});
  hosts_.level()->finalize([done = std::move(done)] { done({}); });
}

/// Ends the communicator with an error if this rank cannot begin within the time-out.
void Communicator::check_meeting() {
  if (!shared_.life.well()) return;
  const bool root = shared_.rank() == 0;
  if (root && !shared_.life.has_begun() && !coordinator_ && hosts_.gave_up_in_time()) start_coordinator();
  if (shared_.clock.now() < ready_deadline_) return;
  const std::string text = timed_out_after(shared_.settings.timeout) + stalls_.stood_still() + missing_ranks();
  membership_.tell_those_here(Shared::abort_message({Errc::timed_out, text}));
  begin_failing({Errc::timed_out, text});
}

std::string Communicator::missing_ranks() const {
  if (shared_.rank() != 0) {
    return shared_.life.has_met() ? "rank 0 did not say how to begin"
                                  : "rank 0 did not answer at " + to_string(shared_.settings.id.root);
  }
  const Communicator* const between = hosts_.level() != nullptr ? hosts_.between() : nullptr;
  const auto& asks = between != nullptr ? between->coordinator_ : coordinator_;
  const std::string why_not = asks ? asks->search().why_not : "";
  if (shared_.settings.require_trees && !why_not.empty())
    return "TRIBUTARY_REQUIRE=in-network, and there is no tree: " + why_not;
  if (!coordinator_) return membership_.missing();
  const std::string silent = coordinator_->unanswered();
  return silent.empty() ? "the ranks did not begin" : "no answer came from " + silent;
}

}  // namespace tributary::client
