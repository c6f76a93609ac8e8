// Class ShmConnection: reads. It copies the other side's numbers and headers once, checks the copy and uses only the
// copy.
#include <algorithm>

#include "tributary/protocol/assert.h"

#include "transport/shm/shm_connection.h"

namespace tributary::transport {

void ShmConnection::resume() {
  if (state_ == State::open && reader_.resume()) make_due();
}

void ShmConnection::read_turn() {
  const std::size_t budget_first = bytes_in_turn(part_->settings.poll_bytes_max);
  std::size_t budget = budget_first;
  out_of_turn_ = false;
  reader_.begin_turn();
  while (look_for_more() && !reader_.stalled()) {
    if (budget == 0) {
      out_of_turn_ = true;
      make_due();
      break;
    }
    if (!(reader_.in_frame() ? land(budget) : serve_next(budget))) break;
  }
  if (budget < budget_first) spend(budget_first - budget);
  if (serving()) publish_read();
}

/// True if there are bytes to read.
bool ShmConnection::look_for_more() {
  if (!serving()) return false;
  const std::uint64_t written = memory_->theirs().written.load(std::memory_order_acquire);
  if (written - read_told_ > memory_->ring_bytes() || written - read_ > memory_->ring_bytes() ||
      written % kLineBytes != 0) {
    tell_corrupt("an impossible position");
    return false;
  }
  written_seen_ = written;
  return written != read_;
}

/// Reads a header. Its first byte is at `read_`, so a whole line is there, and the ring's end does not divide the line.
/// Returns false if nothing more can be read now.
bool ShmConnection::serve_next(std::size_t& budget) {
  TRIBUTARY_ASSERT(read_ % kLineBytes == 0 && written_seen_ - read_ >= kLineBytes,
                   "a header is read at {}, and {} was written", read_, written_seen_);
  FrameBytes bytes;
  copy_out(memory_->incoming(), memory_->ring_bytes(), read_, bytes);
  if (const auto line = region_line(bytes)) return serve_region_line(*line, budget);
  const auto header = decode(bytes);
  if (!header) {
    ++part_->statistics.corrupt;
    tell_closed(corrupt_frame(peer_, header.error()));
    return false;
  }
  switch (in_place(*header)) {
    case InPlace::yes:
      return take_in_place(*header, budget);
    case InPlace::not_yet:
      return false;
    case InPlace::no:
      break;
  }
  return place(*header) && land(budget);
}

/// Offers the handler a payload where it lies. The payload must be large enough and in one piece, and must leave half
/// of the ring to the writer, so that the writer has room for the part that is still missing.
ShmConnection::InPlace ShmConnection::in_place(const FrameHeader& header) {
  const std::size_t ring_bytes = memory_->ring_bytes();
  const std::uint64_t begin = read_ + kFrameHeaderBytes;
  const std::uint64_t end = begin + whole_lines(header.payload_bytes);
  const std::uint64_t kept_since = kept_.empty() ? read_ : kept_.front().begin;
  if (header.payload_bytes < kInPlaceBytesMin || end - kept_since > ring_bytes / 2) return InPlace::no;
  if ((begin & (ring_bytes - 1)) + header.payload_bytes > ring_bytes) return InPlace::no;
  if (!handler_->takes_in_place(*channel_, header)) return InPlace::no;
  return end - read_ <= written_seen_ - read_ ? InPlace::yes : InPlace::not_yet;
}

bool ShmConnection::take_in_place(const FrameHeader& header, std::size_t& budget) {
  const std::byte* payload = memory_->incoming() + ((read_ + kFrameHeaderBytes) & (memory_->ring_bytes() - 1));
  kept_.push_back({.begin = read_, .payload = payload, .given_back = false});
  reader_.take(header, {payload, header.payload_bytes});
  read_ += kFrameHeaderBytes + whole_lines(header.payload_bytes);
  TRIBUTARY_ASSERT(read_ <= written_seen_, "a payload is taken up to {}, and {} was written", read_, written_seen_);
  budget -= std::min<std::size_t>(budget, kFrameHeaderBytes + header.payload_bytes);
  ++part_->statistics.frames_in_place;
  return deliver();
}

void ShmConnection::give_back(std::span<const std::byte> payload) {
  if (!taken_.empty() && give_back_taken(payload.data())) return;
  const auto at = std::ranges::find(kept_, payload.data(), &Kept::payload);
  if (at == kept_.end()) return;
  at->given_back = true;
  const auto first_kept = std::ranges::find(kept_, false, &Kept::given_back);
  kept_.erase(kept_.begin(), first_kept);
  if (state_ == State::open) publish_read();
}

/// Asks the handler where the payload goes.
bool ShmConnection::place(const FrameHeader& header) {
  if (!reader_.place(*this, header)) return false;
  read_ += kFrameHeaderBytes;
  return true;
}

/// Returns false if the channel is closed.
bool ShmConnection::land(std::size_t& budget) {
  TRIBUTARY_ASSERT(read_ <= written_seen_, "position {} is read, and {} was written", read_, written_seen_);
  const std::uint64_t there = written_seen_ - read_;
  const std::span<std::byte> rest = reader_.rest();
  const std::size_t piece = std::min<std::uint64_t>({there, rest.size(), kPublishBytes});
  copy_out(memory_->incoming(), memory_->ring_bytes(), read_, rest.first(piece));
  read_ += piece;
  reader_.land(piece);
  budget -= std::min(budget, piece + kFrameHeaderBytes);
  if (reader_.whole()) {
    read_ = whole_lines(read_);  // stays within the writer's position, because the writer publishes whole lines
    TRIBUTARY_ASSERT(read_ <= written_seen_, "position {} is read, and {} was written", read_, written_seen_);
    return deliver();
  }
  publish_read();
  return true;
}

bool ShmConnection::deliver() {
  ++part_->statistics.frames_received;
  part_->statistics.bytes_received += kFrameHeaderBytes + reader_.payload().size();
  return reader_.deliver(*this);
}

/// Gives the room back to the writer, in whole lines, up to the first payload that is still kept.
void ShmConnection::publish_read() noexcept {
  const std::uint64_t whole = (kept_.empty() ? read_ : kept_.front().begin) / kLineBytes * kLineBytes;
  if (whole == read_told_) return;
  TRIBUTARY_ASSERT(whole > read_told_ && whole <= written_seen_, "position {} is given back after {}, of {} written",
                   whole, read_told_, written_seen_);
  const std::uint64_t told = std::exchange(read_told_, whole);
  memory_->mine().read.store(whole, std::memory_order_seq_cst);  // pairs with set_asleep()
  const Side& theirs = memory_->theirs();
  const std::uint64_t room_at = theirs.room_at.load(std::memory_order_seq_cst);
  if (room_at > told && room_at <= whole) ring_bell_of(theirs);
}

}  // namespace tributary::transport
