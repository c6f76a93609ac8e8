// Class Flow: receives. It handles a packet's acknowledgement before its payload, so that the payload's reader sees the
// effect.
#include <algorithm>
#include <bit>

#include "tributary/protocol/assert.h"

#include "transport/packet/flow.h"

namespace tributary::transport::packet {
namespace {

constexpr std::uint32_t kReorderPacketsMax = 64;
constexpr std::uint32_t kReorderShareMax = 8;   // eighths of a round trip beyond one round trip
constexpr std::uint32_t kSmallProbesAfter = 3;  // number of time-outs in a row; see time_out()
constexpr std::uint32_t kLargeSilentMax = 2;
constexpr Duration kSmallFor = std::chrono::seconds(60);

}  // namespace

/// True if the header has no impossible value: it acknowledges only packets that we have sent.
bool Flow::sensible(const PacketHeader& header) const noexcept {
  const std::uint64_t sent_to = next_offset_ + (finish_sent_ ? 1 : 0);
  if (expand(header.received, frames_.acknowledged()) > sent_to) return false;
  if ((header.flags & packet_flags::kAcks) == 0) return true;
  return expand(header.largest, sent_.next()) < sent_.next();
}

bool Flow::receive(const Arrival& arrival, StreamReader& reader, TimePoint now) {
  const PacketHeader& header = arrival.header;
  if (!open_ || !sensible(header)) {
    ++statistics_.senseless;
    return false;
  }
  const bool in_sequence = numbers_.follows(header.number);
  const bool fin = (header.flags & packet_flags::kFin) != 0;
  const bool asks = !arrival.payload.empty() || fin || (header.flags & packet_flags::kPing) != 0;
  const std::uint64_t offset = expand(header.offset, stream_.received());
  const std::uint64_t end = offset + arrival.payload.size();
  // A repeat gets no answer, and is no sign of life: a range that is sent again has a new packet number.
  const bool repeat = numbers_.has(header.number) || (numbers_.forgot(header.number) && (!fin || peer_end_) &&
                                                      (arrival.payload.empty() || stream_.has(offset, end)));
  if (!repeat) last_heard_ = waiting_since_ = now;
  take_acknowledgement(arrival, now);
  if (repeat) {
    ++statistics_.repeats;
    return false;
  }
  if (!arrival.payload.empty() || fin) {
    const bool beyond_end = peer_end_ && (fin ? end != *peer_end_ : end > *peer_end_);
    if (offset > credit_given_ || end > credit_given_ || beyond_end || (fin && end < stream_.received())) {
      ++statistics_.senseless;
      return false;
    }
    if (!arrival.payload.empty() && stream_.receive(offset, arrival.payload, credit_given_ - stream_.consumed(),
                                                    reader) == ReceiveStream::Outcome::no_room) {
      ++statistics_.no_room;
      acknowledge_now_ = true;  // the reader may have taken a part of the payload
      return true;
    }
    if (fin) peer_end_ = end;
  }
  if (arrival.marked) {
    ++marked_;
    ++statistics_.marked;
  }
  note_number(arrival);
  if (asks) note_arrival(arrival, in_sequence, now);
  return true;
}

bool Flow::expects(const Arrival& arrival) const noexcept {
  const PacketHeader& header = arrival.header;
  const std::uint64_t begin = stream_.received();
  return settings_.short_ways && open_ && !arrival.payload.empty() && header.flags == packet_flags::kAcks &&
         !arrival.marked && !numbers_.empty() && header.number == numbers_.largest() + 1 &&
         header.offset == static_cast<std::uint32_t>(begin) && stream_.straight() && !peer_end_ &&
         begin + arrival.payload.size() <= credit_given_ && sensible(header);
}

void Flow::take_expected(const Arrival& arrival, TimePoint now) {
  TRIBUTARY_ASSERT(arrival.header.number == numbers_.largest() + 1, "packet {} goes the short way behind packet {}",
                   arrival.header.number, numbers_.largest());
  last_heard_ = waiting_since_ = now;
  take_acknowledgement(arrival, now);
  stream_.pass(arrival.payload.size());
  note_number(arrival);
  note_arrival(arrival, true, now);
  ++statistics_.short_received;
}

void Flow::note_number(const Arrival& arrival) noexcept {
  if (numbers_.empty() || arrival.header.number > numbers_.largest()) largest_came_ = arrival.at;
  numbers_.note(arrival.header.number);
}

void Flow::note_arrival(const Arrival& arrival, bool in_sequence, TimePoint now) {
  ++unacknowledged_;
  constexpr std::uint16_t kAtOnce = packet_flags::kFin | packet_flags::kPing;
  if (!in_sequence || unacknowledged_ >= 2 || arrival.marked || (arrival.header.flags & kAtOnce) != 0) {
    acknowledge_now_ = true;
  } else {
    acknowledge_at_ = std::min(acknowledge_at_, now + settings_.acknowledge_within);
  }
}

/// True if the packet has no news in its header, like most packets of a burst. on_time() does the work that depends
/// only on time.
bool Flow::tells_nothing_new(const PacketHeader& header) noexcept {
  if ((header.flags & packet_flags::kAcks) == 0) return false;
  if (told_last_ && told_last_->bitmap == header.bitmap && told_last_->received == header.received &&
      told_last_->credit == header.credit && told_last_->largest == header.largest &&
      told_last_->marked == header.marked) {
    return true;
  }
  told_last_ = {header.bitmap, header.received, header.credit, header.largest, header.marked};
  return false;
}

void Flow::take_acknowledgement(const Arrival& arrival, TimePoint now) {
  const PacketHeader& header = arrival.header;
  if (tells_nothing_new(header)) return;
  fresh_packets_ = fresh_lost_ = 0;
  fresh_delay_.reset();
  const std::uint64_t received = expand(header.received, frames_.acknowledged());
  if ((header.flags & packet_flags::kAcks) != 0) {
    const std::uint64_t largest = expand(header.largest, sent_.next());
    if (const SentPacket* packet = sent_.find(largest);
        packet != nullptr && packet->state == SentPacket::State::under_way) {
      round_trip_.sample(now - packet->at);
      fresh_delay_ = std::max(arrival.at - packet->at - std::chrono::microseconds(header.ack_delay_us), Duration(0));
    }
    acknowledge_numbers(largest, header.bitmap);
    acknowledge_below(received);
    find_lost(now);
  }
  if (const std::uint64_t credit = received + header.credit; credit > credit_) {
    credit_ = credit;
    credit_asked_ = 0;
    ask_credit_at_ = TimePoint::max();
  }
  double marked = 0;
  if (const auto more = static_cast<std::int32_t>(header.marked - peer_marked_); more > 0) {
    peer_marked_ = header.marked;
    marked = more;
  }
  if (fresh_packets_ > 0 || marked > 0) {
    congestion_.acknowledged(fresh_packets_, marked, fresh_delay_.value_or(Duration(0)), window_limited_, now,
                             round_trip_.smoothed());
  }
  if (fresh_lost_ > 0) congestion_.lost(fresh_lost_, now, round_trip_.smoothed());
  note_credit_blocked(now);
}

/// Handles only the bits that the previous acknowledgement did not have.
void Flow::acknowledge_numbers(std::uint64_t largest, std::uint64_t bitmap) {
  TRIBUTARY_ASSERT(largest < sent_.next(), "packet {} is acknowledged, and {} were sent", largest, sent_.next());
  std::uint64_t news = bitmap;
  if (latest_told_ && largest >= *latest_told_ && largest - *latest_told_ < 64) {
    const std::uint64_t ahead = largest - *latest_told_;
    news &= ~(ahead == 0 ? bitmap_told_ : bitmap_told_ << ahead | std::uint64_t{1} << (ahead - 1));
  }
  if (!latest_told_ || largest >= *latest_told_) {
    latest_told_ = largest;
    bitmap_told_ = bitmap;
  }
  acknowledge_number(largest);
  for (; news != 0; news &= news - 1) {
    const auto back = static_cast<std::uint64_t>(std::countr_zero(news)) + 1;
    if (back <= largest) acknowledge_number(largest - back);
  }
}

void Flow::acknowledge_number(std::uint64_t number) {
  SentPacket* const packet = sent_.find(number);
  if (packet == nullptr || packet->state == SentPacket::State::gone) return;
  if (packet->state == SentPacket::State::given_up) {  // the packet was only overtaken: wait longer from now on
    ++statistics_.packets_came_late;
    reorder_packets_ = std::min(reorder_packets_ * 2, kReorderPacketsMax);
    reorder_share_ = std::min(reorder_share_ + 1, kReorderShareMax);
  } else {
    ++fresh_packets_;
  }
  if (packet->bytes + head_bytes_ > kDatagramBytesMin) {
    large_silent_ = 0;
  } else if (backoff_ >= kSmallProbesAfter && ++large_silent_ >= kLargeSilentMax) {
    datagram_bytes_ = kDatagramBytesMin;
    small_until_ = std::max(small_until_, packet->at + kSmallFor);
  }
  backoff_ = 0;
  largest_acknowledged_ = std::max(largest_acknowledged_, number);
  sent_.set(*packet, SentPacket::State::gone);
}

void Flow::acknowledge_below(std::uint64_t received) {
  TRIBUTARY_ASSERT(received <= next_offset_ + (finish_sent_ ? 1 : 0), "byte {} is acknowledged, and {} were sent",
                   received, next_offset_);
  statistics_.frames_sent += frames_.acknowledge(received);
  if (finish_sent_ && received == frames_.end() + 1) finish_acknowledged_ = true;
  sent_.trim_gone();
  for (std::uint64_t number = sent_.base(); SentPacket* packet = sent_.find(number); ++number) {
    if (packet->state == SentPacket::State::gone) continue;
    if (packet->end() > received) break;
    if (packet->state == SentPacket::State::under_way) ++fresh_packets_;
    sent_.set(*packet, SentPacket::State::gone);
    backoff_ = 0;
  }
  sent_.trim();
}

/// Gives up packets that were sent long enough before a packet that has come.
void Flow::find_lost(TimePoint now) {
  TRIBUTARY_ASSERT(largest_acknowledged_ <= sent_.next(), "packet {} is acknowledged, and {} were sent",
                   largest_acknowledged_, sent_.next());
  lost_at_ = TimePoint::max();
  const std::uint64_t acknowledged = frames_.acknowledged() + (finish_acknowledged_ ? 1 : 0);
  const Duration patience =
      std::max(round_trip_.latest(), round_trip_.smoothed()) * (8 + static_cast<int>(reorder_share_)) / 8;
  std::size_t left = sent_.under_way();
  for (std::uint64_t number = sent_.base(); left > 0 && number < largest_acknowledged_; ++number) {
    SentPacket* const packet = sent_.find(number);
    if (packet == nullptr || packet->state != SentPacket::State::under_way) continue;
    --left;
    if (packet->bytes > 0 && packet->end() <= acknowledged) {
      ++fresh_packets_;
      sent_.set(*packet, SentPacket::State::gone);
    } else if (number + reorder_packets_ <= largest_acknowledged_ || packet->at + patience <= now) {
      ++fresh_lost_;
      give_up(*packet, number);
    } else {
      lost_at_ = std::min(lost_at_, packet->at + patience);
    }
  }
}

void Flow::give_up(SentPacket& packet, std::uint64_t number) {
  TRIBUTARY_ASSERT(packet.state == SentPacket::State::under_way, "packet {} is given up in state {}", number,
                   packet.state);
  ++statistics_.packets_given_up;
  sent_.set(packet, SentPacket::State::given_up);
  if (packet.bytes == 0 && !packet.fin) {
    ping_wanted_ = true;
  } else {
    lost_.push_back({number, packet.offset, packet.bytes, packet.fin});
  }
}

}  // namespace tributary::transport::packet
