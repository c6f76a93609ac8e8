// Class Flow: sends. Lost ranges go first, then new bytes, then acknowledgements that no other packet carries.
#include <algorithm>

#include "tributary/protocol/assert.h"

#include "transport/packet/flow.h"

namespace tributary::transport::packet {

bool Flow::has_new() const noexcept {
  if (next_offset_ < frames_.end()) return next_offset_ < credit_;
  return finishing_ && !finish_sent_;
}

/// True if window and pacing allow another packet that counts as under way.
bool Flow::window_open(TimePoint now) const noexcept {
  const double window = congestion_.window();
  if (window < 1) return sent_.under_way() == 0 && now >= next_paced_;
  return static_cast<double>(sent_.bytes_under_way()) < window * static_cast<double>(payload_bytes_max());
}

std::uint64_t Flow::credit_to_give() const noexcept {
  return std::max(credit_given_, stream_.consumed() + window_);
}

/// True if the other side may be waiting for more credit.
bool Flow::credit_news() const noexcept {
  return credit_to_give() - credit_given_ >= std::max<std::size_t>(window_ / 4, 1);
}

bool Flow::wants_to_send(TimePoint now) const noexcept {
  if (!open_) return false;
  if (acknowledge_now_ || acknowledge_at_ <= now || ping_wanted_ || probes_wanted_ > 0 || credit_news()) return true;
  return (!lost_.empty() || has_new()) && window_open(now);
}

bool Flow::transmit(PacketSink& sink, std::size_t packets_max, TimePoint now) {
  if (!open_) return false;
  if (datagram_bytes_ < datagram_bytes_route_ && now >= small_until_) datagram_bytes_ = datagram_bytes_route_;
  header_ = told(now);
  for (std::size_t i = send_frames(sink, packets_max, now); i < packets_max; ++i) {
    const Sent sent = send_one(sink, now);
    if (sent == Sent::port_full) return true;
    if (sent == Sent::nothing_to_send) break;
  }
  const bool must_tell = acknowledge_now_ || acknowledge_at_ <= now || credit_news();
  if (must_tell && send_plain(sink, 0, now) == Sent::port_full) return true;
  note_credit_blocked(now);
  return wants_to_send(now);
}

Flow::Sent Flow::send_one(PacketSink& sink, TimePoint now) {
  drop_stale_lost();
  const bool some = !lost_.empty() || has_new();
  const bool open = window_open(now);
  window_limited_ = some && !open;
  if (some && (open || probes_wanted_ > 0)) {
    // After several time-outs in a row the path may have begun to drop large packets: the first probe is small.
    const std::size_t bytes_max =
        probes_wanted_ > 1 && backoff_ >= 3 ? kDatagramBytesMin - head_bytes_ : payload_bytes_max();
    return lost_.empty() ? send_new(sink, now) : send_again(sink, bytes_max, now);
  }
  if (ping_wanted_ || probes_wanted_ > 0) return send_plain(sink, packet_flags::kPing, now);
  return Sent::nothing_to_send;
}

/// Drops ranges whose bytes have arrived meanwhile, or whose packet was only overtaken.
void Flow::drop_stale_lost() noexcept {
  while (!lost_.empty()) {
    const LostRange& range = lost_.front();
    const SentPacket* const packet = sent_.find(range.number);
    const bool came = packet != nullptr && packet->state != SentPacket::State::given_up;
    const bool covered = range.offset + range.bytes <= frames_.acknowledged() && (!range.fin || finish_acknowledged_);
    if (!came && !covered) return;
    lost_.pop_front();
  }
}

Flow::Sent Flow::send_again(PacketSink& sink, std::size_t bytes_max, TimePoint now) {
  LostRange& range = lost_.front();
  if (range.offset < frames_.acknowledged()) {
    const auto known = std::min<std::uint64_t>(frames_.acknowledged() - range.offset, range.bytes);
    range.offset += known;
    range.bytes -= static_cast<std::uint32_t>(known);
  }
  const std::uint64_t before = sent_.next();
  const Sent sent = send_range(sink, range.offset, std::min<std::size_t>(range.bytes, bytes_max), range.fin, now);
  if (sent != Sent::yes) return sent;
  TRIBUTARY_ASSERT(sent_.find(before) != nullptr && sent_.find(before)->bytes <= range.bytes,
                   "packet {} carries more than the lost {} bytes", before, range.bytes);
  ++statistics_.packets_sent_again;
  const std::uint32_t bytes = sent_.find(before)->bytes;
  range.offset += bytes;
  range.bytes -= bytes;
  if (range.bytes == 0) lost_.pop_front();
  return Sent::yes;
}

Flow::Sent Flow::send_new(PacketSink& sink, TimePoint now) {
  const std::uint64_t before = sent_.next();
  const std::size_t bytes_max =
      std::min<std::uint64_t>(payload_bytes_max(), std::max(credit_, next_offset_) - next_offset_);
  const Sent sent = send_range(sink, next_offset_, bytes_max, finishing_, now);
  if (sent != Sent::yes) return sent;
  const SentPacket& packet = *sent_.find(before);
  next_offset_ += packet.bytes;
  finish_sent_ |= packet.fin;
  TRIBUTARY_ASSERT(next_offset_ <= frames_.end() && (packet.bytes == 0 || next_offset_ <= credit_),
                   "byte {} was sent, of a stream of {}, with credit to {}", next_offset_, frames_.end(), credit_);
  return Sent::yes;
}

Flow::Sent Flow::send_range(PacketSink& sink, std::uint64_t offset, std::size_t bytes_max, bool fin, TimePoint now) {
  TRIBUTARY_ASSERT(offset >= frames_.acknowledged() && offset <= frames_.end(),
                   "byte {} is sent, of a stream that is acknowledged to {} and ends at {}", offset,
                   frames_.acknowledged(), frames_.end());
  const auto part = frames_.part(offset, bytes_max, std::span(head_).subspan(head_bytes_));
  TRIBUTARY_ASSERT(part.bytes() <= bytes_max, "{} bytes are sent where {} may be", part.bytes(), bytes_max);
  fin = fin && offset + part.bytes() == frames_.end();
  header_.set(fin ? packet_flags::kFin : std::uint16_t{0}, sent_.next(), static_cast<std::uint32_t>(offset));
  if (!sink.send_packet(header_, std::span(head_).first(head_bytes_ + part.copied), part.rest)) {
    return Sent::port_full;
  }
  sent(offset, static_cast<std::uint32_t>(part.bytes()), fin, true, now);
  return Sent::yes;
}

/// Sends a packet without a part of the stream: an acknowledgement, or a ping.
Flow::Sent Flow::send_plain(PacketSink& sink, std::uint16_t flags, TimePoint now) {
  header_.set(flags, sent_.next(), static_cast<std::uint32_t>(next_offset_));
  if (!sink.send_packet(header_, std::span(head_).first(head_bytes_), {})) return Sent::port_full;
  sent(next_offset_, 0, false, (flags & packet_flags::kPing) != 0, now);
  return Sent::yes;
}

/// Fills in the header's words that are the same in all packets of one transmit().
DataHeader Flow::told(TimePoint now) const noexcept {
  TRIBUTARY_ASSERT(stream_.received() <= credit_given_, "{} bytes came, with credit to {}", stream_.received(),
                   credit_given_);
  PacketHeader head;
  head.type = PacketType::data;
  head.connection = peer_connection_;
  head.received = static_cast<std::uint32_t>(stream_.received() + (peer_end_known() ? 1 : 0));
  head.credit = static_cast<std::uint32_t>(credit_to_give() - stream_.received());
  head.marked = marked_;
  if (numbers_.empty()) return DataHeader(head);
  head.flags = packet_flags::kAcks;
  head.largest = static_cast<std::uint32_t>(numbers_.largest());
  head.bitmap = numbers_.bitmap();
  const auto delay = std::chrono::duration_cast<std::chrono::microseconds>(now - largest_came_).count();
  head.ack_delay_us = static_cast<std::uint32_t>(std::clamp<std::int64_t>(delay, 0, UINT32_MAX));
  return DataHeader(head);
}

/// Notes that the packet with the next number was sent.
void Flow::sent(std::uint64_t offset, std::uint32_t bytes, bool fin, bool asks, TimePoint now) {
  if (asks) note_asked(now);
  sent_.add(offset, bytes, fin, asks, now);
  note_told();
}

/// Notes the time of a packet that must be answered. Called before the packet is added to the packets under way.
void Flow::note_asked(TimePoint now) noexcept {
  if (sent_.under_way() == 0 && backoff_ == 0) waiting_since_ = now;
  last_asked_ = now;
  ping_wanted_ = false;
  if (probes_wanted_ > 0) --probes_wanted_;
  if (congestion_.window() < 1) next_paced_ = now + congestion_.pace(round_trip_.smoothed());
}

/// Notes that header_, with its acknowledgement and credit, was sent to the other side.
void Flow::note_told() noexcept {
  credit_given_ = credit_to_give();
  unacknowledged_ = 0;
  acknowledge_now_ = false;
  acknowledge_at_ = TimePoint::max();
}

}  // namespace tributary::transport::packet
