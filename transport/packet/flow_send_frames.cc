// The short way for most of a burst: it sends new frames, each in one packet, while no packet is lost and the window is
// open. It sends the same packets as transmit() would, and leaves the flow in the same state, but does the work that
// the packets share only once. transmit() handles all other cases.
#include <algorithm>
#include <array>
#include <cstring>

#include "transport/packet/flow.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

bool PacketSink::send_frame(const DataHeader& header, const WholeFrame& frame) {
  alignas(64) std::array<std::byte, kPacketHeaderBytes + kFrameHeaderBytes> head;
  std::ranges::copy(frame.header, head.begin() + kPacketHeaderBytes);
  return send_packet(header, head, frame.payload);
}

/// True if no packet must go before new packets, no new packet ends the stream, and all new packets have the same form.
bool Flow::sends_plainly() const noexcept {
  return settings_.short_ways && lost_.empty() && probes_wanted_ == 0 && !finishing_ && congestion_.window() >= 1 &&
         head_bytes_ == kPacketHeaderBytes;
}

/// Returns the number of packets that were sent.
std::size_t Flow::send_frames(PacketSink& sink, std::size_t packets_max, TimePoint now) {
  if (!sends_plainly() || credit_ <= next_offset_) return 0;
  const std::size_t payload_max = payload_bytes_max();
  const double window_bytes = congestion_.window() * static_cast<double>(payload_max);
  std::size_t count = 0;
  while (count < packets_max && static_cast<double>(sent_.bytes_under_way()) < window_bytes) {
    const auto frame = frames_.whole(next_offset_, std::min<std::uint64_t>(payload_max, credit_ - next_offset_));
    if (!frame) break;
    header_.set(0, sent_.next(), static_cast<std::uint32_t>(next_offset_));
    if (!sink.send_frame(header_, *frame)) break;
    if (count++ == 0) note_asked(now);
    const auto bytes = static_cast<std::uint32_t>(frame->bytes());
    sent_.add(next_offset_, bytes, false, true, now);
    next_offset_ += bytes;
    TRIBUTARY_ASSERT(next_offset_ <= credit_, "byte {} was sent, with credit to {}", next_offset_, credit_);
  }
  if (count == 0) return 0;
  window_limited_ = false;
  note_told();
  statistics_.short_sent += count;
  return count;
}

}  // namespace tributary::transport::packet
