// Transports with a second way: who listens where, and what becomes of connections when a first way is gone.
#include "client/communicator/communicator.h"

namespace tributary::client {

/// The id's listener is rank 0's on the way that stays; all others are made here.
Status Communicator::open_listeners() {
  const bool root = settings_.rank == 0;
  const Endpoint at = root ? Endpoint{settings_.id.root.host, 0} : settings_.listen;
  const auto open = [&](transport::Transport& way, std::unique_ptr<transport::Listener>& into) -> Status {
    auto listener = way.listen(at, *this);
    if (!listener) return std::unexpected(listener.error());
    into = std::move(*listener);
    return {};
  };
  if (!root && two_ways_ != nullptr) {
    if (auto ok = open(two_ways_->second_way(), second_listener_); !ok) return ok;
  }
  Member self{.at = settings_.id.root, .second_port = settings_.id.root.port, .host_id = settings_.host_id};
  if (!root || two_ways_ != nullptr) {
    if (auto ok = open(transport_, listener_); !ok) return ok;
    self.at.port = listener_->local().port;
  }
  if (root) directory_.learn(0, std::move(self));
  return {};
}

PeerWays Communicator::ways() const {
  if (two_ways_ == nullptr) return {.first = transport_};
  return {
      .first = transport_, .second = &two_ways_->second_way(), .early_bytes_max = two_ways_->sent_early_bytes_max()};
}

void Communicator::tell_second_way(const std::string& whose, const std::string& reason, bool device_gone) const {
  if (!on_second_way || finalize_sent_) return;  // those that leave break connections, too
  on_second_way("tributary: rank " + std::to_string(known_as(settings_.rank)) + ": its connections to " + whose +
                    " go over TCP from now on: " + reason,
                device_gone);
}

// It is one pair's connection, or this rank's or the other's device. Of two ranks the higher connects: it may not have
// noticed.
void Communicator::peer_goes_second_way(std::uint32_t peer, const std::string& reason) {
  look_at_clock(transport_.now());
  if (finalized_ || error_ || failing_) return;
  tell_second_way("rank " + std::to_string(known_as(peer)), reason, false);
  check_first_way();
  if (first_way_gone_ || settings_.rank > peer) return;
  const ControlMessage message{
      .type = FrameType::second_way, .operation = settings_.rank, .value = peer, .body = reason};
  settings_.rank == 0 ? spread_second_way(message) : tell_rank_0(message);
}

/// Asked when a connection breaks: others may have tried in vain to reach this rank's device, or would.
void Communicator::check_first_way() {
  if (two_ways_ == nullptr || first_way_gone_ || !mesh_ || !listener_) return;
  const Status there = two_ways_->first_way(listener_->local().host);
  if (there) return;
  first_way_gone_ = true;
  const std::string& reason = there.error().message;
  tell_second_way("the other ranks", reason, true);
  for (std::uint32_t peer = 0; peer < settings_.nranks; ++peer) mesh_->leave_first_way(peer, reason);
  const ControlMessage message{
      .type = FrameType::second_way, .operation = settings_.rank, .value = kNever, .body = reason};
  settings_.rank == 0 ? spread_second_way(message) : tell_rank_0(message);
}

/// Rank 0: to the one that it is for, or to all.
void Communicator::spread_second_way(const ControlMessage& message) {
  for (std::uint32_t rank = 0; rank < settings_.nranks; ++rank) {
    if (rank != message.operation && (message.value == kNever || message.value == rank)) send(rank, message);
  }
}

void Communicator::on_second_way_of(const ControlMessage& message) {
  if (!mesh_ || finalized_ || error_ || failing_ || message.operation >= settings_.rank) return;
  mesh_->leave_first_way(static_cast<std::uint32_t>(message.operation),
                         "rank " + std::to_string(message.operation) + " has left the first way: " + message.body);
}

/// Why this rank need not try to join any, if so.
Status Communicator::may_reach_trees() const {
  if (two_ways_ == nullptr) return {};
  const Status there = two_ways_->first_way("");
  if (there) return {};
  return fail(Errc::unreachable, "rank " + std::to_string(known_as(settings_.rank)) +
                                     " has no way to aggregators: " + there.error().message);
}

}  // namespace tributary::client
