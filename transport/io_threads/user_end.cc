#include "transport/io_threads/user_end.h"

#include <utility>

#include "transport/io_threads/core.h"
#include "transport/io_threads/io_end.h"
#include "transport/io_threads/io_thread.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::io_threads {

UserEnd::UserEnd(Core& core, IoThread& thread, IoEnd* end, Key key, ChannelHandler& handler, std::string peer,
                 bool open)
    : core_(core),
      thread_(thread),
      end_(end),
      key_(key),
      handler_(&handler),
      state_(open ? State::open : State::opening),
      peer_(std::move(peer)) {}

void UserEnd::put(Command command) {
  command.end = end_;
  thread_.put(std::move(command));
}

bool UserEnd::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (state_ != State::open && state_ != State::opening) return false;
  if (sends_under_way_ >= core_.frames_queued_max()) return false;
  ++sends_under_way_;
  put({.kind = Command::Kind::send, .header = header, .payload = payload, .number = cookie});
  return true;
}

void UserEnd::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  if (state_ != State::open && state_ != State::opening) return;
  auto details = std::make_unique<CommandDetails>();
  details->bytes.assign(payload.begin(), payload.end());
  put({.kind = Command::Kind::send_copy, .header = header, .details = std::move(details)});
}

void UserEnd::expect(const FrameHeader& header, std::span<std::byte> place) {
  if (state_ != State::open && state_ != State::opening) return;
  ++expected_;
  put({.kind = Command::Kind::expect, .header = header, .place = place});
}

void UserEnd::resume() {
  if (reader_.resume() && state_ == State::open) make_due();
}

void UserEnd::close() {
  if (state_ == State::closed) return;
  end_io();
  state_ = State::closed;
}

void UserEnd::close_after_flush(Duration limit) {
  if (state_ != State::open && state_ != State::opening) return;
  state_ = State::flushing;
  handler_ = nullptr;
  auto details = std::make_unique<CommandDetails>();
  details->limit = limit;
  put({.kind = Command::Kind::flush, .details = std::move(details)});
}

void UserEnd::channel_destroyed() {
  close();
  channel_ = nullptr;
  put({.kind = Command::Kind::destroy});
  core_.forget(*this);  // may destroy this end
}

void UserEnd::shut_down() noexcept {
  state_ = State::closed;
  handler_ = nullptr;
}

/// From here on the I/O thread neither reads nor writes the user's memory.
void UserEnd::end_io() {
  if (lends_memory()) {
    thread_.close_and_wait(*end_);
  } else {
    put({.kind = Command::Kind::close});
  }
  sends_under_way_ = expected_ = 0;
  asked_.reset();
  reader_.forget();
}

void UserEnd::count_callback() noexcept {
  core_.count_callback();
}

void UserEnd::make_due() {
  core_.make_due(*this);
}

void UserEnd::tell_closed(Error error) {
  end_io();
  state_ = State::closed;
  ChannelHandler* const handler = std::exchange(handler_, nullptr);
  core_.count_callback();
  handler->on_closed(*channel_, error);
}

void UserEnd::on_event(Event& event) {
  switch (event.kind) {
    case Event::Kind::flushed:
      if (state_ == State::flushing) state_ = State::closed;
      return;
    case Event::Kind::opened:
      return on_opened(*event.details);
    case Event::Kind::closed:
      if (state_ == State::opening || state_ == State::open) tell_closed(std::move(*event.details->error));
      return;
    case Event::Kind::sent:
      if (state_ != State::open) return;
      TRIBUTARY_ASSERT(sends_under_way_ > 0, "frame {} to {} is sent twice", event.cookie, peer_);
      --sends_under_way_;
      core_.count_callback();
      return handler_->on_sent(*channel_, event.cookie);
    case Event::Kind::header:
      if (state_ == State::open) ask(event.header);
      return;
    case Event::Kind::frame:
      if (state_ == State::open) on_landed(event);
      return;
  }
}

void UserEnd::on_opened(EventDetails& details) {
  peer_ = std::move(details.peer);
  shares_memory_ = details.shares_memory;
  sealed_ = details.sealed;
  if (state_ != State::opening) return;
  state_ = State::open;
  core_.count_callback();
  handler_->on_open(*channel_);
}

/// Asks the handler where the payload goes, and passes the answer to the I/O thread.
void UserEnd::ask(const FrameHeader& header) {
  asked_ = header;
  if (!reader_.place(*this, header)) return;  // the answer comes later, or never
  asked_.reset();
  put({.kind = Command::Kind::place, .place = reader_.payload()});
}

void UserEnd::turn() {
  if (state_ != State::open || !asked_) return;
  reader_.begin_turn();
  if (reader_.stalled()) return;
  const FrameHeader header = *asked_;
  ask(header);
}

/// Handles a frame whose payload is at its place, because on_header has answered or the handler had announced the
/// frame. The handler sees the header of an announced frame only now, and must answer as it has announced.
void UserEnd::on_landed(Event& event) {
  if (event.announced) {
    TRIBUTARY_ASSERT(expected_ > 0, "a frame of {} was announced, and no announcement is left", peer_);
    --expected_;
  }
  if (!reader_.in_frame()) {
    TRIBUTARY_ASSERT(event.announced, "a frame of {} has landed without a place", peer_);
    if (!reader_.place(*this, event.header)) {
      TRIBUTARY_ASSERT(!reader_.stalled(), "a frame of {} was announced, and is not wanted", peer_);
      return;
    }
  }
  TRIBUTARY_ASSERT(reader_.payload().data() == event.payload.data() || event.payload.empty(),
                   "a frame of {} was announced for one place, and belongs at another", peer_);
  reader_.land(event.payload.size());
  static_cast<void>(reader_.deliver(*this));
}

}  // namespace tributary::transport::io_threads
