#pragma once
// Lines about memory that one side lends the other for reading. Each of these messages takes one line (64 bytes) of the
// ring, between frames.
//
//   told       a descriptor is in the socket: map `bytes` bytes of it from `offset` on, under this place and
//              generation
//   mapped     the answer: the sender may now name payloads instead of writing them
//   refused    the other answer: go on copying
//   withdrawn  no more payloads of this range will be named
//   payload    the next line has a frame's header, and the frame's payload lies in this place at this offset
//
// A generation is used once in a connection, so no late line is taken for a line about the place's present range.
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "transport/shm/ring_memory.h"
#include "tributary/protocol/frame.h"

namespace tributary::transport {

inline constexpr std::uint32_t kRegionMagic = 0x31475254;  // "TRG1", at the place of a frame's magic
inline constexpr std::uint32_t kRegionPlaces = 32;         // places for ranges of each side in each connection
static_assert(kRegionMagic != kFrameMagic);

enum class RegionWord : std::uint32_t { told = 1, mapped = 2, refused = 3, withdrawn = 4, payload = 5 };

struct RegionLine {
  std::uint32_t magic = kRegionMagic;
  RegionWord word{};
  std::uint32_t place = 0;
  std::uint32_t generation = 0;
  std::uint64_t offset = 0;  // told: offset in the file; payload: offset in the range
  std::uint64_t bytes = 0;
  std::uint64_t unused[4] = {};
};
static_assert(sizeof(RegionLine) == kLineBytes && kLineBytes == kFrameHeaderBytes);

/// Reads a line; nullopt: the line belongs to a frame, or is garbage.
[[nodiscard]] inline std::optional<RegionLine> region_line(const FrameBytes& bytes) noexcept {
  RegionLine line;
  std::memcpy(&line, bytes.data(), sizeof line);
  return line.magic == kRegionMagic ? std::optional(line) : std::nullopt;
}

}  // namespace tributary::transport
