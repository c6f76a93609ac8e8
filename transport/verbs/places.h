#pragma once
// Places in this process that one peer may write to, one payload each: those of frames that are expected. A place is
// known to the peer by a number; it may write the place's own bytes, from the moment it is told until it has said that
// it has written them, or the frame has come in another way. Then the right is revoked, and only after that is the
// memory anybody else's.
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "verbs/registrations.h"
#include "verbs/windows.h"
#include "verbs/wire.h"

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
  /// The oldest of them; `work`, if takes_work(), must be done before the peer is told.
  [[nodiscard]] Result<Told> tell(Registrations& registrations, ibv_send_wr* work);

  /// The peer says that it has written so many bytes there. False: it was not asked to.
  [[nodiscard]] bool written(std::uint32_t number, std::uint32_t bytes);
  /// A frame has come in another way than to the place that is told for it, if one is: it must wait until that is not
  /// is_revoking() any more.
  [[nodiscard]] std::optional<std::uint32_t> withdraw(const FrameHeader& header);

  [[nodiscard]] bool has_to_revoke() const noexcept { return !to_revoke_.empty(); }
  /// Makes `work` revoke the oldest of them. `position`: its place on the send queue.
  void revoke(ibv_send_wr& work, std::uint32_t position);
  /// All work up to this place on the send queue is done. True: something was revoked by it.
  bool done_to(std::uint32_t position);

  /// Written, or withdrawn, and the peer's right to it has not ended yet.
  [[nodiscard]] bool is_revoking(std::uint32_t number) const noexcept { return at(number).state == State::revoking; }
  [[nodiscard]] const FrameHeader& header(std::uint32_t number) const noexcept { return at(number).header; }
  [[nodiscard]] std::span<std::byte> memory(std::uint32_t number) const noexcept { return at(number).memory; }
  /// Of a revoked one: its frame was served.
  void free(std::uint32_t number);

 private:
  enum class State : std::uint8_t { free, untold, told, revoking, revoked };
  struct Place {
    FrameHeader header;
    std::span<std::byte> memory;
    RegistrationPtr registration;
    Window window;
    std::uint32_t revoked_at = 0;
    State state = State::free;
    bool withdrawn = false;
  };
  [[nodiscard]] Place& at(std::uint32_t number) noexcept { return places_[number]; }
  [[nodiscard]] const Place& at(std::uint32_t number) const noexcept { return places_[number]; }
  void end_right(std::uint32_t number);
  void revoked(std::uint32_t number);

  bool windows_ = false;
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> untold_, to_revoke_, revoking_;
  std::uint32_t told_ = 0;
};

/// The other side's, as this side may write them.
class PlacesThere {
 public:
  /// False: a number that is out of bounds.
  [[nodiscard]] bool add(const FrameHeader& header, const RemotePayload& where);
  /// Where this frame's payload may be written, once.
  [[nodiscard]] const RemotePayload* find(const FrameHeader& header) const noexcept;
  void taken(const RemotePayload* place);

 private:
  struct Place {
    FrameHeader header;
    RemotePayload where;
  };
  std::deque<Place> places_;  // in the order of telling, which is mostly that of use
};

}  // namespace tributary::transport::verbs
