#include "transport/verbs/verbs_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/verbs/sealed_messages.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

VerbsConnection::VerbsConnection(VerbsCore& core, std::string peer, ChannelHandler* handler)
    : core_(core), peer_(std::move(peer)), handler_(handler), number_(core.enter(*this)) {}

VerbsConnection::~VerbsConnection() {
  if (state_ != State::closed) tear_down();
}

void VerbsConnection::resume() {
  if (reader_.resume() && serving()) make_due();
}

void VerbsConnection::close() {
  if (state_ == State::closed) return;
  tear_down();
}

void VerbsConnection::close_after_flush(Duration limit) {
  if (state_ == State::closed || detached_) return;
  detached_ = true;
  handler_ = nullptr;
  core_.set_timer(*this, Clock::now() + limit);
  if (state_ != State::open) return;  // the flush begins when the connection is open
  state_ = State::flushing;
  core_.make_due(*this);
  core_.make_dirty(*this);
}

void VerbsConnection::channel_destroyed() {
  channel_ = nullptr;
  handler_ = nullptr;
  close();
}

void VerbsConnection::time_out() {
  const ConnectionPtr alive = shared_from_this();
  if (detached_) return close();
  if (state_ == State::connecting) {
    broken_ = Error{Errc::unreachable, "cannot connect to " + peer_ + ": " +
                                           (opening_.error.empty() ? "no answer in time" : opening_.error) + "."};
    return core_.make_due(*this);
  }
  if (state_ == State::accepting) return close();
  if (state_ == State::open) probe();
}

/// Asks whether the peer's host lives. A host that has vanished sends no message, and a queue pair without work does
/// not notice it. A write of no bytes needs no key and wakes no process there, but its completion shows that the device
/// lives.
void VerbsConnection::probe() {
  const Duration period = core_.settings().keepalive;
  if (period <= Duration::zero()) return;
  core_.set_timer(*this, Clock::now() + period);
  if (std::exchange(keepalive_.heard, false) || keepalive_.probing || broken_) return;
  QueuePair& pair = pairs_.front();
  ibv_send_wr& work = pair.list.add(next_work(WorkKind::probe, pair));
  work.opcode = IBV_WR_RDMA_WRITE;
  work.send_flags = IBV_SEND_SIGNALED;
  keepalive_.probing = true;
  static_cast<void>(post(pair));
}

std::optional<SealedLink> VerbsConnection::sealed() const {
  return seal_ && seal_->ready() ? std::optional(seal_->link()) : std::nullopt;
}

Status VerbsConnection::reach(std::span<const std::byte> memory) {
  if (seal_)
    return fail(Errc::unsupported, "the connection to " + peer_ + " is sealed, and processors seal only host memory");
  if (!serving() || !domain_) return fail(Errc::unreachable, "the connection to " + peer_ + " is not open");
  return domain_->registrations().reach(memory);
}

/// Copies a payload, which may lie in a device's memory. Returns false if the connection is broken.
bool VerbsConnection::copy_payload(std::span<std::byte> to, const std::byte* from) {
  core_.statistics.bytes_copied += to.size();
  const Status copied = core_.copy(to, from);
  if (!copied) broken(copied.error());
  return copied.has_value();
}

/// Marks the connection as broken. The first reason counts, because it causes the later ones.
void VerbsConnection::broken(Error error) {
  if (state_ == State::closed) return;
  if (!broken_) broken_ = std::move(error);
  core_.make_due(*this);
}

void VerbsConnection::turn() {
  if (state_ == State::closed) return;
  const ConnectionPtr alive = shared_from_this();
  // A message may come before the connection manager reports that the connection is open.
  if (state_ == State::accepting && inbox_.came() > 0) opened();
  if (state_ == State::connecting && seal_ && seal_->ready()) opened();
  if (state_ == State::said) return close();
  // Serves earlier messages first, because the connection manager may report the end before this side has taken the
  // last completions.
  if (broken_) core_.take_all_completions();
  if (running()) revoke_places();
  if (running()) serve();
  if (state_ == State::closed) return;
  post_receives();
  tell_sent();
  if (state_ == State::closed) return;
  // If the peer ended in order, no payload is left to fetch, so a handler that has answered NotYet may take its time.
  if (broken_ && !(inbox_.has_last() && reader_.stalled()) && !awaits_revocation()) {
    const Error error = std::move(*broken_);
    return tell_closed(error);
  }
  if (may_send() && has_news()) core_.make_dirty(*this);
}

void VerbsConnection::tell_sent() {
  while (const auto done = queue_.take_done([this](std::uint32_t on) { return pairs_[on].retired; })) {
    if (!done->cookie || !serving() || handler_ == nullptr) continue;
    core_.count_callback();
    handler_->on_sent(*channel_, *done->cookie);
    if (state_ == State::closed) return;
  }
}

void VerbsConnection::tell_closed(Error error) {
  ChannelHandler* const handler = detached_ ? nullptr : handler_;
  Channel* const channel = channel_;
  const bool unaccepted = state_ == State::accepting;
  tear_down();
  if (handler == nullptr || channel == nullptr || unaccepted) return;
  core_.count_callback();
  handler->on_closed(*channel, error);
}

/// Closes. After the call no device reads or writes memory for this connection, because the queue pairs are destroyed.
void VerbsConnection::tear_down() {
  TRIBUTARY_ASSERT(state_ != State::closed, "the connection to {} is torn down twice", peer_);
  state_ = State::closed;
  const auto last_reference = std::exchange(opening_.accepted, nullptr);  // may hold the last reference to
                                                                          // this
  core_.clear_timer(*this);
  core_.leave(number_);
  if (!pairs_.empty()) {
    rdma_disconnect(id_.get());  // tells the peer; an error means that the peer knows already, or never connected
    for (QueuePair& pair : pairs_) pair.stop();
    windows_.close();  // before the queue pairs, and before the registrations under the windows
    for (MemoryWindow& window : landing_windows_) window.close();
    places_.close();
    landing_.close();
    core_.statistics.queue_pairs -= pairs_.size();
    pairs_.clear();
  }
  id_.reset();
  if (device_) device_->give_back(reserved_);
  reserved_ = 0;
  queue_.clear();
  fetch_.end();
  rings_.release();
  domain_.reset();
  device_.reset();
  inbox_.clear();
}

bool VerbsConnection::uses(const ibv_context* context, std::uint32_t queue_pair) const noexcept {
  if (pairs_.empty() || pairs_.front().get()->context != context) return false;
  return queue_pair == 0 ||
         std::ranges::any_of(pairs_, [&](const QueuePair& pair) { return pair.get()->qp_num == queue_pair; });
}

void VerbsConnection::device_failed(const std::string& what) {
  failed_ = true;
  broken({Errc::io, "the connection to " + peer_ + " is broken: RDMA device " + device_->name() + ": " + what + "."});
}

}  // namespace tributary::transport::verbs
