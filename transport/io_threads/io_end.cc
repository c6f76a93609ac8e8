#include "transport/io_threads/io_end.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/io_threads/io_thread.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::io_threads {

namespace {
bool same(const FrameHeader& a, const FrameHeader& b) noexcept {
  return std::memcmp(&a, &b, sizeof(FrameHeader)) == 0;
}
}  // namespace

static_assert(std::has_unique_object_representations_v<FrameHeader>, "headers are compared as bytes");

void IoEnd::carry_out(Command& command) {
  switch (command.kind) {
    case Command::Kind::send:
      // The user's end queues at most as many frames as the channel can. So only a closed channel refuses a frame.
      if (!channel_->send(command.header, command.payload, command.number)) {
        TRIBUTARY_ASSERT(channel_->closed(), "the channel to {} is full of frames", channel_->peer());
      }
      return;
    case Command::Kind::send_copy:
      return channel_->send_copy(command.header, command.details->bytes);
    case Command::Kind::expect:
      expected_.push_back({command.header, command.place});
      return channel_->expect(command.header, command.place);
    case Command::Kind::place:
      return answer(Accept{command.place});
    case Command::Kind::reject:
      return answer(Reject{std::move(*command.details->error)});
    case Command::Kind::close:
      return channel_->close();
    case Command::Kind::flush:
      flushing_ = true;
      return channel_->close_after_flush(command.details->limit);
    case Command::Kind::connect:
    case Command::Kind::adopt:
    case Command::Kind::destroy:
      break;  // the I/O thread carries out these commands itself
  }
  TRIBUTARY_ASSERT(false, "a command of kind {} reaches a channel", static_cast<int>(command.kind));
}

bool IoEnd::still_flushes() {
  if (!channel_->closed()) return true;
  if (std::exchange(flushing_, false)) thread_.report({.kind = Event::Kind::flushed, .key = key_});
  return false;
}

void IoEnd::on_open(Channel&) {
  report_open();
}

void IoEnd::report_open() {
  auto details = std::make_unique<EventDetails>();
  details->peer = channel_->peer();
  details->shares_memory = channel_->shares_memory();
  details->sealed = channel_->sealed();
  thread_.report({.kind = Event::Kind::opened, .key = key_, .details = std::move(details)});
}

/// Announced frames mostly come in the order in which they were announced, so the first entry mostly fits.
std::optional<std::span<std::byte>> IoEnd::take_expected(const FrameHeader& header) {
  const auto begin = expected_.begin() + static_cast<std::ptrdiff_t>(first_);
  const auto found = std::find_if(begin, expected_.end(), [&](const Expected& it) { return same(it.header, header); });
  if (found == expected_.end()) return std::nullopt;
  const std::span<std::byte> memory = found->place;
  std::move_backward(begin, found, found + 1);
  ++first_;
  if (first_ * 2 >= expected_.size()) {
    expected_.erase(expected_.begin(), expected_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  return memory;
}

Placement IoEnd::on_header(Channel&, const FrameHeader& header) {
  if (asked_ && !answer_) return NotYet{};
  const auto announced = take_expected(header);  // uses up an announcement, even one that came after its frame
  was_announced_ = announced.has_value();
  if (answer_) {
    asked_ = false;
    return *std::exchange(answer_, std::nullopt);
  }
  if (announced) return Accept{*announced};
  asked_ = true;
  thread_.report({.kind = Event::Kind::header, .key = key_, .header = header});
  return NotYet{};
}

void IoEnd::answer(Placement placement) {
  TRIBUTARY_ASSERT(asked_ && !answer_, "a place is given to a frame of {} that waits for none", channel_->peer());
  answer_ = std::move(placement);
  channel_->resume();
}

void IoEnd::on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) {
  thread_.report(
      {.kind = Event::Kind::frame, .key = key_, .announced = was_announced_, .header = header, .payload = payload});
}

void IoEnd::on_sent(Channel&, std::uint64_t cookie) {
  thread_.report({.kind = Event::Kind::sent, .key = key_, .cookie = cookie});
}

void IoEnd::on_closed(Channel&, const Error& error) {
  auto details = std::make_unique<EventDetails>();
  details->error = error;
  thread_.report({.kind = Event::Kind::closed, .key = key_, .details = std::move(details)});
}

}  // namespace tributary::transport::io_threads
