// Class ShmConnection: writes. It copies frames into the ring as far as there is room, and publishes them in pieces, so
// that the reader copies out while the writer still copies in.
#include <algorithm>

#include "transport/shm/peer_text.h"
#include "transport/shm/shm_connection.h"
#include "transport/shm/unix_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {
constexpr std::uint64_t kNoWait = ~std::uint64_t{0};

bool ShmConnection::send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t cookie) {
  if (!taking_frames()) return false;
  if (queue_.borrowed() >= part_->settings.frames_queued_max) return false;
  queue_.push_borrowed(header, payload, cookie);
  if (state_ == State::open) core_.make_dirty(*this);
  return true;
}

void ShmConnection::send_copy(const FrameHeader& header, std::span<const std::byte> payload) {
  if (!taking_frames()) return;
  queue_.push_copy(header, payload);
  if (state_ == State::open) core_.make_dirty(*this);
}

void ShmConnection::write_turn() {
  if (state_ != State::open && state_ != State::flushing) return;
  if (fatal_) return;
  write_frames();
  if (state_ == State::closed) return;
  publish_payloads_read();
  look_for_payloads_read();
  if (state_ == State::flushing && queue_.empty() && named_.empty()) {
    memory_->mine().finished.store(1, std::memory_order_relaxed);  // the socket's end shows it to the other side
    return close();
  }
  tell_sent();
}

void ShmConnection::write_frames() {
  const std::size_t budget_first = bytes_in_turn(part_->settings.poll_bytes_max);
  std::size_t budget = budget_first;
  while (!queue_.empty() || region_words_due()) {
    if (!look_for_room()) break;
    if (budget == 0) {
      make_due();
      break;
    }
    if (!write_some(budget)) {
      wait_for_room();
      break;
    }
  }
  if (budget < budget_first) spend(budget_first - budget);
  if (state_ == State::closed) return;
  publish_written();
  if (queue_.empty()) room_is_enough();
}

/// Returns false if the other side has written an impossible position.
bool ShmConnection::look_for_room() {
  const std::uint64_t read = memory_->theirs().read.load(std::memory_order_acquire);
  if (read == read_seen_) return true;
  if (read - read_seen_ > written_ - read_seen_ || read % kLineBytes != 0) {
    position_cannot_be();
    return false;
  }
  read_seen_ = read;
  return true;
}

void ShmConnection::position_cannot_be() {
  if (state_ == State::flushing) return close();
  if (fatal_) return;
  ++part_->statistics.corrupt;
  fatal_ = Error{Errc::corrupt, peer_text(peer_) + " wrote an impossible position to the memory that it shares."};
  queue_.clear();
  make_due();
}

/// Writes the part of the next frame that fits, with at most kPublishBytes of its payload. Returns false if the ring is
/// full.
bool ShmConnection::write_some(std::size_t& budget) {
  if ((queue_.empty() || queue_.next().offset == 0) && !write_region_words()) return false;
  if (queue_.empty()) return true;
  const std::size_t ring_bytes = memory_->ring_bytes();
  const SendQueue::Next next = queue_.next();
  if (next.offset == 0) {
    if (const auto line = name_payload(next)) return write_named(*line, next, budget);
  }
  std::size_t room = this->room();
  std::size_t taken = 0;
  if (room < kLineBytes) return false;
  if (next.offset == 0) {
    copy_in(memory_->outgoing(), ring_bytes, written_, next.header);
    written_ += kFrameHeaderBytes;
    room -= kFrameHeaderBytes;
    taken = kFrameHeaderBytes;
  }
  const std::size_t done = next.offset == 0 ? 0 : next.offset - kFrameHeaderBytes;
  const std::size_t piece = std::min({room, next.payload.size() - done, kPublishBytes});
  copy_in(memory_->outgoing(), ring_bytes, written_, next.payload.subspan(done, piece));
  written_ = whole_lines(written_ + piece);
  taken += piece;
  part_->statistics.bytes_sent += taken;
  if (const std::size_t completed = queue_.consume(taken); completed > 0) {
    part_->statistics.frames_sent += completed;
    sends_written_ += next.borrowed ? 1 : 0;
  }
  budget -= std::min(budget, taken);
  if (written_ - written_told_ >= kPublishBytes) publish_written();
  return true;
}

void ShmConnection::publish_written() noexcept {
  if (written_ == written_told_) return;
  TRIBUTARY_ASSERT(written_ % kLineBytes == 0 && written_ > written_told_, "position {} is told after {}", written_,
                   written_told_);
  TRIBUTARY_ASSERT(written_ - read_seen_ <= memory_->ring_bytes(), "position {} is told, {} was read, of a ring of {}",
                   written_, read_seen_, memory_->ring_bytes());
  written_told_ = written_;
  memory_->mine().written.store(written_, std::memory_order_seq_cst);  // pairs with set_asleep()
  ring_bell_of(memory_->theirs());
}

/// Waits until half the ring is free: less room is not worth a wake-up, and a writer that is awake sees it without
/// one.
void ShmConnection::wait_for_room() noexcept {
  TRIBUTARY_ASSERT(written_ - read_seen_ >= memory_->ring_bytes() / 2, "{} waits for room, and {} bytes are free",
                   peer_, room());
  publish_written();
  waits_for_room_ = true;
  const std::uint64_t room_at = written_ - memory_->ring_bytes() / 2;
  if (memory_->mine().room_at.load(std::memory_order_relaxed) != room_at) {
    memory_->mine().room_at.store(room_at, std::memory_order_seq_cst);
  }
}

void ShmConnection::room_is_enough() noexcept {
  if (!std::exchange(waits_for_room_, false)) return;
  memory_->mine().room_at.store(kNoWait, std::memory_order_relaxed);
}

/// Wakes the other side, once for each of its sleeps.
void ShmConnection::ring_bell_of(const Side& sleeper) noexcept {
  const std::uint32_t asleep = sleeper.asleep.load(std::memory_order_seq_cst);
  if ((asleep & 1U) == 0 || asleep == rung_for_) return;
  rung_for_ = asleep;
  ++part_->statistics.bells;
  const std::byte bell{1};
  (void)send_message(socket_.get(), std::span(&bell, 1));
}

void ShmConnection::tell_sent() {
  while (serving() && handler_ != nullptr) {
    if (!named_.empty() && named_.front() == sends_told_) return;
    const auto cookie = queue_.next_sent();
    if (!cookie) return;
    ++sends_told_;
    TRIBUTARY_ASSERT(sends_told_ <= sends_written_, "{} sends are told of, and {} were written", sends_told_,
                     sends_written_);
    core_.count_callback();
    handler_->on_sent(*channel_, *cookie);
  }
}

}  // namespace tributary::transport
