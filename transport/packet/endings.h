#pragma once
// The endings of packets. A result goes to many children, whose packets end alike. So the ending's checksums are
// computed once, and kept while one transmit() runs.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/packet/crc32c.h"
#include "transport/packet/payload_place.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/frame.h"

namespace tributary::transport::packet {

struct Ending {
  Crc32cSuffix suffix;
  std::uint64_t head_sum = 0;  // sum of the frame's header, for UDP's checksum
};

class Endings {
 public:
  /// Returns the ending for a payload that is sent in this turn; `place` is its payload_place(). `head` is the frame's
  /// header before the payload, or empty.
  [[nodiscard]] const Ending& of(std::span<const std::byte> head, std::span<const std::byte> payload,
                                 std::size_t place) noexcept {
    TRIBUTARY_ASSERT(place < known_.size() && (head.empty() || head.size() == kFrameHeaderBytes),
                     "an ending of place {} has {} bytes before its payload", place, head.size());
    Known& known = known_[place];
    const bool same = known.data == payload.data() && known.bytes == payload.size() && known.turn == turn_ &&
                      known.framed == !head.empty() && (head.empty() || same_header(known.head.data(), head.data()));
    if (!same) find(known, head, payload);
    return known.ending;
  }
  /// Forgets all endings: from here on payloads may have changed.
  void next_turn() noexcept { ++turn_; }

 private:
  struct Known {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::uint64_t turn = 0;
    bool framed = false;
    Ending ending;
    std::array<std::byte, kFrameHeaderBytes> head;
  };
  void find(Known& known, std::span<const std::byte> head, std::span<const std::byte> payload) const noexcept;
  /// Compares two frames' headers. They were just written, so this code reads them in parts of the size in which they
  /// were written.
  [[nodiscard]] static bool same_header(const std::byte* a, const std::byte* b) noexcept {
    using Half [[gnu::vector_size(16)]] = std::uint64_t;
    Half differs{};
    for (std::size_t i = 0; i < kFrameHeaderBytes; i += sizeof(Half)) {
      Half of_a;
      Half of_b;
      std::memcpy(&of_a, a + i, sizeof of_a);
      std::memcpy(&of_b, b + i, sizeof of_b);
      differs |= of_a ^ of_b;
    }
    return (differs[0] | differs[1]) == 0;
  }

  std::array<Known, kPayloadPlaces> known_{};
  std::uint64_t turn_ = 1;  // number of the turn; the entries begin with 0
};

}  // namespace tributary::transport::packet
