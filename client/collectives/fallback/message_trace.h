#pragma once
// Notes the moments of messages between ranks for a trace. While no trace is recorded, a message costs one relaxed load.
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/collectives/fallback/peer_link.h"
#include "tributary/protocol/segment_trace.h"

namespace tributary::client {

class MessageTrace {
 public:
  /// `log`: nullptr: no trace. `rank`: the rank that notes its messages. `known_as`: by rank, the rank's number in the
  /// trace; empty: the rank. A communicator of leaders, whose ranks have other numbers, shares its log with the one of
  /// all ranks.
  MessageTrace(std::shared_ptr<SegmentTrace> log, std::uint32_t rank, PeerClass peer_class,
               std::span<const std::uint32_t> known_as)
      : log_(std::move(log)), rank_(rank), class_(peer_class), known_as_(known_as.begin(), known_as.end()) {}

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
               .group = known_as_.empty() ? 0U : 1U,
               .sequence = sequence,
               .operation = operation,
               .epoch = number_of(rank_),
               .bytes = static_cast<std::uint32_t>(bytes),
               .member = number_of(peer),
               .lane = static_cast<std::uint8_t>(class_),
               .moment = moment},
              now);
  }

  [[nodiscard]] std::uint32_t number_of(std::uint32_t rank) const noexcept {
    return known_as_.empty() ? rank : known_as_[rank];
  }

  const std::shared_ptr<SegmentTrace> log_;
  const std::uint32_t rank_;
  const PeerClass class_;
  const std::vector<std::uint32_t> known_as_;
};

}  // namespace tributary::client
