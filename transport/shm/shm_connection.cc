#include "transport/shm/shm_connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "transport/shm/peer_text.h"
#include "transport/shm/shm_listener.h"
#include "transport/shm/unix_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

constexpr std::uint32_t kBellsUnreadMax = 32;  // a socket holds some hundreds of such bytes

ShmConnection::ShmConnection(SocketCore& core, std::shared_ptr<ShmPart> part, std::string peer, ChannelHandler* handler)
    : Connection(std::move(peer), handler), core_(core), part_(std::move(part)), socket_(core.poller()) {}

std::shared_ptr<ShmConnection> ShmConnection::make(SocketCore& core, std::shared_ptr<ShmPart> part, std::string peer,
                                                   ChannelHandler* handler) {
  std::shared_ptr<ShmConnection> connection(new ShmConnection(core, std::move(part), std::move(peer), handler));
  core.enter(*connection);
  ++connection->part_->statistics.connections;
  return connection;
}

void ShmConnection::mark(std::uint32_t events) {
  const bool ended = (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
  if (opening()) {
    hung_up_ |= ended;
    return make_due();
  }
  ++bells_heard_;  // the byte has woken this thread, which looks at the memory in every turn
  if (ended && !std::exchange(hung_up_, true)) make_due();
  if (bells_heard_ >= kBellsUnreadMax) make_due();
}

void ShmConnection::turn() {
  if (state_ == State::closed) return;
  if (fatal_) return tell_closed(std::move(*fatal_));
  if (opening()) return turn_greeting();
  const auto kept = memory_;  // callbacks may close the connection while the ring is being read
  turn_open();
}

void ShmConnection::turn_open() {
  if (bells_heard_ >= kBellsUnreadMax) drain_bells();
  const bool ended = hung_up_;  // read first: all bytes that the other side wrote before its end are in the memory now
  if (state_ == State::open) read_turn();
  if (state_ == State::open || state_ == State::flushing) write_turn();
  if (ended) end_of_peer();
}

/// At this point all frames of the other side were served, or a turn for the rest is due. After an orderly end, a
/// handler that has answered NotYet gets the rest when it resumes. The death of the other process is reported to the
/// handler at once.
void ShmConnection::end_of_peer() {
  if (state_ == State::flushing) return close();
  if (state_ != State::open) return;
  const bool orderly = memory_->theirs().finished.load(std::memory_order_relaxed) != 0;
  if (reader_.stalled() ? orderly : out_of_turn_) return;
  tell_closed({Errc::peer_gone, peer_text(peer_) + " closed the connection."});
}

void ShmConnection::drain_bells() noexcept {
  bells_heard_ = 0;
  std::array<std::byte, 1024> scratch;
  OwnedDescriptor passed;
  (void)receive_message(socket_.get(), scratch, &passed);
  if (passed.is_open()) regions_.passed = std::move(passed);  // two descriptors at once harm only their sender
}

bool ShmConnection::memory_changed() const noexcept {
  const Side& theirs = memory_->theirs();
  return theirs.written.load(std::memory_order_seq_cst) != written_seen_ ||
         (waits_for_room_ && theirs.read.load(std::memory_order_seq_cst) != read_seen_) ||
         (!named_.empty() && theirs.payloads_read.load(std::memory_order_seq_cst) != payloads_read_seen_);
}

void ShmConnection::set_asleep(bool asleep) noexcept {
  naps_ += (naps_ & 1U) == (asleep ? 0U : 1U) ? 1 : 0;
  // Pairs with publish_written() and publish_read().
  memory_->mine().asleep.store(naps_, asleep ? std::memory_order_seq_cst : std::memory_order_relaxed);
}

// ---- The end of a connection

void ShmConnection::tell_closed(Error error) {
  ChannelHandler* handler = handler_;
  close();
  if (handler == nullptr) return;
  core_.count_callback();
  handler->on_closed(*channel_, error);
}

void ShmConnection::tell_corrupt(std::string_view what) {
  ++part_->statistics.corrupt;
  tell_closed({Errc::corrupt, peer_text(peer_) + " wrote " + std::string(what) + " to the memory that it shares."});
}

void ShmConnection::close() {
  if (state_ == State::closed) return;
  if (!named_.empty()) {  // must come before the owner may change the memory of these payloads
    static_cast<void>(memory_->mine().withdrawn.exchange(1, std::memory_order_seq_cst));
  }
  if (memory_ != nullptr) std::erase(part_->open, this);
  TRIBUTARY_ASSERT(part_->statistics.connections > 0, "the connection to {} ends, and none is counted", peer_);
  state_ = State::closed;
  handler_ = nullptr;
  otherwise_ = nullptr;
  queue_.clear();
  socket_.close();
  --part_->statistics.connections;
  if (ShmAcceptor* acceptor = std::exchange(acceptor_, nullptr)) acceptor->forget(*this);
  core_.leave(*this);
  regions_ = {};
  if (kept_.empty() && taken_.empty()) memory_.reset();
}

void ShmConnection::channel_destroyed() {
  channel_ = nullptr;
  close();
}

void ShmConnection::close_after_flush(Duration limit) {
  if (!taking_frames()) return;
  detached_ = true;
  handler_ = nullptr;
  reader_.forget();
  if (fatal_) return close();
  if (opening()) {
    if (queue_.empty()) return close();
    deadline_ = std::min(deadline_, Clock::now() + std::min<Duration>(limit, std::chrono::hours(24)));
    core_.set_deadline(*this, deadline_ - Clock::now());
    return;  // start() goes on
  }
  core_.set_deadline(*this, limit);
  state_ = State::flushing;
  make_due();
}

void ShmConnection::on_deadline() {
  if (state_ == State::flushing) return close();
  if (!opening()) return;
  if (state_ == State::calling && Clock::now() < deadline_) return call();
  if (detached_ && !otherwise_) return close();  // the flush never began to write
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
  greeting_failed("no answer within " + std::to_string(milliseconds) + " ms");
}

// ---- Handing a connection to another transport

Beginning ShmConnection::hand_on() {
  TRIBUTARY_ASSERT(opening(), "the connection to {} is handed on in state {}", peer_, state_);
  Beginning beginning{.handler = std::exchange(handler_, nullptr),
                      .queue = std::exchange(queue_, {}),
                      .deadline = deadline_,
                      .limit = limit_,
                      .detached = detached_};
  close();
  return beginning;
}

Result<ShmHandOver> ShmConnection::release() {
  if (!serving() || fatal_) {
    return fail(Errc::bad_argument, "the channel to " + peer_text(peer_) + " is not open and cannot be handed over.");
  }
  if (reader_.in_frame() || reader_.stalled() || !kept_.empty() || !taken_.empty() || !queue_.empty() ||
      !queue_.all_told()) {
    return fail(Errc::retry,
                "the channel to " + peer_text(peer_) + " is in the middle of a frame and cannot be handed over now.");
  }
  publish_read();
  publish_payloads_read();
  set_asleep(false);
  ShmHandOver taken{.peer = peer_,
                    .socket = OwnedDescriptor(socket_.release()),
                    .memory = memory_,
                    .written = written_,
                    .read = read_,
                    .read_seen = read_seen_,
                    .naps = naps_,
                    .rung_for = rung_for_,
                    .regions = std::exchange(regions_, {}),
                    .payloads_read = payloads_read_,
                    .payloads_read_seen = payloads_read_seen_};
  close();
  return taken;
}

void ShmConnection::open(ShmHandOver&& taken) {
  TRIBUTARY_ASSERT(state_ == State::calling && memory_ == nullptr, "the connection to {} is opened in state {}", peer_,
                   state_);
  written_ = written_told_ = taken.written;
  read_ = read_told_ = written_seen_ = taken.read;
  read_seen_ = taken.read_seen;
  naps_ = taken.naps;
  rung_for_ = taken.rung_for;
  regions_ = std::move(taken.regions);
  payloads_read_ = payloads_read_told_ = taken.payloads_read;
  payloads_read_seen_ = taken.payloads_read_seen;
  memory_ = std::move(taken.memory);
  state_ = State::open;
  part_->open.push_back(this);
  core_.watch_memory(*this);
  socket_.own(taken.socket.release());
  if (socket_.watch(EPOLLIN | EPOLLRDHUP, *this) != 0) {
    fatal_ = Error{Errc::exhausted, "cannot watch the connection to " + peer_text(peer_) + "."};
  }
  make_due();
}

}  // namespace tributary::transport
