#pragma once
// Places in this process that one peer may write to: one place for the payload of each expected frame. The peer knows a
// place by a number. It may write the place's own bytes from the time when it is told of the place, until it says that
// it has written them, or the frame has come in another way. Then this side revokes the right, and only later may other
// code use the memory.
//
// A window gives its right to the other end of one queue pair. So a place belongs to one queue pair: there this side
// binds the window, right before the message that tells the peer of the place, and revokes the window; the peer writes
// through this queue pair.
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/verbs/memory_windows.h"
#include "transport/verbs/registrations.h"
#include "transport/verbs/wire.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

class Places {
 public:
  /// Allows at most `count` places. `windows`: memory windows give the rights; otherwise registrations give them.
  void open(ibv_pd& domain, std::uint32_t count, bool windows, VerbsStatistics& statistics);
  /// Revokes all rights. The queue pair must have stopped.
  void close() noexcept;

  /// Notes that a frame with this header will go to the place. Returns false if too many frames are expected already.
  [[nodiscard]] bool expect(const FrameHeader& header, std::span<std::byte> memory);

  /// True if there is a place about which the peer was not told.
  [[nodiscard]] bool has_untold() const noexcept { return !untold_.empty(); }
  struct Told {
    FrameHeader header;
    RemotePayload where;
  };
  [[nodiscard]] bool takes_work() const noexcept { return windows_; }
  /// The queue pair, of `queue_pairs`, on which the peer is told next: they take turns.
  [[nodiscard]] std::uint32_t next_queue_pair(std::size_t queue_pairs) noexcept {
    return told_on_ = (told_on_ + 1) % static_cast<std::uint32_t>(queue_pairs);
  }
  /// Tells the peer of the oldest such place on this queue pair. If takes_work(), `work` must be done before the
  /// message is sent.
  [[nodiscard]] Result<Told> tell(Registrations& registrations, std::uint32_t queue_pair, ibv_send_wr* work);

  /// Notes that the peer has written this many bytes to a place through this queue pair. Returns false if it had no
  /// right to write them.
  [[nodiscard]] bool written(std::uint32_t number, std::uint32_t queue_pair, std::uint32_t bytes);
  /// Withdraws the place of a frame that has come in another way. If the frame has a place, it must wait until
  /// is_revoking() is false for this place.
  [[nodiscard]] std::optional<std::uint32_t> withdraw(const FrameHeader& header);

  [[nodiscard]] bool has_to_revoke(std::uint32_t queue_pair) const noexcept {
    return !queues_[queue_pair].to_revoke.empty();
  }
  /// Makes `work` revoke the oldest right that must end. `position` is the work's position in that queue pair's send
  /// queue.
  void revoke(std::uint32_t queue_pair, ibv_send_wr& work, std::uint32_t position);
  /// Notes that all work of that send queue up to `position` is done. Returns true if it revoked a place.
  bool done_to(std::uint32_t queue_pair, std::uint32_t position);

  /// True if the place was written or withdrawn, but the peer's right has not ended yet.
  [[nodiscard]] bool is_revoking(std::uint32_t number) const noexcept { return at(number).state == State::revoking; }
  [[nodiscard]] const FrameHeader& header(std::uint32_t number) const noexcept { return at(number).header; }
  [[nodiscard]] std::span<std::byte> memory(std::uint32_t number) const noexcept { return at(number).memory; }
  /// Frees a revoked place after its frame was served.
  void free(std::uint32_t number);

 private:
  enum class State : std::uint8_t { free, untold, told, revoking, revoked };
  struct Place {
    FrameHeader header;
    std::span<std::byte> memory;
    RegistrationPtr registration;
    MemoryWindow window;
    std::uint32_t queue_pair = 0;
    std::uint32_t revoked_at = 0;
    State state = State::free;
    bool withdrawn = false;
  };
  [[nodiscard]] Place& at(std::uint32_t number) noexcept { return const_cast<Place&>(std::as_const(*this).at(number)); }
  [[nodiscard]] const Place& at(std::uint32_t number) const noexcept {
    TRIBUTARY_ASSERT(number < places_.size(), "place {} of {}", number, places_.size());
    return places_[number];
  }
  void end_right(std::uint32_t number);
  void revoked(std::uint32_t number);

  bool windows_ = false;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> untold_;
  struct Queue {
    std::deque<std::uint32_t> to_revoke, revoking;
  };
  std::array<Queue, kQueuePairsMax> queues_;  // queues by queue pair
  std::uint32_t told_ = 0;
  std::uint32_t told_on_ = 0;  // queue pair on which the peer was told last
};

/// The peer's places that this side may write to.
class PeerPlaces {
 public:
  struct Place {
    FrameHeader header;
    RemotePayload where;
    std::uint32_t queue_pair = 0;  // queue pair on which the peer announced the place
  };
  /// Adds a place that the peer has announced. Returns false if the number is out of bounds.
  [[nodiscard]] bool add(const Place& place);
  /// Returns the place for this frame's payload, once; nullptr if there is none.
  [[nodiscard]] const Place* find(const FrameHeader& header) const noexcept;
  void taken(const Place* place);

 private:
  std::deque<Place> places_;  // in the order of their messages, which is mostly the order of use
};

}  // namespace tributary::transport::verbs
