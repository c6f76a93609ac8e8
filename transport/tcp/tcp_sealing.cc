#include "transport/tcp/tcp_sealing.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport {

// ---- The greeting

bool TcpSealing::begin(TcpConnection& c) {
  FrameHeader first;
  if (!c.queue_.empty()) {
    if (const auto header = decode(c.queue_.next().header.first<kFrameHeaderBytes>())) first = *header;
  }
  const bool of_group = first.group != 0;
  const auto link = choose_link(*c.core_.settings().keys, first.group, of_group ? first.epoch : 0,
                                of_group ? first.lane : 0, c.peer_);
  if (link && !*link) return false;
  auto stream = link ? SealedStream::of_client(**link) : std::unexpected(link.error());
  if (!stream) {
    c.fatal_ = std::move(stream.error());
    c.make_due();
    return true;
  }
  c.sealed_ = std::move(*stream);
  c.make_due();
  return true;
}

void TcpSealing::greet(TcpConnection& c) {
  if (c.fatal_) return c.tell_closed(std::move(*c.fatal_));
  if (!c.sealed_->unsent().empty() && c.writable_ && !write_unsent(c) && c.write_error_ != 0) {
    return c.tell_closed(c.lost(c.write_error_));
  }
  while (c.readable_) {
    const auto room = c.sealed_->greeting_room();
    const ssize_t got = ::recv(c.socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (got == 0) {
      return c.tell_closed({Errc::peer_gone, c.peer_ +
                                                 " closed the connection instead of answering the hello of a sealed "
                                                 "stream; a process of an older version does so."});
    }
    if (got < 0) {
      c.receive_nothing(errno);
      if (c.state_ == TcpConnection::State::closed) return;
      continue;
    }
    switch (c.sealed_->greet(static_cast<std::size_t>(got), c.peer_)) {
      case SealedStream::Greeted::more:
        continue;
      case SealedStream::Greeted::sealed:
        return c.opened();
      case SealedStream::Greeted::waits:  // only a listener waits
      case SealedStream::Greeted::in_clear:
      case SealedStream::Greeted::refused:
        return c.tell_closed(c.sealed_->error());
    }
  }
}

void TcpSealing::write_demand(TcpConnection& c) {
  if (!c.sealed_->unsent().empty() && c.writable_) static_cast<void>(write_unsent(c));
}

/// The listener's side: reads what the client begins with.
void TcpSealing::receive_greeting(TcpConnection& c) {
  const auto room = c.sealed_->greeting_room();
  const ssize_t got = ::recv(c.socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
  if (got <= 0) return c.receive_nothing(got == 0 ? 0 : errno);
  greeted(c, c.sealed_->greet(static_cast<std::size_t>(got), c.peer_));
}

void TcpSealing::look_for_key(TcpConnection& c) {
  greeted(c, c.sealed_->look_for_key(c.peer_));
}

void TcpSealing::greeted(TcpConnection& c, SealedStream::Greeted greeted) {
  switch (greeted) {
    case SealedStream::Greeted::more:
      return;
    case SealedStream::Greeted::waits:
      return c.core_.set_deadline(c, kKeyPause);
    case SealedStream::Greeted::sealed:
      c.core_.make_dirty(c);  // the answer
      return;
    case SealedStream::Greeted::in_clear: {
      TRIBUTARY_ASSERT(c.staged() == 0, "{} bytes are staged before the first", c.staged());
      c.staged_begin_ = 0;
      c.staged_end_ = static_cast<std::size_t>(std::ranges::copy(c.sealed_->greeting(), c.staging_.begin()).out -
                                               c.staging_.begin());
      c.sealed_.reset();
      return;
    }
    case SealedStream::Greeted::refused:
      return refuse(c, c.sealed_->refusal(), c.sealed_->error());
  }
}

/// Tells the other side the reason. Bytes that this side had not read would make the system reset the connection, and
/// the reset might overtake the reason.
void TcpSealing::refuse(TcpConnection& c, RefuseReason reason, const Error& error) {
  ++c.core_.statistics.seals_refused;
  if (reason != RefuseReason::none) {
    const auto room = c.core_.room_to_open();
    static_cast<void>(::recv(c.socket_.get(), room.data(), room.size(), MSG_DONTWAIT));
    const GreetingBytes refusal = refusal_of(reason);
    static_cast<void>(::send(c.socket_.get(), refusal.data(), refusal.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    static_cast<void>(::shutdown(c.socket_.get(), SHUT_WR));
  }
  c.tell_closed(error);
}

bool TcpSealing::meets_seal(TcpConnection& c, std::span<const std::byte> bytes) {
  if (!begins_sealed(bytes)) return false;
  if (const auto reason = refusal_in(bytes); reason != RefuseReason::none) {
    c.tell_closed(refused_by(c.peer_, reason));
  } else {
    refuse(c, RefuseReason::never_seals,
           {Errc::denied, c.peer_ + " seals its connection, and this side has security 'off'; set the same "
                                    "TRIBUTARY_SECURITY on every rank."});
  }
  return true;
}

// ---- Reading

void TcpSealing::receive(TcpConnection& c, std::size_t& budget) {
  if (!c.sealed_->ready()) return receive_greeting(c);
  const auto room = c.core_.room_to_open();
  std::size_t have = c.sealed_->take_kept(room);
  if (!c.sealed_->keeps_record()) {
    ++c.core_.statistics.read_calls;
    const ssize_t got = ::recv(c.socket_.get(), room.data() + have, room.size() - have, MSG_DONTWAIT);
    if (got <= 0) return c.receive_nothing(got == 0 ? 0 : errno);
    const auto bytes = static_cast<std::size_t>(got);
    c.core_.statistics.bytes_received += bytes;
    budget -= std::min(budget, bytes);
    c.spend(bytes);
    if (bytes < room.size() - have) c.read_short();
    have += bytes;
  }
  c.sealed_->begin_opening(room.first(have));
  open_records(c);
}

/// Opens records until a handler stops it. A callback may close the connection or hand it over, and the sealed stream
/// with it.
void TcpSealing::open_records(TcpConnection& c) {
  while (!c.reader_.stalled()) {
    switch (c.sealed_->next()) {
      case SealedStream::Next::senseless:
        return corrupt(c, "its length is impossible");
      case SealedStream::Next::none:
        return c.sealed_->end_opening();
      case SealedStream::Next::record:
        if (!open_record(c)) return c.serving() && c.sealed_ ? c.sealed_->end_opening() : void();
    }
  }
  c.sealed_->end_opening();
}

/// Returns false if reading must stop.
bool TcpSealing::open_record(TcpConnection& c) {
  const RecordHead head = c.sealed_->head();
  const std::size_t staged = c.staged();
  TRIBUTARY_ASSERT(staged < kFrameHeaderBytes, "{} staged bytes are not served before a record is opened", staged);
  if (head.payload) {
    const bool fits = staged == 0 && c.reader_.in_frame() && head.content_bytes <= c.reader_.rest().size();
    if (!fits) return corrupt(c, "it has a payload that no frame waits for"), false;
    if (!c.sealed_->open(c.reader_.rest().first(head.content_bytes))) return corrupt(c, "it was changed"), false;
    c.reader_.land(head.content_bytes);
    return !c.reader_.whole() || c.deliver();
  }
  std::copy_n(c.staging_.begin() + static_cast<std::ptrdiff_t>(c.staged_begin_), staged, c.staging_.begin());
  c.staged_begin_ = 0;
  c.staged_end_ = staged;
  TRIBUTARY_ASSERT(head.content_bytes <= c.staging_.size() - staged, "a record of {} bytes goes behind {}",
                   head.content_bytes, staged);
  if (!c.sealed_->open(std::span(c.staging_).subspan(staged, head.content_bytes))) {
    return corrupt(c, "it was changed"), false;
  }
  c.staged_end_ += head.content_bytes;
  return c.serve_staged();
}

void TcpSealing::corrupt(TcpConnection& c, const std::string& what) {
  ++c.core_.statistics.records_forged;
  c.tell_closed({Errc::corrupt, "record " + std::to_string(c.sealed_->records_opened()) +
                                    " of the sealed connection to " + c.peer_ + " is not authentic: " + what +
                                    " on its way, or by a process between the two sides."});
}

// ---- Writing

/// Writes bytes that are sealed already. Returns false if the system does not take all of them.
bool TcpSealing::write_unsent(TcpConnection& c) {
  const auto unsent = c.sealed_->unsent();
  ++c.core_.statistics.write_calls;
  const ssize_t wrote = ::send(c.socket_.get(), unsent.data(), unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (wrote < 0) {
    if (errno == EINTR) return true;
    c.writable_ = false;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (c.state_ != TcpConnection::State::connecting) {
      c.write_failed(errno);
    } else {
      c.write_error_ = errno;
    }
    return false;
  }
  const auto bytes = static_cast<std::size_t>(wrote);
  if (bytes < unsent.size()) c.writable_ = false;
  c.sealed_->note_sent(bytes);
  if (c.state_ == TcpConnection::State::open && c.bytes_watch_.begin()) {
    c.core_.set_deadline(c, BytesWatch::kFirst);
  }
  return c.writable_;
}

bool TcpSealing::write_some(TcpConnection& c, std::size_t& budget) {
  if (!c.sealed_->unsent().empty()) return write_unsent(c);
  const auto room = c.core_.room_to_seal();
  const auto filled = c.sealed_->fill(c.queue_, room, budget);
  if (filled.failed) {
    c.write_failed(EPROTO);
    return false;
  }
  c.core_.statistics.bytes_sent += filled.content;
  c.core_.statistics.frames_sent += filled.frames;
  budget -= std::min(budget, filled.content);
  c.spend(filled.content);
  ++c.core_.statistics.write_calls;
  const auto records = room.first(filled.bytes);
  const ssize_t wrote = ::send(c.socket_.get(), records.data(), records.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  const bool interrupted = wrote < 0 && errno == EINTR;
  if (wrote < 0 && !interrupted && errno != EAGAIN && errno != EWOULDBLOCK) {
    c.write_failed(errno);
    return false;
  }
  const std::size_t bytes = wrote < 0 ? 0 : static_cast<std::size_t>(wrote);
  if (bytes < records.size()) {
    c.sealed_->keep_unsent(records.subspan(bytes));
    c.writable_ = interrupted;
  }
  if (bytes > 0 && c.state_ == TcpConnection::State::open && c.bytes_watch_.begin()) {
    c.core_.set_deadline(c, BytesWatch::kFirst);
  }
  return c.writable_;
}

}  // namespace tributary::transport
