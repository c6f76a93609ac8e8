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
  bool borrowed = true;         // false: from send_copy(), nothing to tell
  bool owned = false;           // `payload` is in `copy`
  std::vector<std::byte> copy;  // keeps its capacity from use to use
};

/// Frames of one direction by number. Three marks move through them: told <= released, delivered <= tail; what is
/// before `told` and `delivered` is forgotten. Grows to the largest number in use and then stays.
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

  std::uint64_t told = 0;       // on_sent was called for those before
  std::uint64_t released = 0;   // bytes are not needed any more of those before
  std::uint64_t delivered = 0;  // those before have arrived whole
  std::uint64_t tail = 0;       // those before were sent

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
  std::uint32_t borrowed_queued = 0;  // send() without on_sent
  std::size_t early_bytes = 0;        // released before they were delivered
  bool scheduled = false;             // an `arrive` event or work item exists
  bool sent_scheduled = false;
  bool fin = false;         // the sender is gone; after the last frame the receiver is told
  bool dead = false;        // broken: nothing moves any more
  std::uint8_t pieces = 0;  // of that payload so far
  FrameReader reader;       // the receiver's; in a frame: in frames.delivered
  struct Expected {
    FrameHeader header;
    std::span<std::byte> place;
  };
  std::vector<Expected> expected;  // by the receiver

  /// Reading goes on at once: the network has no turns to wait for.
  void go_on() noexcept {
    static_cast<void>(reader.resume());
    reader.begin_turn();
  }
};

struct End {
  std::uint32_t host = 0;
  Endpoint name;                      // as the other side sees it
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
  std::array<Pipe, 2> pipes;  // by sending side
};

}  // namespace tributary::transport
