#include "client/communicator/communicator.h"

#include <algorithm>
#include <tuple>

#include "client/communicator/path_report.h"

namespace tributary::client {

using transport::TimePoint;

Communicator::Communicator(transport::Transport& transport, GroupService* service, CommunicatorSettings settings)
    : shared_{.transport = transport, .settings = std::move(settings), .whole = static_cast<Whole&>(*this)},
      service_(service),
      second_way_(shared_),
      membership_(shared_, static_cast<MembershipUser&>(*this), second_way_),
      operations_(routes_, shared_.settings.rank),
      trees_(shared_, routes_, operations_, second_way_),
      memory_(shared_, trees_),
      traffic_(shared_, static_cast<RankTrafficUser&>(*this), second_way_, membership_.directory()),
      stalls_(shared_, {.operations = operations_,
                        .messages = traffic_.messages(),
                        .text = routes_,
                        .directory = membership_.directory()}),
      hosts_(shared_, {.service = service,
                       .directory = membership_.directory(),
                       .done = [this](Operation& operation) { operations_.finish(operation, {}); },
                       .met = [this] { paths_are_known(); },
                       .path_changed = [this] { tell_path_between(); },
                       .second_way =
                           [this](const std::string& line, bool device_gone) {
                             if (on_second_way) on_second_way(line, device_gone);
                           },
                       .late =
                           [this](const std::string& line, bool late) {
                             if (on_late) on_late(line, late);
                           }}),
      routes_(shared_,
              {.operations = operations_,
               .trees = trees_,
               .hosts = hosts_,
               .traffic = traffic_,
               .memory = memory_,
               .ended = [this] { finalize_when_idle(); },
               .shares_all_memory = [this] { return local_.calls() != nullptr; },
               .amend = [this](std::string text) { return coordinator_ && coordinator_->amend(std::move(text)); }}),
      local_(
          shared_, [this] { paths_are_known(); },
          [this](const std::string& line, bool late) {
            if (on_late) on_late(line, late);
          }) {
  second_way_.on_use = [this](const std::string& line, bool device_gone) {
    if (on_second_way) on_second_way(line, device_gone);
  };
}

Communicator::~Communicator() {
  *shared_.alive = false;
  if (coordinator_) coordinator_->stop();
}

void Communicator::submit(std::unique_ptr<Operation> owned) {
  look_at_clock();
  Operation& o = *owned;
  o.number = operations_.take_number();
  if (const auto& error = shared_.life.error())
    return o.on_done(fail(error->code, error->message + "; here " + to_string(o) + ", called after that"));
  o.called_at = shared_.clock.now();
  if (const auto& record = shared_.settings.flight_record) record->called(o.number, o.signature, o.called_at);
  routes_.prepare_memory(o);
  operations_.add(std::move(owned));
}

void Communicator::staged_input_arrived() {
  if (shared_.life.failed()) return;
  look_at_clock();
  operations_.touch(shared_.clock.now());
  operations_.touch_shares(shared_.clock.now());
  trees_.input_arrived();
  operations_.run_remainders();
  operations_.run_shares();
}

// ---- messages ----

void Communicator::send_message(std::uint32_t peer, Message message) {
  if (const auto& error = shared_.life.error()) return message.on_done(std::unexpected(*error));
  look_at_clock();
  traffic_.send(peer, std::move(message));
}

void Communicator::receive_message(std::optional<std::uint32_t> source, Message message) {
  if (const auto& error = shared_.life.error()) return message.on_done(std::unexpected(*error));
  look_at_clock();
  traffic_.receive(source, std::move(message));
}

// ---- time ----

// Notes absences of this process. Every call from outside begins here, so that limits are extended by an absence before
// a part of the communicator counts a peer as late.
void Communicator::look_at_clock(TimePoint now) {
  const auto absence = shared_.clock.look(now);
  if (absence <= transport::Duration::zero()) return;
  if (ready_deadline_ != TimePoint::max()) ready_deadline_ += absence;
  shared_.life.excuse(absence);
  membership_.excuse(absence);
  if (coordinator_) coordinator_->excuse(absence, now);
  traffic_.excuse(absence);
  hosts_.excuse(absence);
}

void Communicator::tick(TimePoint now) {
  look_at_clock(now);
  trees_.tick();
  membership_.tick();
  if (coordinator_) coordinator_->tick(now);
  local_.tick();
  hosts_.tick(operations_.first_number());
  check_meeting();
  if (shared_.life.fails_by(now)) fail_all(Error(shared_.life.pending()));
  if (!shared_.life.well()) return;
  const bool may_lack = shared_.life.has_begun() || shared_.settings.require_trees;
  const bool shares_memory = local_.calls() != nullptr || hosts_.level() != nullptr;
  if (coordinator_ && may_lack && !trees_.in_use() && !shares_memory) watch_for_lack(shared_, *coordinator_);
  traffic_.tick();
  trees_.look();
  stalls_.tick();
}

transport::Duration Communicator::attend(TimePoint now, transport::Duration limit) {
  if (hosts_.level() == nullptr || !shared_.life.has_begun() || shared_.life.failed()) return limit;
  look_at_clock(now);
  const bool quiet = traffic_.messages().idle() && !on_finalized_ && shared_.life.well();
  const auto until = hosts_.attend(limit, quiet);
  operations_.touch(hosts_.level()->progress_at());
  return until;
}

// ---- the end ----

void Communicator::finalize(std::function<void(const Status&)> on_done) {
  look_at_clock();
  local_.tick();
  if (const auto& error = shared_.life.error()) return on_done(std::unexpected(*error));
  if (shared_.life.left()) return on_done({});
  on_finalized_ = std::move(on_done);
  finalize_when_idle();
}

void Communicator::finalize_when_idle() {
  if (shared_.life.state() != Life::State::ready || !on_finalized_ || !idle()) return;
  shared_.life.leave();
  stalls_.leaving();
  tell_rank_0({.type = FrameType::finalize});
}

void Communicator::abort(const std::string& reason) {
  if (shared_.life.failed()) return;
  const Error told{Errc::aborted, "rank " + std::to_string(shared_.rank()) + " aborted: " + reason};
  tell_rank_0(Shared::abort_message(told));
  local_.fail(told);
  fail_all({Errc::aborted, reason});
}

// Ends this rank's operations soon. If another rank is gone, that rank may have finished and left. Results that
// aggregators sent before may still be on their way to this rank, so it waits for them for a short time.
void Communicator::begin_failing(Error error) {
  if (!shared_.life.well() || shared_.life.left()) return;
  const bool drain = error.code == Errc::peer_gone && shared_.life.has_begun();
  const auto grace = drain ? shared_.settings.drain_grace : transport::Duration::zero();
  shared_.life.begin_failing(std::move(error), shared_.clock.now() + grace);
}

void Communicator::fail_all(Error error) {
  if (shared_.life.failed()) return;
  error = local_.one_error(std::move(error));
  shared_.life.fail(error);
  if (const auto& record = shared_.settings.flight_record) {
    record->failed(error.message);
    // In shared memory the queue of calls records the end of each call itself, on another thread.
    if (!local_.calls()) record->fail_open(shared_.clock.now());
  }
  shared_.info.in_network = shared_.info.local = false;
  shared_.info.reason = error.message;
  if (hosts_.level() != nullptr) hosts_.level()->fail(error);
  auto ends = operations_.fail_all(error, [this](const Operation& o) { return routes_.waits_for(o); });
  trees_.fail();
  traffic_.close();
  if (shared_.rank() != 0 || !coordinator_) membership_.close();
  for (auto& [call, status] : ends) {
    if (call) call(status);
  }
  traffic_.fail_messages(error);
  if (auto ready = std::exchange(on_ready_, nullptr)) ready(std::unexpected(error));
  if (auto done = std::exchange(on_finalized_, nullptr)) done(std::unexpected(error));
}

// ---- reports ----

void Communicator::path_changed(const std::string& line, bool unwanted) {
  if (on_path_change) on_path_change(line, unwanted);
}

CommunicatorInfo Communicator::info() const {
  CommunicatorInfo info = shared_.info;
  info.strangers_turned_away = membership_.strangers_turned_away();
  local_.account(info);
  if (trees_.in_use())
    info.lanes_shared = static_cast<std::uint32_t>(
        std::ranges::count_if(trees_.trees()->lanes, [](const auto& lane) { return lane->shares_memory(); }));
  std::tie(info.links, info.links_shared) = traffic_.open_links();
  hosts_.account(info);
  return info;
}

std::vector<std::shared_ptr<local::Regions>> Communicator::regions() const {
  if (local_.calls()) return {local_.calls()->group->regions()};
  if (hosts_.level() != nullptr) return hosts_.level()->regions();
  return {};
}

std::vector<Communicator::LanePosition> Communicator::lane_positions() const {
  std::vector<LanePosition> positions;
  const Trees* const trees = trees_.trees();
  if (trees == nullptr) return positions;
  for (const auto& lane : trees->lanes) {
    positions.push_back({trees->descriptor.group, lane->prefix(), lane->contributed(), trees->descriptor.epoch,
                         lane->descriptor().window});
  }
  return positions;
}

}  // namespace tributary::client
