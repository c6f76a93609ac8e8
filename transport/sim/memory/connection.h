#pragma once
// One connection of the simulated network: two ends and, for each, the stream of frames that it sends.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/channel/frame_reader.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/sim_network.h"

namespace tributary::transport {

class SimChannel;

struct SimFrame {
  FrameHeader header;
  const std::byte* payload = nullptr;  // the sender's, or copy.data()
  std::uint64_t cookie = 0;
  TimePoint ready_at;           // when its header can be at the other side
  bool borrowed = true;         // false: the frame is from send_copy(), which reports nothing
  bool owned = false;           // `payload` is in `copy`
  std::vector<std::byte> copy;  // its capacity stays from use to use
};

/// The frames of one direction by number. Marks move through them: told <= released, delivered <= tail. Frames before
/// both `told` and `delivered` are forgotten. The memory grows to the most frames that were ever in use, and never
/// shrinks.
class FrameRing {
 public:
  [[nodiscard]] SimFrame& at(std::uint64_t number) noexcept { return slots_[number & (slots_.size() - 1)]; }
  /// The caller fills the frame in.
  SimFrame& push() {
    if (tail - head() == slots_.size()) grow();
    return at(tail++);
  }
  /// Forgets everything from `number` on.
  void truncate(std::uint64_t number) noexcept {
    TRIBUTARY_ASSERT(number >= delivered && number <= tail, "frames are forgotten from {} on, of {} to {}", number,
                     delivered, tail);
    tail = number;
  }
  void clear() noexcept { told = released = delivered = tail = 0; }

  std::uint64_t told = 0;       // on_sent was called for the frames before this
  std::uint64_t released = 0;   // the bytes of the frames before this are not needed any more
  std::uint64_t delivered = 0;  // the frames before this have arrived whole
  std::uint64_t tail = 0;       // the frames before this were sent

 private:
  [[nodiscard]] std::uint64_t head() const noexcept { return told < delivered ? told : delivered; }
  void grow() {
    std::vector<SimFrame> larger(slots_.empty() ? 8 : slots_.size() * 2);
    for (std::uint64_t i = head(); i < tail; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
    slots_ = std::move(larger);
  }
  std::vector<SimFrame> slots_;
};

/// One direction.
struct Pipe {
  FrameRing frames;
  LinkSettings link;
  TimePoint last_arrival;             // nothing that is sent later may arrive earlier
  TimePoint fin_at;                   // when `fin` and all frames have arrived
  std::uint32_t borrowed_queued = 0;  // frames without on_sent
  std::size_t early_bytes = 0;        // bytes released before they were delivered
  bool scheduled = false;             // an `arrive` event or work item exists
  bool sent_scheduled = false;
  bool fin = false;         // the sender is gone; after the last frame the receiver is told
  bool dead = false;        // broken: nothing moves any more
  std::uint8_t pieces = 0;  // pieces of that payload so far
  FrameReader reader;       // the receiver's reader; the frame that it is in is frames.delivered
  struct Expected {
    FrameHeader header;
    std::span<std::byte> place;
  };
  std::vector<Expected> expected;  // frames that the receiver expects

  /// Goes on reading at once, because the network has no turns to wait for.
  void go_on() noexcept {
    static_cast<void>(reader.resume());
    reader.begin_turn();
  }
};

struct End {
  std::uint32_t host = 0;
  Endpoint name;                      // the endpoint that the other side sees
  SimChannel* channel = nullptr;      // the user's; null before accept and after destruction
  ChannelHandler* handler = nullptr;  // null: no callback
  std::optional<Error> broken_by;     // on_closed is due
  bool opened = false;                // may send
  bool flushing = false;
  bool closed = false;
};

struct SimConnection {
  std::uint32_t generation = 0;
  bool accept_pending = false;  // the listening side's channel does not exist yet but may
  bool in_use = false;
  bool breaks_at_once = false;  // before the first frame of the accepting side arrives
  Endpoint to;
  TimePoint opened_at;  // when the connecting side learns it
  Duration limit{};
  std::uint64_t listener = 0;
  std::array<End, 2> ends;    // 0 connects, 1 accepts
  std::array<Pipe, 2> pipes;  // one for each sending side
};

}  // namespace tributary::transport
