#include "client/communicator/communicator.h"

#include <algorithm>
#include <tuple>

#include "client/communicator/path_report.h"
#include "client/operation/payload.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {

using transport::TimePoint;

Communicator::Communicator(transport::Transport& transport, GroupService* service, CommunicatorSettings settings)
    : shared_{.transport = transport, .settings = std::move(settings), .whole = static_cast<Whole&>(*this)},
      service_(service),
      second_way_(shared_),
      membership_(shared_, static_cast<MembershipUser&>(*this), second_way_),
      operations_(static_cast<OperationWays&>(*this), shared_.settings.rank),
      trees_(shared_, static_cast<TreeUser&>(*this), operations_, second_way_),
      memory_(shared_, trees_),
      messages_(shared_.settings.rank),
      stalls_(shared_, {.operations = operations_,
                        .messages = messages_,
                        .text = static_cast<const ProgressText&>(*this),
                        .directory = membership_.directory()}),
      hosts_(shared_, {.service = service,
                       .directory = membership_.directory(),
                       .done = [this](Operation& operation) { operations_.finish(operation, {}); },
                       .met = [this] { paths_are_known(); },
                       .path_changed = [this] { tell_path_between(); },
                       .second_way =
                           [this](const std::string& line, bool device_gone) {
                             if (on_second_way) on_second_way(line, device_gone);
                           }}),
      local_(shared_, [this] { paths_are_known(); }) {
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
  settle_memory(o);
  // Where a host's leader speaks for it, the other ranks' transports never see the buffers.
  const bool stays_here = hosts_.takes(o) && hosts_.between() == nullptr;
  if (!o.direct && !stays_here) memory_.keep_registered(o);
  operations_.add(std::move(owned));
}

void Communicator::staged_input_arrived() {
  if (shared_.life.failed()) return;
  look_at_clock();
  operations_.touch(shared_.clock.now());
  trees_.input_arrived();
  operations_.run_remainders();
}

// ---- the ways of operations ----

bool Communicator::may_begin() const {
  return shared_.life.has_begun() && shared_.life.well() && !trees_.holding();
}

Operation::State Communicator::way_of(const Operation& o) const {
  using enum Operation::State;
  if (hosts_.takes(o)) return by_hosts;
  const Collective collective = o.signature.collective;
  if (!trees_.serve(o) || !in_network_capable(collective)) return fallback;
  if (shared_.settings.path == PathMode::in_network) return in_network;
  const std::uint64_t bytes = std::max(o.part_of_bytes, tuning::vector_bytes(collective, shared_.settings.nranks,
                                                                             o.signature.count * o.element_bytes()));
  return policy_.at(collective, bytes).path == tuning::Path::tree ? in_network : fallback;
}

void Communicator::settle_memory(Operation& o) {
  if (o.direct) memory_.settle(o, way_of(o) == Operation::State::in_network);
}

void Communicator::begin(Operation& o) {
  switch (o.state) {
    case Operation::State::by_hosts:
      return hosts_.level()->submit(o);
    case Operation::State::in_network:
      return trees_.start(o);
    default:
      break;
  }
  const bool wants_tree = shared_.settings.path == PathMode::in_network && shared_.settings.nranks > 1;
  if (wants_tree && in_network_capable(o.signature.collective)) {
    return operations_.finish(
        o, fail(Errc::unreachable, "TRIBUTARY_PATH=in-network, but there is no tree: " + shared_.info.reason));
  }
  run_remainder(o, {whole(o)});
}

void Communicator::run_remainder(Operation& o, std::vector<Piece> pieces) {
  TRIBUTARY_ASSERT(o.input_whole(), "{} runs between the ranks before its input is there", to_string(o));
  runner_->run(o, std::move(pieces), [this, &o] { operations_.fallback_ended(o); });
}

void Communicator::account(const Operation& o, Operation::State way, bool success) {
  operations_.touch(shared_.clock.now());
  if (!success) return;
  CommunicatorInfo& info = shared_.info;
  ++info.operations;
  const std::uint64_t bytes = payload_bytes(o.signature, shared_.settings.nranks);
  const bool by_hosts = way == Operation::State::by_hosts;
  if (by_hosts && hosts_.between() != nullptr) return;  // a leader has it from the leaders' communicator
  std::uint64_t in_network = 0;
  if (by_hosts) {
    in_network = info.in_network ? bytes : 0;
  } else if (o.segments > 0) {
    in_network = static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(o.segments_in_network) /
                                            static_cast<double>(o.segments));
  }
  info.bytes_in_network += in_network;
  info.bytes_fallback += bytes - in_network;
}

std::string Communicator::waits_for(const Operation& o) const {
  const std::string name = to_string(o);
  switch (o.state) {
    case Operation::State::in_network:
      return name + ", " + trees_.waits_for(o);
    case Operation::State::by_hosts:
      return name + ", " + hosts_.level()->waits_for();
    case Operation::State::queued:
      return name + ", segment 0 (not begun)";
    default:
      break;
  }
  std::string text = name + ", segment " + std::to_string(runner_->round()) + " of the fallback";
  const auto ranks = runner_->waits_for();
  for (std::size_t i = 0; i < ranks.size() && i < 8; ++i)
    text += (i == 0 ? ", which needs rank " : ", ") + std::to_string(ranks[i]);
  const std::string troubles = mesh_->troubles();
  return troubles.empty() ? text : text + " (" + troubles + ")";
}

std::uint64_t Communicator::steps(const Operation& o) const {
  return o.state == Operation::State::in_network ? o.segments_done
         : o.state == Operation::State::by_hosts ? hosts_.level()->steps()
                                                 : runner_->round();
}

void Communicator::report_path(const std::string& reason) {
  const Trees* const in_use = trees_.in_use() ? trees_.trees() : nullptr;
  CommunicatorInfo& info = shared_.info;
  info.local = local_.calls() != nullptr;
  describe_trees(in_use, reason, info);
  path_changed(shared_.log_prefix() + path_line(info, in_use, shared_.settings.host_id));
}

// ---- connections between ranks ----

void Communicator::send_message(std::uint32_t peer, Message message) {
  if (const auto& error = shared_.life.error()) return message.on_done(std::unexpected(*error));
  look_at_clock();
  message.called_at = shared_.clock.now();
  messages_.send(peer, std::move(message));
}

void Communicator::receive_message(std::uint32_t peer, Message message) {
  if (const auto& error = shared_.life.error()) return message.on_done(std::unexpected(*error));
  look_at_clock();
  message.called_at = shared_.clock.now();
  messages_.receive(peer, std::move(message));
}

void Communicator::peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                                 std::span<std::byte> payload) {
  look_at_clock();
  if (peer_class == PeerClass::message) {
    stalls_.message_arrived();
    messages_.received(peer, receive);
    return finalize_when_idle();
  }
  operations_.touch(shared_.clock.now());
  if (peer_class == PeerClass::repair) return trees_.repair_received(peer, receive, payload);
  runner_->received(peer, receive, payload);
}

void Communicator::peer_sent(std::uint32_t peer, PeerClass peer_class, std::uint64_t cookie) {
  switch (peer_class) {
    case PeerClass::collective:
      return runner_->sent(cookie);
    case PeerClass::message:
      messages_.sent(peer, cookie);
      return finalize_when_idle();
    case PeerClass::repair:
      return trees_.repair_sent();
  }
}

// A channel between ranks breaks when a rank goes, or the network between two. Either way the group is not whole any
// more.
void Communicator::peer_failed(std::uint32_t peer, PeerClass, const std::string& reason) {
  if (shared_.life.left() || !shared_.life.well() || peer_lost_) return;
  // A rank that aborts closes everything: its own words come a little later by way of rank 0, and go before ours.
  report_lost_at_ = shared_.transport.now() + shared_.settings.drain_grace;
  peer_lost_ = LostPeer{peer, reason};
  membership_.directory().want(peer);  // people will ask which host that is
}

void Communicator::report_lost_peer() {
  if (!peer_lost_ || shared_.clock.now() < report_lost_at_) return;
  report_lost_at_ = TimePoint::max();
  tell_rank_0(Shared::abort_message(
      {Errc::peer_gone, "rank " + std::to_string(shared_.known_as()) + " lost its connection to rank " +
                            std::to_string(shared_.known_as(peer_lost_->peer)) +
                            membership_.directory().on_host(peer_lost_->peer) + ": " + peer_lost_->reason}));
}

void Communicator::peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                                 const FrameHeader& arrived) {
  stalls_.on_mismatch(peer, peer_class, expected, arrived);
}

void Communicator::peer_goes_second_way(std::uint32_t peer, const std::string& reason) {
  look_at_clock();
  second_way_.broken_with(peer, reason);
}

// ---- time ----

// Every way in begins here: nothing is judged to be late before what this process was away for is excused.
void Communicator::look_at_clock(TimePoint now) {
  const auto absence = shared_.clock.look(now);
  if (absence <= transport::Duration::zero()) return;
  for (TimePoint* limit : {&ready_deadline_, &report_lost_at_}) {
    if (*limit != TimePoint::max()) *limit += absence;
  }
  shared_.life.excuse(absence);
  membership_.excuse(absence);
  if (coordinator_) coordinator_->excuse(absence, now);
  if (mesh_) mesh_->excuse(absence);
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
  if (mesh_) mesh_->tick(now);
  report_lost_peer();
  trees_.look();
  stalls_.tick();
}

transport::Duration Communicator::attend(TimePoint now, transport::Duration limit) {
  if (hosts_.level() == nullptr || !shared_.life.has_begun() || shared_.life.failed()) return limit;
  look_at_clock(now);
  const bool quiet = messages_.idle() && !on_finalized_ && shared_.life.well();
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

// A rank that is gone may have finished and left without a word: what its aggregators sent us before may still be on
// its way, so wait a moment.
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
  shared_.info.in_network = shared_.info.local = false;
  shared_.info.reason = error.message;
  if (runner_) runner_->stop();
  if (hosts_.level() != nullptr) hosts_.level()->fail(error);
  auto ends = operations_.fail_all(error, [this](const Operation& o) { return waits_for(o); });
  trees_.fail();
  if (mesh_) mesh_->close();
  if (shared_.rank() != 0 || !coordinator_) membership_.close();
  for (auto& [call, status] : ends) {
    if (call) call(status);
  }
  messages_.fail_all(error);
  if (auto ready = std::exchange(on_ready_, nullptr)) ready(std::unexpected(error));
  if (auto done = std::exchange(on_finalized_, nullptr)) done(std::unexpected(error));
}

// ---- what is told ----

void Communicator::path_changed(const std::string& line) {
  if (on_path_change) on_path_change(line);
}

CommunicatorInfo Communicator::info() const {
  CommunicatorInfo info = shared_.info;
  info.strangers_turned_away = membership_.strangers_turned_away();
  local_.account(info);
  if (trees_.in_use())
    info.lanes_shared = static_cast<std::uint32_t>(
        std::ranges::count_if(trees_.trees()->lanes, [](const auto& lane) { return lane->shares_memory(); }));
  if (mesh_) std::tie(info.links, info.links_shared) = mesh_->open_links();
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
