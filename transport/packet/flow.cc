// Class Flow: begins, handles deadlines, and ends.
#include "transport/packet/flow.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

constexpr Duration kNarrowFor = std::chrono::minutes(10);  // later the path may carry more again (RFC 8201, 4)

}  // namespace

Flow::Flow(const PacketSettings& settings, ChunkPool& pool, PacketStatistics& statistics)
    : settings_(settings),
      statistics_(statistics),
      round_trip_(settings.timeout_initial, settings.timeout_min, settings.timeout_max),
      congestion_(settings.congestion),
      stream_(pool),
      window_(settings.window_bytes) {
  lost_at_ = TimePoint::max();
}

void Flow::open(std::uint64_t peer_connection, std::uint64_t credit, std::size_t datagram_bytes,
                std::size_t reserved_bytes, TimePoint now) {
  TRIBUTARY_ASSERT(!open_, "the flow of connection {} opens twice", peer_connection_);
  peer_connection_ = peer_connection;
  head_bytes_ = kPacketHeaderBytes + reserved_bytes;
  TRIBUTARY_ASSERT(head_bytes_ < kDatagramBytesMin && datagram_bytes >= kDatagramBytesMin,
                   "a flow of datagrams of {} bytes opens with headers of {}", datagram_bytes, head_bytes_);
  credit_ = credit;
  credit_given_ = window_;
  datagram_bytes_ = datagram_bytes_route_ = datagram_bytes;
  last_heard_ = waiting_since_ = last_asked_ = now;
  open_ = true;
}

TimePoint Flow::times_out_at() const noexcept {
  return sent_.under_way() > 0 ? last_asked_ + round_trip_.timeout(backoff_) : TimePoint::max();
}

TimePoint Flow::deadline() const noexcept {
  if (!open_) return TimePoint::max();
  TimePoint first = std::min(acknowledge_at_, times_out_at());
  if (sent_.under_way() > 0) return std::min(first, lost_at_);
  if ((!lost_.empty() || has_new()) && congestion_.window() < 1) first = std::min(first, next_paced_);
  return std::min({first, ask_credit_at_, last_heard_ + settings_.keepalive});
}

Flow::Verdict Flow::on_time(TimePoint now) {
  if (!open_) return Verdict::alive;
  if (sent_.under_way() == 0) {
    if (now >= last_heard_ + settings_.keepalive) ping_wanted_ = true;
    if (now >= ask_credit_at_) {
      ping_wanted_ |= credit_blocked();
      ++credit_asked_;
      ask_credit_at_ = TimePoint::max();
    }
    return Verdict::alive;
  }
  if (now >= lost_at_) {
    fresh_lost_ = 0;
    find_lost(now);
    if (fresh_lost_ > 0) congestion_.lost(fresh_lost_, now, round_trip_.smoothed());
  }
  if (now < times_out_at()) return Verdict::alive;
  time_out(now);
  if (now - waiting_since_ >= settings_.peer_timeout) {
    ++statistics_.peers_silent;
    return Verdict::dead;
  }
  return backoff_ == 2 ? Verdict::ask_route : Verdict::alive;
}

/// At the first time-out the flow sends the oldest packet again: its acknowledgement shows which other packets are
/// missing. From the second time-out on all packets count as lost, because their fate is unknown. From the third on a
/// small packet goes first: if only small packets arrive, the path drops large ones silently (RFC 8899).
void Flow::time_out(TimePoint now) {
  TRIBUTARY_ASSERT(sent_.under_way() > 0, "time-out {} of a flow with nothing under way", backoff_ + 1);
  ++statistics_.timeouts;
  ++backoff_;
  congestion_.timed_out(backoff_, now);
  for (std::uint64_t number = sent_.base(); SentPacket* packet = sent_.find(number); ++number) {
    if (packet->state != SentPacket::State::under_way) continue;
    give_up(*packet, number);
    if (backoff_ == 1) break;
  }
  probes_wanted_ = backoff_ == 1 ? 1 : 2;
}

/// While no packet is under way, no answer brings credit. The packet with the other side's credit may be lost, so this
/// side must ask for credit.
void Flow::note_credit_blocked(TimePoint now) noexcept {
  if (credit_blocked() && sent_.under_way() == 0 && ask_credit_at_ == TimePoint::max()) {
    ask_credit_at_ = now + round_trip_.timeout(credit_asked_);
  }
}

void Flow::narrow_to(std::size_t bytes, TimePoint now) noexcept {
  if (bytes >= datagram_bytes_) return;
  datagram_bytes_ = bytes;
  small_until_ = now + kNarrowFor;
}

void Flow::excuse(Duration absence) noexcept {
  waiting_since_ += absence;
}

void Flow::clear() noexcept {
  open_ = false;
  frames_.clear();
  sent_.clear();
  lost_.clear();
  stream_.clear();
}

}  // namespace tributary::transport::packet
