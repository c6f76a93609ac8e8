#include "client/communicator/communicator.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <tuple>

#include "client/communicator/host_level.h"
#include "client/communicator/local_meeting.h"
#include "client/control/control_link.h"
#include "client/control/time_out.h"
#include "client/operation/payload.h"

namespace tributary::client {

using transport::TimePoint;

Communicator::Communicator(transport::Transport& transport, GroupService* service, CommunicatorSettings settings)
    : transport_(transport),
      two_ways_(dynamic_cast<transport::HasSecondWay*>(&transport)),
      star_(transport::lasting_way(transport)),
      service_(service),
      settings_(std::move(settings)),
      arrivals_(settings_.nranks),
      messages_(settings_.rank, message_events()),
      alive_(std::make_shared<bool>(true)) {}

Communicator::~Communicator() {
  *alive_ = false;
  if (coordinator_) coordinator_->stop();
}

Operation* Communicator::operation(std::uint64_t number) {
  if (number < first_number_ || number - first_number_ >= operations_.size()) return nullptr;
  return operations_[number - first_number_].get();
}

namespace {

struct BufferBytes {
  std::size_t send = 0;
  std::size_t recv = 0;
};

/// What this rank's part reads and writes; nothing of a buffer that it does not use.
BufferBytes buffer_bytes(const Operation& o, std::uint32_t nranks, std::uint32_t rank) {
  const std::size_t one = o.signature.count * o.element_bytes();
  const std::size_t all = one * nranks;
  const bool root = o.signature.root == rank;
  switch (o.signature.collective) {
    case Collective::all_reduce:
      return {one, one};
    case Collective::reduce:
      return {one, root ? one : 0};
    case Collective::broadcast:
      return {root ? one : 0, one};
    case Collective::reduce_scatter:
      return {all, one};
    case Collective::all_gather:
      return {one, all};
    case Collective::all_to_all:
      return {all, all};
    case Collective::gather:
      return {one, root ? all : 0};
    case Collective::scatter:
      return {root ? all : 0, one};
    case Collective::barrier:
      return {};
  }
  return {};
}

}  // namespace

/// Of small buffers a segment or two is all there is, and most of those travel in the send itself.
void Communicator::keep_registered(Operation& o) {
  constexpr std::size_t kWorthIt = 64U << 10;
  if (o.memory_kept || (goes_by_hosts(o) && host_level_->between() == nullptr))
    return;  // or the transport never sees it
  const BufferBytes bytes = buffer_bytes(o, settings_.nranks, settings_.rank);
  const auto keep = [&](const std::byte* at, std::size_t size) {
    return at != nullptr && size >= kWorthIt ? transport_.keep_registered({at, size}) : nullptr;
  };
  o.kept_send = keep(o.send, bytes.send);
  o.kept_recv = keep(o.recv, bytes.recv);
}

void Communicator::submit(std::unique_ptr<Operation> owned) {
  look_at_clock(transport_.now());
  Operation& o = *owned;
  o.number = next_number_++;
  if (error_) return o.on_done(fail(error_->code, error_->message + "; here " + to_string(o) + ", called after that"));
  o.called_at = now_;
  if (o.direct) settle_memory(o);
  if (!o.direct) keep_registered(o);
  recent_[o.number % recent_.size()] = o.signature;
  operations_.push_back(std::move(owned));
  advance();
}

// A pure function of the operation, the policy that all ranks share, and trees that all ranks use from one operation
// on: so every rank takes the same path.
bool Communicator::goes_in_network(const Operation& o) const {
  if (!trees_ || frozen_ || o.number < trees_->first_operation || !in_network_capable(o.signature.collective))
    return false;
  if (settings_.path == PathMode::in_network) return true;
  const std::uint64_t bytes = std::max(o.part_of_bytes, tuning::vector_bytes(o.signature.collective, settings_.nranks,
                                                                             o.signature.count * o.element_bytes()));
  return policy_.at(o.signature.collective, bytes).path == tuning::Path::tree;
}

bool Communicator::may_start(const Operation& o) const {
  if (!ready_ || holding_ || error_ || !remainders_.empty()) return false;
  if (goes_by_hosts(o)) return fallback_unfinished_ == 0 && o.input_whole();
  if (!goes_in_network(o)) return unfinished_ == 0 && o.input_whole();
  return fallback_unfinished_ == 0 && (!copies_own_part(o) || o.input_whole());
}

/// What the tree does not bring back is copied when the operation starts.
bool Communicator::copies_own_part(const Operation& o) const noexcept {
  return !o.in_place && o.signature.count > 0 &&
         (o.signature.collective == Collective::all_gather ||
          (o.signature.collective == Collective::broadcast && o.signature.root == settings_.rank));
}

Status Communicator::prepare_direct(DirectMemory& memory) {
  if (!trees_ || frozen_) return fail(Errc::unsupported, "in-network reduction is not in use");
  const auto ranges = memory.keep(transport_);
  if (!ranges) return std::unexpected(ranges.error());
  for (auto& lane : trees_->lanes) {
    if (auto ok = lane->prepare(transport_, memory.device(), *ranges); !ok) return ok;
  }
  return {};
}

/// Of an operation that has not started: its buffers stay where they are if it can go through a tree with them.
void Communicator::settle_memory(Operation& o) {
  if (goes_by_hosts(o) || !goes_in_network(o)) return leave_direct(o, {});
  if (o.direct_generation == trees_->generation) return;
  if (const Status ok = prepare_direct(*o.direct); !ok) return leave_direct(o, ok);
  o.direct_generation = trees_->generation;
}

/// Nothing of the network touches its buffers. A rank that can have no copy of them can do nothing more for the others.
void Communicator::leave_direct(Operation& o, const Status& why) {
  const bool begun = o.state == Operation::State::in_network;
  auto host = o.direct->materialize(begun, why);
  if (!host) {
    tell_rank_0({.type = FrameType::abort,
                 .value = static_cast<std::uint64_t>(host.error().code),
                 .body = "rank " + std::to_string(known_as(settings_.rank)) + ": " + host.error().message});
    return begin_failing(host.error());
  }
  o.send = host->send;
  o.recv = host->recv;
  o.staged = std::move(host->staged);
  o.direct.reset();
}

void Communicator::staged_input_arrived() {
  if (error_) return;
  look_at_clock(transport_.now());
  progress_at_ = now_;
  if (waiting_recover_ && brought_down()) {
    const ControlMessage recover = *std::exchange(waiting_recover_, std::nullopt);
    on_recover(recover);
  }
  if (trees_ && !frozen_) {
    for (auto& lane : trees_->lanes) lane->pump();
  }
  if (remainders_.empty()) return advance();
  next_remainder();
}

// An operation may end within start_operation(), and its end advances again: the loop takes care of that, not the
// stack.
void Communicator::advance() {
  if (advancing_) return;
  advancing_ = true;
  for (Operation* next = operation(next_to_start_); next != nullptr; next = operation(next_to_start_)) {
    if (next->direct) settle_memory(*next);
    if (!may_start(*next)) break;
    ++next_to_start_;
    start_operation(*next);
  }
  advancing_ = false;
}

void Communicator::start_operation(Operation& o) {
  // The rules of order, as the file comment of communicator.h has them.
  assert(fallback_unfinished_ == 0);
  assert(unfinished_ == 0 || goes_by_hosts(o) || goes_in_network(o));
  ++unfinished_;
  if (goes_by_hosts(o)) {
    o.state = Operation::State::by_hosts;
    return host_level_->submit(o);
  }
  if (goes_in_network(o)) {
    o.state = Operation::State::in_network;
    o.segments = Segmentation(o.signature, settings_.nranks, trees_->descriptor.lanes[0].segment_bytes).segments();
    if (copies_own_part(o)) {
      const std::size_t bytes = o.signature.count * o.element_bytes();
      std::byte* const own = o.recv + (o.signature.collective == Collective::all_gather ? settings_.rank * bytes : 0);
      if (o.direct) {
        o.direct->device()->copy(own, o.send, bytes, [] {});
      } else {
        std::memcpy(own, o.send, bytes);
      }
    }
    for (auto& lane : trees_->lanes) lane->pump();
    return;
  }
  ++fallback_unfinished_;
  o.state = Operation::State::fallback;
  if (settings_.path == PathMode::in_network && in_network_capable(o.signature.collective) && settings_.nranks > 1) {
    return finish(o, fail(Errc::unreachable, "TRIBUTARY_PATH=in-network, but there is no tree: " + info_.reason));
  }
  run_fallback(o, {whole(o)});
}

void Communicator::run_fallback(Operation& o, std::vector<Piece> pieces) {
  runner_->run(o, std::move(pieces), [this, &o] {
    finish(o, {});
    next_remainder();
  });
}

void Communicator::finish(Operation& o, const Status& status) {
  if (o.state == Operation::State::done) return;
  if (o.state == Operation::State::fallback) --fallback_unfinished_;
  if (o.state != Operation::State::queued) --unfinished_;
  const bool by_hosts = o.state == Operation::State::by_hosts;
  o.state = Operation::State::done;
  if (status) {
    ++info_.operations;
    const std::uint64_t bytes = payload_bytes(o.signature, settings_.nranks);
    const std::uint64_t in_network =
        by_hosts ? (info_.in_network ? bytes : 0)
        : o.segments == 0
            ? 0
            : static_cast<std::uint64_t>(static_cast<double>(bytes) * static_cast<double>(o.segments_in_network) /
                                         static_cast<double>(o.segments));
    if (!by_hosts || host_level_->between() == nullptr) {  // a leader has it from the leaders' communicator
      info_.bytes_in_network += in_network;
      info_.bytes_fallback += bytes - in_network;
    }
  }
  progress_at_ = now_;
  const auto done = std::move(o.on_done);
  o.release_memory();
  forget_finished();  // `o` may be gone now
  if (done) done(status);
  advance();
  finalize_when_idle();
}

void Communicator::forget_finished() {
  while (!operations_.empty() && operations_.front()->state == Operation::State::done) {
    operations_.pop_front();
    ++first_number_;
  }
}

void Communicator::send_message(std::uint32_t peer, Message message) {
  if (error_) return message.on_done(std::unexpected(*error_));
  look_at_clock(transport_.now());
  message.called_at = now_;
  messages_.send(peer, std::move(message));
}

void Communicator::receive_message(std::optional<std::uint32_t> source, Message message) {
  if (error_) return message.on_done(std::unexpected(*error_));
  look_at_clock(transport_.now());
  message.called_at = now_;
  messages_.receive(source, std::move(message));
}

MessageEvents Communicator::message_events() {
  return {
      .arrived =
          [this] {
            look_at_clock(transport_.now());
            messages_progress_at_ = now_;
          },
      .ended = [this] { finalize_when_idle(); },
      .disagree =
          [this](std::string text) {
            tell_rank_0({.type = FrameType::abort,
                         .value = static_cast<std::uint64_t>(Errc::mismatch),
                         .body = std::move(text)});
          },
      .lost = [this](std::uint32_t peer, const std::string& reason) { peer_failed(peer, PeerClass::message, reason); }};
}

void Communicator::peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                                 std::span<std::byte> payload) {
  look_at_clock(transport_.now());
  progress_at_ = now_;
  if (peer_class == PeerClass::collective) return runner_->received(peer, receive, payload);
  if (repair_) repair_->received(peer, receive, payload);
}

void Communicator::peer_sent(std::uint32_t, PeerClass peer_class, std::uint64_t cookie) {
  if (peer_class == PeerClass::collective) return runner_->sent(cookie);
  if (repair_) repair_->sent();
}

// A channel between ranks breaks when a rank goes, or the network between two. Either way the group is not whole any
// more.
void Communicator::peer_failed(std::uint32_t peer, PeerClass, const std::string& reason) {
  if (finalized_ || error_ || failing_ || peer_lost_) return;
  // A rank that aborts closes everything: its own words come a little later by way of rank 0, and go before ours.
  report_lost_at_ = transport_.now() + settings_.drain_grace;
  peer_lost_ = LostPeer{peer, reason};
  directory_.want(peer);  // people will ask which host that is
}

std::string Communicator::missing_ranks() const {
  constexpr std::uint32_t kNamedMax = 32;
  if (coordinator_) {
    const std::string silent = coordinator_->unanswered();
    return silent.empty() ? "the ranks did not begin" : "no answer came from " + silent;
  }
  std::string who = "these ranks did not come: ";
  std::uint32_t missing = 0;
  for (std::uint32_t r = 1; r < settings_.nranks; ++r) {
    if (control_[r] || ++missing > kNamedMax) continue;
    who += (missing == 1 ? "rank " : ", rank ") + std::to_string(r);
  }
  return missing <= kNamedMax ? who : who + " and " + std::to_string(missing - kNamedMax) + " more";
}

void Communicator::tick(TimePoint now) {
  look_at_clock(now);
  discarded_.clear();
  discarded_repairs_.clear();
  discarded_control_.clear();
  arrivals_.tick(now);
  if (reconnect_.take_due(now)) meet_rank_0();
  if (coordinator_) coordinator_->tick(now);
  check_local();
  check_hosts();
  if (failing_ && now >= fail_at_) fail_all(*error_pending_);
  if (error_ || failing_) return;
  if (mesh_) mesh_->tick(now);
  if (peer_lost_ && now >= report_lost_at_) {
    report_lost_at_ = TimePoint::max();
    tell_rank_0(report_of(*peer_lost_));
  }
  if (now >= ready_deadline_) {
    const std::string text = timed_out_after(settings_.timeout) + stood_still() +
                             (settings_.rank == 0 ? missing_ranks()
                              : mesh_             ? "rank 0 did not say how to begin"
                                                  : "rank 0 did not answer at " + to_string(settings_.id.root));
    for (auto& link : control_) {
      if (settings_.rank == 0 && link)
        link->send({.type = FrameType::abort, .value = static_cast<std::uint64_t>(Errc::timed_out), .body = text});
    }
    return begin_failing({Errc::timed_out, text});
  }
  look_at_lanes();
  check_stall();
  check_unwanted_frames();
}

void Communicator::finalize(std::function<void(const Status&)> on_done) {
  look_at_clock(transport_.now());
  check_local();
  if (error_) return on_done(std::unexpected(*error_));
  if (finalized_) return on_done({});
  on_finalized_ = std::move(on_done);
  finalize_when_idle();
}

void Communicator::finalize_when_idle() {
  if (finalize_sent_ || !on_finalized_ || !idle()) return;
  finalize_sent_ = true;
  finalize_sent_at_ = now_;
  tell_rank_0({.type = FrameType::finalize});
}

void Communicator::abort(const std::string& reason) {
  if (error_) return;
  const Error error{Errc::aborted, reason};
  const Error told{Errc::aborted, "rank " + std::to_string(settings_.rank) + " aborted: " + reason};
  tell_rank_0({.type = FrameType::abort, .value = static_cast<std::uint64_t>(told.code), .body = told.message});
  if (local_) local_->group->fail(told);
  fail_all(error);
}

// A rank that is gone may have finished and left without a word: what its aggregators sent us before may still be on
// its way, so wait a moment.
void Communicator::begin_failing(Error error) {
  if (error_ || failing_ || finalized_) return;
  failing_ = true;
  holding_ = true;
  error_pending_ = std::move(error);
  fail_at_ =
      now_ + (error_pending_->code == Errc::peer_gone && ready_ ? settings_.drain_grace : transport::Duration::zero());
}

void Communicator::fail_all(Error error) {
  if (error_) return;
  error = one_error(std::move(error));
  failing_ = false;
  error_ = error;
  info_.in_network = info_.local = false;
  info_.reason = error.message;
  if (runner_) runner_->stop();
  if (host_level_) host_level_->fail(error);
  remainders_.clear();
  auto operations = std::move(operations_);
  operations_.clear();
  first_number_ = next_to_start_ = next_number_;
  std::vector<std::pair<std::function<void(const Status&)>, Status>> calls;
  for (auto& o : operations) {
    o->release_memory();
    if (o->state == Operation::State::done) continue;
    calls.emplace_back(std::move(o->on_done), fail(error.code, error.message + "; here " + waits_for(*o)));
  }
  graveyard_ = std::move(operations);  // until the channels that borrow from their callers' buffers are closed
  discard(std::move(forming_));
  discard(std::move(trees_));
  if (repair_) discarded_repairs_.push_back(std::move(repair_));
  if (mesh_) mesh_->close();
  if (settings_.rank != 0 || !coordinator_) {
    for (auto& link : control_) {
      if (link) link->close_after_flush(std::chrono::seconds(1));
    }
  }
  for (auto& [call, status] : calls) {
    if (call) call(status);
  }
  messages_.fail_all(error);
  if (auto ready = std::exchange(on_ready_, nullptr)) ready(std::unexpected(error));
  if (auto done = std::exchange(on_finalized_, nullptr)) done(std::unexpected(error));
}

CommunicatorInfo Communicator::info() const {
  CommunicatorInfo info = info_;
  info.strangers_turned_away = arrivals_.counts().sum();
  if (local_) {
    info.operations += local_->queue.ended();
    info.bytes_local = local_->queue.bytes();
    info.direct = local_->group->direct_calls();
    info.attach_refusal = local_->group->attach_refusal();
  }
  if (host_level_) {
    info.direct = host_level_->direct_pieces();
    info.attach_refusal = host_level_->attach_refusal();
  }
  if (trees_ && !frozen_)
    info.lanes_shared = static_cast<std::uint32_t>(
        std::ranges::count_if(trees_->lanes, [](const auto& lane) { return lane->shares_memory(); }));
  if (mesh_) std::tie(info.links, info.links_shared) = mesh_->open_links();
  if (host_level_ && host_level_->between() != nullptr) {
    const CommunicatorInfo between = host_level_->between()->info();
    info.bytes_in_network += between.bytes_in_network;
    info.bytes_fallback += between.bytes_fallback;
    info.lanes_shared = between.lanes_shared;
    info.links += between.links;
    info.links_shared += between.links_shared;
  }
  return info;
}

std::vector<std::shared_ptr<local::Regions>> Communicator::regions() const {
  if (local_) return {local_->group->regions()};
  if (host_level_) return host_level_->regions();
  return {};
}

std::vector<Communicator::LanePosition> Communicator::lane_positions() const {
  std::vector<LanePosition> positions;
  if (!trees_) return positions;
  for (const auto& lane : trees_->lanes) {
    positions.push_back({trees_->descriptor.group, lane->prefix(), lane->contributed(), trees_->descriptor.epoch,
                         lane->descriptor().window});
  }
  return positions;
}

}  // namespace tributary::client
