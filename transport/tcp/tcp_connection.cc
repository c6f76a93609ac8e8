#include "transport/tcp/tcp_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "transport/channel/deadline.h"
#include "transport/tcp/tcp_sealing.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

TcpConnection::TcpConnection(TcpCore& core, std::string peer, ChannelHandler* handler)
    : Connection(std::move(peer), handler), core_(core), socket_(core.poller()) {}

std::shared_ptr<TcpConnection> TcpConnection::make(TcpCore& core, std::string peer, ChannelHandler* handler) {
  std::shared_ptr<TcpConnection> connection(new TcpConnection(core, std::move(peer), handler));
  core.enter(*connection);
  ++core.statistics.connections;
  return connection;
}

void TcpConnection::open(TcpHandOver taken) {
  TRIBUTARY_ASSERT(taken.staged.size() <= staging_.size(), "{} bytes of the connection to {} were read before",
                   taken.staged.size(), peer_);
  std::ranges::copy(taken.staged, staging_.begin());
  staged_end_ = taken.staged.size();
  TRIBUTARY_ASSERT(state_ == State::connecting && !socket_.is_open(), "the connection to {} opens in state {}", peer_,
                   state_);
  state_ = State::open;
  socket_.own(taken.socket.release());
  sealed_ = std::move(taken.sealed);
  if (const int error = watch(); error != 0) {
    socket_.close();
    fatal_ = Error{Errc::exhausted, "cannot watch the connection to " + peer_ + ": " + error_text(error) + "."};
    return make_due();
  }
  readable_ = writable_ = true;  // try before the first wait, because bytes may be there already
  make_due();
}

int TcpConnection::watch() noexcept {
  return socket_.watch(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI, *this);
}

/// An event reports the whole present state, and not only its changes. So state that was known before is no reason for
/// a turn: while readable_ is true, a turn is due anyway, or the handler has answered NotYet.
void TcpConnection::mark(std::uint32_t events) {
  const bool broken = (events & (EPOLLERR | EPOLLHUP)) != 0;
  const bool more_to_read = broken || (events & (EPOLLIN | EPOLLRDHUP)) != 0;
  const bool room_to_write = broken || (events & EPOLLOUT) != 0;
  const bool news = (more_to_read && !readable_) || (room_to_write && !writable_) || (broken && !hung_up_);
  readable_ |= more_to_read;  // serves the bytes that have arrived before the end
  writable_ |= room_to_write;
  hung_up_ |= broken;
  if (broken || (events & (EPOLLPRI | EPOLLRDHUP)) != 0) tells_no_more_ = true;
  if (news) make_due();
}

void TcpConnection::turn() {
  if (state_ == State::connecting) return sealed_ ? TcpSealing::greet(*this) : finish_connecting();
  if (state_ == State::closed) return;
  if (fatal_) return tell_closed(std::move(*fatal_));
  if (state_ == State::open) read_turn();
  if (state_ == State::open && hung_up_ && reader_.stalled()) {
    return tell_closed(lost(pending_error(socket_.get())));
  }
  if (state_ == State::flushing || state_ == State::lingering) discard_turn();
  if (state_ == State::open || state_ == State::flushing) write_turn();
}

std::optional<SealedLink> TcpConnection::sealed() const {
  return sealed_ && sealed_->ready() ? std::optional(sealed_->link()) : std::nullopt;
}

// ---- The end of a connection

Error TcpConnection::lost(int error) const {
  if (error == 0) return {Errc::peer_gone, peer_ + " closed the connection."};
  if (error == ETIMEDOUT) return {Errc::peer_gone, peer_ + " does not answer any more: the connection timed out."};
  return {Errc::peer_gone, "the connection to " + peer_ + " broke: " + error_text(error) + "."};
}

void TcpConnection::tell_closed(Error error) {
  ChannelHandler* handler = handler_;
  close();
  if (handler == nullptr) return;
  core_.count_callback();
  handler->on_closed(*channel_, error);
}

void TcpConnection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  handler_ = nullptr;
  queue_.clear();
  socket_.close();
  TRIBUTARY_ASSERT(core_.statistics.connections > 0, "the connection to {} ends, and none is counted", peer_);
  --core_.statistics.connections;
  core_.leave(*this);  // the last call, because it may destroy this object
}

/// Also ends a flush, because the channel's owner takes the borrowed payloads with it. Frames may still arrive if all
/// of them were handed to the system.
void TcpConnection::channel_destroyed() {
  channel_ = nullptr;
  if (state_ != State::lingering) close();
}

void TcpConnection::close_after_flush(Duration limit) {
  if (!taking_frames()) return;
  detached_ = true;
  handler_ = nullptr;
  reader_.forget();
  staged_begin_ = staged_end_ = 0;
  // A listener that closes a silent connection tells the reason in clear: the client has not shown yet whether it
  // seals, and a reason is no secret.
  if (state_ == State::open && sealed_ && sealed_->may_begin_in_clear()) sealed_.reset();
  if (fatal_ || (state_ == State::open && sealed_ && !sealed_->ready())) return close();
  deadline_ = deadline_of(Clock::now(), limit);
  core_.set_deadline(*this, limit);
  if (state_ == State::connecting) {
    queue_.empty() ? close() : void();
    return;  // connected() goes on with the flush
  }
  state_ = State::flushing;
  make_due();
}

/// Stops writing, because all frames are written. If this side closed the socket while bytes come in, the system would
/// reset the connection, and the reset might overtake this side's last frames. So this side waits for the other side's
/// close, and throws away the bytes that come until then.
void TcpConnection::linger() {
  TRIBUTARY_ASSERT(state_ == State::flushing && TcpSealing::all_written(*this),
                   "the connection to {} stops writing in state {}", peer_, state_);
  state_ = State::lingering;
  queue_.clear();
  ::shutdown(socket_.get(), SHUT_WR);
  if (peer_finished_) return close();
  make_due();
}

void TcpConnection::on_deadline() {
  if (state_ == State::flushing || state_ == State::lingering) return close();
  if (state_ == State::open) {
    if (TcpSealing::waits_for_key(*this)) make_due();
    if (const auto next = bytes_watch_.look(socket_.get(), core_.statistics.pushes)) core_.set_deadline(*this, *next);
    return;
  }
  if (state_ != State::connecting) return;
  if (detached_) return close();  // the flush never began to write
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
  fatal_ = Error{Errc::unreachable,
                 "cannot connect to " + peer_ + ": no answer within " + std::to_string(milliseconds) + " ms."};
  make_due();
}

// ---- Handing a connection to another transport

Beginning TcpConnection::hand_on() {
  TRIBUTARY_ASSERT(state_ == State::connecting, "the connection to {} is handed on in state {}", peer_, state_);
  Beginning beginning{.handler = std::exchange(handler_, nullptr),
                      .queue = std::exchange(queue_, {}),
                      .deadline = deadline_,
                      .limit = limit_,
                      .detached = detached_};
  close();
  return beginning;
}

Result<TcpHandOver> TcpConnection::release(bool empty) {
  if (state_ != State::open || fatal_) {
    return fail(Errc::bad_argument, "the channel to " + peer_ + " is not open and cannot be handed over.");
  }
  const bool unserved_bytes = staged() != 0 || (sealed_ && sealed_->keeps_bytes());
  if (reader_.in_frame() || (empty && unserved_bytes)) {
    return fail(Errc::retry, "the channel to " + peer_ + " is in the middle of a frame and cannot be handed over now.");
  }
  if (!queue_.empty() || !queue_.all_told()) {  // sealed bytes move with the stream
    return fail(Errc::retry, "the channel to " + peer_ + " has frames to write and cannot be handed over now.");
  }
  const auto unserved = std::span(staging_).subspan(staged_begin_, staged());
  if (sealed_) sealed_->end_opening();
  TcpHandOver taken{.socket = OwnedDescriptor(socket_.release()),
                    .staged = {unserved.begin(), unserved.end()},
                    .sealed = std::move(sealed_)};
  close();
  return taken;
}

}  // namespace tributary::transport
