// Class TcpConnection: reads. One call reads bytes into the payload's place, and the bytes behind them into the staging
// buffer.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/tcp/tcp_connection.h"
#include "transport/tcp/tcp_sealing.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

void TcpConnection::resume() {
  if (state_ == State::open && reader_.resume()) make_due();
}

void TcpConnection::read_turn() {
  if (TcpSealing::waits_for_key(*this)) TcpSealing::look_for_key(*this);
  reader_.begin_turn();
  std::size_t budget = bytes_in_turn(core_.settings().poll_bytes_max);
  while (serving() && !reader_.stalled() && !TcpSealing::waits_for_key(*this) && serve_staged()) {
    if (!readable_ && !(sealed_ && sealed_->keeps_record())) return;
    if (budget == 0) return make_due();
    receive(budget);
  }
}

/// Consumes the staged bytes. Returns false if reading must stop, because the handler answers NotYet or the channel is
/// closed.
bool TcpConnection::serve_staged() {
  while (true) {
    if (!reader_.in_frame()) {
      if (staged() < kFrameHeaderBytes) return true;
      if (!place_next()) return false;
    }
    const std::span<std::byte> rest = reader_.rest();
    const std::size_t piece = std::min(staged(), rest.size());
    if (piece > 0) std::memcpy(rest.data(), staging_.data() + staged_begin_, piece);
    staged_begin_ += piece;
    reader_.land(piece);
    if (!reader_.whole()) return true;
    if (!deliver()) return false;
  }
}

/// Asks the handler where the payload of the staged header goes.
bool TcpConnection::place_next() {
  const auto bytes = std::span(staging_).subspan(staged_begin_).first<kFrameHeaderBytes>();
  const auto header = decode(bytes);
  if (!header) {
    if (!sealed_ && TcpSealing::meets_seal(*this, bytes)) return false;
    ++core_.statistics.rejects[static_cast<std::size_t>(header.error())];
    tell_closed(corrupt_frame(peer_, header.error()));
    return false;
  }
  if (!reader_.place(*this, *header)) return false;
  staged_begin_ += kFrameHeaderBytes;
  return true;
}

bool TcpConnection::deliver() {
  ++core_.statistics.frames_received;
  return reader_.deliver(*this);
}

/// Reads once, by one system call.
void TcpConnection::receive(std::size_t& budget) {
  TRIBUTARY_ASSERT(staged() < kFrameHeaderBytes, "{} staged bytes are not served before more are read", staged());
  if (staged_begin_ > 0) {
    std::memmove(staging_.data(), staging_.data() + staged_begin_, staged());
    staged_end_ -= staged_begin_;
    staged_begin_ = 0;
  }
  if (sealed_) return TcpSealing::receive(*this, budget);
  const std::span<std::byte> missing = reader_.in_frame() ? reader_.rest() : std::span<std::byte>{};
  const std::size_t rest = missing.size();
  TRIBUTARY_ASSERT(staged_begin_ == 0 && staged_end_ < staging_.size(), "{} of {} staged bytes leave no room to read",
                   staged_end_, staging_.size());
  const std::size_t room = staging_.size() - staged_end_;
  ++core_.statistics.read_calls;
  ssize_t got = 0;
  if (rest == 0) {
    got = ::recv(socket_.get(), staging_.data() + staged_end_, room, MSG_DONTWAIT);
  } else {
    iovec vectors[2] = {{missing.data(), rest}, {staging_.data() + staged_end_, room}};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = 2;
    got = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
  }
  if (got <= 0) return receive_nothing(got == 0 ? 0 : errno);
  const auto bytes = static_cast<std::size_t>(got);
  TRIBUTARY_ASSERT(bytes <= rest + room, "{} bytes were read where {} fit", bytes, rest + room);
  core_.statistics.bytes_received += bytes;
  budget -= std::min(budget, bytes);
  spend(bytes);
  const std::size_t direct = std::min(bytes, rest);
  staged_end_ += bytes - direct;
  if (bytes < rest + room) read_short();
  if (rest == 0) return;
  reader_.land(direct);
  if (reader_.whole()) static_cast<void>(deliver());
}

/// Handles a read that brought fewer bytes than asked for. Later bytes cause an event, and a read before that event
/// finds nothing. Two cases cause no event: an end or an error that was reported together with the last bytes, and
/// bytes behind urgent data, at which a read stops. In these cases, reads go on until the system has no more bytes.
void TcpConnection::read_short() noexcept {
  if (!tells_no_more_) readable_ = false;
}

void TcpConnection::receive_nothing(int error) {
  if (error == EINTR) return;
  if (error != EAGAIN && error != EWOULDBLOCK) return tell_closed(lost(error));
  readable_ = false;
  // Ends the connection with a write's error: no more bytes come on a connection to which this side cannot write.
  if (write_error_ != 0) tell_closed(lost(write_error_));
}

/// After this side's close: reads all bytes up to the other side's close, and throws them away.
void TcpConnection::discard_turn() {
  TRIBUTARY_ASSERT(handler_ == nullptr && !reader_.in_frame(), "bytes of {} are thrown away in state {}", peer_,
                   state_);
  std::array<std::byte, 16384> scratch;
  for (std::size_t budget = core_.settings().poll_bytes_max; readable_ && !peer_finished_ && budget > 0;) {
    const ssize_t got = ::recv(socket_.get(), scratch.data(), scratch.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return close();
    if (got == 0) peer_finished_ = true;
    if (got < 0) {
      readable_ = false;
    } else if (got < static_cast<ssize_t>(scratch.size())) {
      read_short();
    }
    budget -= std::min(budget, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  if (peer_finished_) return state_ == State::lingering ? close() : void();
  if (readable_) make_due();
}

}  // namespace tributary::transport
