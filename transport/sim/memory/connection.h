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
  const std::byte* payload = nullptr;  // the sender's memory, or copy.data()
  std::uint64_t cookie = 0;
  TimePoint ready_at;           // time when its header can be at the other side
  bool borrowed = true;         // false: the frame is from send_copy(), which causes no on_sent
  bool owned = false;           // `payload` is in `copy`
  std::vector<std::byte> copy;  // its memory is used again for later frames
};

/// The frames of one direction by number. Marks move through them: told <= released, delivered <= tail. Frames before
/// both `told` and `delivered` are forgotten. The memory grows when it is full, and never
/// shrinks.
class FrameRing {
 public:
  [[nodiscard]] SimFrame& at(std::uint64_t number) noexcept { return slots_[number & (slots_.size() - 1)]; }
  /// Adds a frame, which the caller fills in.
  SimFrame& push() {
    if (tail - head() == slots_.size()) grow();
    return at(tail++);
  }
  /// Forgets all frames from `number` on.
  void truncate(std::uint64_t number) noexcept {
    TRIBUTARY_ASSERT(number >= delivered && number <= tail, "frames are forgotten from {} on, of {} to {}", number,
                     delivered, tail);
    tail = number;
  }
  void clear() noexcept { told = released = delivered = tail = 0; }

  std::uint64_t told = 0;       // on_sent was called for the frames before this
  std::uint64_t released = 0;   // the bytes of the frames before this are no longer needed
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

/// The frames in one direction.
struct Pipe {
  FrameRing frames;
  LinkSettings link;
  TimePoint last_arrival;             // frames that are sent later must not arrive earlier
  TimePoint fin_at;                   // time when `fin` and all frames have arrived
  std::uint32_t borrowed_queued = 0;  // frames without on_sent
  std::size_t early_bytes = 0;        // bytes released before they were delivered
  bool scheduled = false;             // an `arrive` event or work item exists
  bool sent_scheduled = false;
  bool fin = false;         // the sender is gone; after the last frame the receiver is told
  bool dead = false;        // broken: no frame moves
  std::uint8_t pieces = 0;  // pieces of the present payload that have arrived
  FrameReader reader;       // the receiver's reader; the number of its present frame is frames.delivered
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
  SimChannel* channel = nullptr;      // the user's channel; null before accept and after destruction
  ChannelHandler* handler = nullptr;  // null: no callback
  std::optional<Error> broken_by;     // error with which on_closed is due
  bool opened = false;                // true: this end may send
  bool flushing = false;
  bool closed = false;
};

struct SimConnection {
  std::uint32_t generation = 0;
  bool accept_pending = false;  // the listening side's channel does not exist yet, but may be made
  bool in_use = false;
  bool expected_places = true;  // expect() has an effect
  bool breaks_at_once = false;  // breaks before the first frame of the accepting side arrives
  Endpoint to;
  TimePoint opened_at;  // time when the connecting side learns that it is open
  Duration limit{};
  std::uint64_t listener = 0;
  std::array<End, 2> ends;    // 0 connects, 1 accepts
  std::array<Pipe, 2> pipes;  // one for each sending side
};

}  // namespace tributary::transport
