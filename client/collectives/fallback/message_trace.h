#pragma once
// Notes the moments of messages between ranks for a trace. While no trace is recorded, a message costs one relaxed load.
#include <cstdint>
#include <memory>
#include <utility>

#include "client/collectives/fallback/peer_link.h"
#include "tributary/protocol/segment_trace.h"

namespace tributary::client {

class MessageTrace {
 public:
  /// `log`: nullptr: no trace. `rank`: the rank that notes its messages.
  MessageTrace(std::shared_ptr<SegmentTrace> log, std::uint32_t rank, PeerClass peer_class)
      : log_(std::move(log)), rank_(rank), class_(peer_class) {}

  /// Call it before the frame is sent.
  void sent(std::uint32_t peer, const FrameHeader& header, std::size_t bytes) const noexcept {
    if (on()) [[unlikely]]
      add(SegmentMoment::sent_across, peer, header.operation, header.sequence, bytes);
  }
  /// Call it after the message has come.
  void came(std::uint32_t peer, const PostedReceive& receive, std::size_t bytes) const noexcept {
    if (on()) [[unlikely]]
      add(SegmentMoment::came_across, peer, receive.operation, receive.tag, bytes);
  }

 private:
  [[nodiscard]] bool on() const noexcept { return log_ != nullptr && log_->on(); }
  void add(SegmentMoment moment, std::uint32_t peer, std::uint64_t operation, std::uint64_t sequence,
           std::size_t bytes) const noexcept {
    const transport::TimePoint now = transport::Clock::now();
    log_->add({.at_ns = now.time_since_epoch().count(),
               .sequence = sequence,
               .operation = operation,
               .epoch = rank_,
               .bytes = static_cast<std::uint32_t>(bytes),
               .member = peer,
               .lane = static_cast<std::uint8_t>(class_),
               .moment = moment},
              now);
  }

  const std::shared_ptr<SegmentTrace> log_;
  const std::uint32_t rank_;
  const PeerClass class_;
};

}  // namespace tributary::client
