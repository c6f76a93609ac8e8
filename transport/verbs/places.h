#pragma once
// Places in this process that one peer may write to, one payload each: those of frames that are expected. A place is
// known to the peer by a number; it may write the place's own bytes, from the moment it is told until it has said that
// it has written them, or the frame has come in another way. Then the right is revoked, and only after that is the
// memory anybody else's.
//
// A window gives its right to the other end of one queue pair. So a place belongs to the queue pair on which it was
// told: bound there right before the message that tells it, written through it, revoked there.
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "transport/verbs/registrations.h"
#include "transport/verbs/windows.h"
#include "transport/verbs/wire.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

class Places {
 public:
  /// So many at most. `windows`: the rights are memory windows', otherwise registrations'.
  void open(ibv_pd& domain, std::uint32_t count, bool windows, VerbsStatistics& statistics);
  /// Revokes all. The queue pair must not work any more.
  void close() noexcept;

  /// A frame with this header will go there. False: too many are expected already.
  [[nodiscard]] bool expect(const FrameHeader& header, std::span<std::byte> memory);

  /// Whether there is one that the peer has not been told.
  [[nodiscard]] bool has_untold() const noexcept { return !untold_.empty(); }
  struct Told {
    FrameHeader header;
    RemotePayload where;
  };
  [[nodiscard]] bool takes_work() const noexcept { return windows_; }
  /// The oldest of them, on this queue pair; `work`, if takes_work(), must be done before the peer is told.
  [[nodiscard]] Result<Told> tell(Registrations& registrations, std::uint32_t queue_pair, ibv_send_wr* work);

  /// The peer says, through this queue pair, that it has written so many bytes there. False: it was not asked to.
  [[nodiscard]] bool written(std::uint32_t number, std::uint32_t queue_pair, std::uint32_t bytes);
  /// A frame has come in another way than to the place that is told for it, if one is: it must wait until that is not
  /// is_revoking() any more.
  [[nodiscard]] std::optional<std::uint32_t> withdraw(const FrameHeader& header);

  [[nodiscard]] bool has_to_revoke(std::uint32_t queue_pair) const noexcept {
    return !queues_[queue_pair].to_revoke.empty();
  }
  /// Makes `work` revoke the oldest of them. `position`: its place on that queue pair's send queue.
  void revoke(std::uint32_t queue_pair, ibv_send_wr& work, std::uint32_t position);
  /// All work up to this place on that send queue is done. True: something was revoked by it.
  bool done_to(std::uint32_t queue_pair, std::uint32_t position);

  /// Written, or withdrawn, and the peer's right to it has not ended yet.
  [[nodiscard]] bool is_revoking(std::uint32_t number) const noexcept { return at(number).state == State::revoking; }
  [[nodiscard]] const FrameHeader& header(std::uint32_t number) const noexcept { return at(number).header; }
  [[nodiscard]] std::span<std::byte> memory(std::uint32_t number) const noexcept { return at(number).memory; }
  /// Frees a revoked one: its frame was served.
  void free(std::uint32_t number);

 private:
  enum class State : std::uint8_t { free, untold, told, revoking, revoked };
  struct Place {
    FrameHeader header;
    std::span<std::byte> memory;
    RegistrationPtr registration;
    Window window;
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
  std::array<Queue, kQueuePairsMax> queues_;  // by queue pair
  std::uint32_t told_ = 0;
};

/// The other side's, as this side may write them.
class PlacesThere {
 public:
  struct Place {
    FrameHeader header;
    RemotePayload where;
    std::uint32_t queue_pair = 0;  // that it was told on
  };
  /// False: a number that is out of bounds.
  [[nodiscard]] bool add(const Place& place);
  /// Where this frame's payload may be written, once.
  [[nodiscard]] const Place* find(const FrameHeader& header) const noexcept;
  void taken(const Place* place);

 private:
  std::deque<Place> places_;  // in the order of telling, which is mostly that of use
};

}  // namespace tributary::transport::verbs
