#pragma once
// The bytes between two VerbsTransports. A message consists of a prefix and records; most records are a frame each. It
// travels in a send, or in a write in front of one payload. All numbers are little-endian, as in the whole protocol.
//
// On a sealed connection the first message of each side is a greeting (seal/stream_greeting.h). All further messages
// are sealed, prefix included, and followed by an authenticator. They travel only in sends.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::transport::verbs {

/// These counts begin with the connection, and wrap.
struct MessagePrefix {
  std::uint32_t consumed = 0;  // messages of the other side whose receives are posted again
  std::uint32_t fetched = 0;   // payloads of the other side that were fetched, so that their memory is free
  std::uint32_t freed = 0;     // cells of the landing room that the other side may write again
  std::uint32_t bytes = 0;     // bytes of the whole message, without a payload in a cell
  std::uint32_t flags = 0;
  std::uint32_t number = 0;  // the message's number among all messages and writes of the connection
};
static_assert(sizeof(MessagePrefix) == 24);
inline constexpr std::uint32_t kLastMessage = 1;  // flags: no message follows, and the sender reads no more

enum class RecordKind : std::uint32_t {
  here = 1,    // the payload follows the header
  fetch = 2,   // a RemotePayload follows the header: the place to read the payload
  landed = 3,  // the payload lies behind the message, in the same cell; the message's last record
  place = 4,   // no frame: a RemotePayload follows, the place to write the payload of the frame with this header
  room = 5,    // no frame, no header: a RemotePayload follows, the room to write payloads of up to payload_bytes
  begin = 6,   // the first payload_bytes of the payload follow the header
  part = 7,    // no header: the next payload_bytes of the payload that was begun follow
};
/// True for records that grant or use a right to the other side's memory. Sealed connections have none of them.
[[nodiscard]] constexpr bool is_remote(RecordKind kind) noexcept {
  return kind >= RecordKind::fetch && kind <= RecordKind::room;
}
/// True for records that only sealed connections have.
[[nodiscard]] constexpr bool is_in_parts(RecordKind kind) noexcept {
  return kind >= RecordKind::begin;
}

struct RecordHead {
  RecordKind kind = RecordKind::here;
  std::uint32_t payload_bytes = 0;
  FrameBytes header;
};
static_assert(sizeof(RecordHead) == 72);

struct RemotePayload {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t number = 0;  // the number of a place, or of a room's cells
};
static_assert(sizeof(RemotePayload) == 16);

// The immediate of an RDMA WRITE WITH IMMEDIATE has a number, as a message has, and names the written memory. For a
// cell it has the length of the message before the payload, and the cell's number; the message has the rest. For a
// place, whose payload comes without a message, it has the place's number and the counts of a prefix. Differences of
// counts are at most half of the values that their bits hold.
struct CellImmediate {
  std::uint32_t message_bytes = 0;  // length of the message, a multiple of 8
  std::uint32_t cell = 0;           // 16 bits: number among all cells that were ever written
  std::uint32_t number = 0;         // 7 bits
};
struct PlaceImmediate {
  std::uint32_t place = 0;     // 7 bits
  std::uint32_t number = 0;    // 7 bits
  std::uint32_t consumed = 0;  // 7 bits
  std::uint32_t freed = 0;     // 10 bits
};
inline constexpr std::uint32_t kCellFlag = 1U << 31U;
inline constexpr std::uint32_t kConsumedMask = 0x7F, kFreedMask = 0x3FF, kPlaceMask = 0x7F, kCellMask = 0xFFFF;
inline constexpr std::uint32_t kNumberMask = 0x7F;
[[nodiscard]] constexpr std::uint32_t packed(const CellImmediate& said) noexcept {
  return kCellFlag | ((said.number & kNumberMask) << 24U) | ((said.cell & kCellMask) << 8U) | (said.message_bytes / 8);
}
[[nodiscard]] constexpr CellImmediate cell_of(std::uint32_t immediate) noexcept {
  return {.message_bytes = (immediate & 0xFFU) * 8,
          .cell = (immediate >> 8U) & kCellMask,
          .number = (immediate >> 24U) & kNumberMask};
}
[[nodiscard]] constexpr std::uint32_t packed(const PlaceImmediate& said) noexcept {
  return ((said.freed & kFreedMask) << 21U) | ((said.consumed & kConsumedMask) << 14U) |
         ((said.number & kNumberMask) << 7U) | (said.place & kPlaceMask);
}
[[nodiscard]] constexpr PlaceImmediate place_of(std::uint32_t immediate) noexcept {
  return {.place = immediate & kPlaceMask,
          .number = (immediate >> 7U) & kNumberMask,
          .consumed = (immediate >> 14U) & kConsumedMask,
          .freed = (immediate >> 21U) & kFreedMask};
}
/// The number in an immediate of either kind.
[[nodiscard]] constexpr std::uint32_t number_of(std::uint32_t immediate) noexcept {
  return (immediate & kCellFlag) != 0 ? cell_of(immediate).number : place_of(immediate).number;
}

/// A cell of a landing room: space for a message, which ends at the payload, then the payload.
inline constexpr std::size_t kCellMessageBytes = 256;
inline constexpr std::size_t kCellAlignment = 64;
[[nodiscard]] constexpr std::size_t cell_bytes_for(std::size_t payload_bytes) noexcept {
  return kCellMessageBytes + ((payload_bytes + kCellAlignment - 1) & ~(kCellAlignment - 1));
}
inline constexpr std::uint32_t kCellsMax = 512;   // most cells of one connection
inline constexpr std::uint32_t kPlacesMax = 128;  // most places of one connection
[[nodiscard]] constexpr std::uint64_t room_bytes_for(std::uint32_t payloads, std::uint32_t payload_bytes) noexcept {
  return std::min(payloads, kCellsMax) * std::uint64_t{cell_bytes_for(payload_bytes)};
}
static_assert(kCellsMax <= (kFreedMask + 1) / 2 && kPlacesMax <= kPlaceMask + 1);

inline constexpr std::size_t kRecordAlignment = 8;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + kRecordAlignment - 1) & ~(kRecordAlignment - 1);
}
[[nodiscard]] constexpr std::size_t message_bytes_for(std::size_t eager_bytes) noexcept {
  return sizeof(MessagePrefix) + sizeof(RecordHead) + aligned(eager_bytes);
}

inline constexpr std::uint32_t kQueuePairsMax = 8;  // most queue pairs of one connection

/// Private data of the connection manager's request and reply: values that each peer needs before its first send. A
/// request may carry 56 bytes. Numbers of packets and queue pairs have 24 bits.
struct Greeting {
  static constexpr std::uint32_t kMagic = 0x34564254;               // "TBV4"
  static constexpr std::uint32_t kAuthenticatedMagic = 0x34414254;  // "TBA4"
  static constexpr std::uint32_t kEncryptedMagic = 0x34454254;      // "TBE4"
  using Number = std::array<std::uint8_t, 3>;
  std::uint32_t magic = kMagic;
  std::uint32_t epoch = 0;  // in a request, the claimed place: epoch, with group, lane and child; zeros between ranks
  std::uint64_t group = 0;
  std::uint16_t child = 0;
  std::uint16_t message_eighths = 0;  // the bytes of a receive, divided by eight
  std::uint8_t lane = 0;
  std::uint8_t receive_depth = 0;                    // number of receives that are posted on each queue pair
  Number first_packet{};                             // number of this side's first packet on further queue pairs
  std::array<Number, kQueuePairsMax - 1> further{};  // numbers of the further queue pairs; 0: no more of them
  std::array<std::uint8_t, 10> proof{};              // proof of the claim (verbs/proof.h); zeros: none
  [[nodiscard]] std::uint32_t message_bytes() const noexcept { return std::uint32_t{message_eighths} * 8; }
  /// The security of the connection that the greeting is for.
  [[nodiscard]] PacketSecurity security() const noexcept {
    if (magic == kEncryptedMagic) return PacketSecurity::encrypt;
    return magic == kAuthenticatedMagic ? PacketSecurity::authenticate : PacketSecurity::off;
  }
  void set_security(PacketSecurity security) noexcept {
    magic = security == PacketSecurity::encrypt        ? kEncryptedMagic
            : security == PacketSecurity::authenticate ? kAuthenticatedMagic
                                                       : kMagic;
  }
};
static_assert(sizeof(Greeting) == 56 && message_bytes_for(65536) / 8 <= 0xFFFF);

/// Bytes behind a sealed message.
inline constexpr std::uint32_t kMessageTagBytes = 16;
[[nodiscard]] constexpr std::uint32_t tag_bytes(PacketSecurity security) noexcept {
  return security == PacketSecurity::off ? 0 : kMessageTagBytes;
}

/// The reason of a refusal: the first byte of its private data.
enum class Refusal : std::uint8_t {
  unproved = 1,
  no_secret = 2,
  wants_authentication = 3,
  wants_encryption = 4,
  never_seals = 5,
  no_key_yet = 6,
};

[[nodiscard]] constexpr Greeting::Number number_24(std::uint32_t value) noexcept {
  return {static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value >> 8U),
          static_cast<std::uint8_t>(value >> 16U)};
}
[[nodiscard]] constexpr std::uint32_t value_of(const Greeting::Number& number) noexcept {
  return number[0] | std::uint32_t{number[1]} << 8U | std::uint32_t{number[2]} << 16U;
}

// Depths are at most half of the values that the bits of numbers and counts hold.
inline constexpr std::uint32_t kDepthMin = 4, kDepthMax = 64;
static_assert(kDepthMax <= (kConsumedMask + 1) / 2 && kDepthMax <= (kNumberMask + 1) / 2);
inline constexpr std::uint32_t kReadsMax = 16;
inline constexpr std::uint32_t kEagerBytesMax = 65536;

/// Reads the greeting. Returns false if it is not of this protocol, or a value is out of bounds.
[[nodiscard]] inline bool read_greeting(std::span<const std::byte> from, Greeting& out) noexcept {
  if (from.size() < sizeof out) return false;
  std::memcpy(&out, from.data(), sizeof out);
  const PacketSecurity security = out.security();
  if (security == PacketSecurity::off && out.magic != Greeting::kMagic) return false;
  const std::size_t tag = tag_bytes(security);
  return out.receive_depth >= kDepthMin && out.receive_depth <= kDepthMax &&
         out.message_bytes() >= message_bytes_for(sizeof(RemotePayload)) + tag &&
         out.message_bytes() <= message_bytes_for(kEagerBytesMax) + tag;
}

/// A work request's number consists of the connection, the queue pair, the kind, and the index in its queue.
enum class WorkKind : std::uint8_t { receive, send, last_send, write, read, bind, revoke, probe };
struct WorkId {
  std::uint32_t connection = 0;  // 32 bits
  WorkKind kind = WorkKind::receive;
  std::uint32_t queue_pair = 0;  // 3 bits
  std::uint32_t index = 0;       // 24 bits

  [[nodiscard]] std::uint64_t packed() const noexcept {
    TRIBUTARY_ASSERT(queue_pair < kQueuePairsMax, "a request is of queue pair {}", queue_pair);
    return (std::uint64_t{connection} << 32U) | (std::uint64_t{queue_pair} << 29U) |
           (std::uint64_t{static_cast<std::uint8_t>(kind)} << 24U) | (index & 0xFFFFFFU);
  }
  [[nodiscard]] static WorkId of(std::uint64_t packed) noexcept {
    return {static_cast<std::uint32_t>(packed >> 32U), static_cast<WorkKind>((packed >> 24U) & 0x1FU),
            static_cast<std::uint32_t>((packed >> 29U) & 7U), static_cast<std::uint32_t>(packed & 0xFFFFFFU)};
  }
};
static_assert(kQueuePairsMax <= 8);

}  // namespace tributary::transport::verbs
