#pragma once
// What travels in one send between two VerbsTransports: a prefix, then records, each one frame. Little-endian, as all
// of the protocol.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "tributary/protocol/frame.h"

namespace tributary::transport::verbs {

/// Numbers count since the connection began, and wrap.
struct MessagePrefix {
  std::uint32_t consumed = 0;  // messages of the other side that were read and whose receives are posted anew
  std::uint32_t fetched = 0;   // payloads of the other side that were fetched: their memory is free
  std::uint32_t bytes = 0;     // of the whole message
  std::uint32_t flags = 0;
};
static_assert(sizeof(MessagePrefix) == 16);
inline constexpr std::uint32_t kLastMessage = 1;  // flags: nothing follows, and nothing that comes is read

enum class RecordKind : std::uint32_t {
  here = 1,   // the payload follows the header
  fetch = 2,  // a RemotePayload follows the header
};

struct RecordHead {
  RecordKind kind = RecordKind::here;
  std::uint32_t payload_bytes = 0;
  FrameBytes header;
};
static_assert(sizeof(RecordHead) == 72);

struct RemotePayload {
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t reserved = 0;
};
static_assert(sizeof(RemotePayload) == 16);

inline constexpr std::size_t kRecordAlignment = 8;
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + kRecordAlignment - 1) & ~(kRecordAlignment - 1);
}
[[nodiscard]] constexpr std::size_t message_bytes_for(std::size_t eager_bytes) noexcept {
  return sizeof(MessagePrefix) + sizeof(RecordHead) + aligned(eager_bytes);
}

/// Private data of the connection manager's request and reply: what each side's peer must know before the first send.
/// A request may carry 56 bytes.
struct Greeting {
  static constexpr std::uint32_t kMagic = 0x31564254;  // "TBV1"
  std::uint32_t magic = kMagic;
  std::uint32_t receive_depth = 0;  // so many receives are posted
  std::uint32_t message_bytes = 0;  // of each
  std::uint32_t lane = 0;           // the claim, in a request
  std::uint64_t group = 0;
};
static_assert(sizeof(Greeting) == 24 && sizeof(Greeting) <= 56);

inline constexpr std::uint32_t kDepthMin = 4, kDepthMax = 1024;
inline constexpr std::uint32_t kReadsMax = 16;
inline constexpr std::uint32_t kEagerBytesMax = 65536;

/// False: not ours, or out of bounds.
[[nodiscard]] inline bool read_greeting(std::span<const std::byte> from, Greeting& out) noexcept {
  if (from.size() < sizeof out) return false;
  std::memcpy(&out, from.data(), sizeof out);
  return out.magic == Greeting::kMagic && out.receive_depth >= kDepthMin && out.receive_depth <= kDepthMax &&
         out.message_bytes >= message_bytes_for(sizeof(RemotePayload)) &&
         out.message_bytes <= message_bytes_for(kEagerBytesMax);
}

/// A work request's number: which connection, what, which one.
enum class WorkKind : std::uint8_t { receive, send, last_send, read, bind, revoke, probe };
struct WorkId {
  std::uint32_t connection = 0;  // 32 bits
  WorkKind kind = WorkKind::receive;
  std::uint32_t index = 0;  // 24 bits

  [[nodiscard]] std::uint64_t packed() const noexcept {
    return (std::uint64_t{connection} << 32U) | (std::uint64_t{static_cast<std::uint8_t>(kind)} << 24U) |
           (index & 0xFFFFFFU);
  }
  [[nodiscard]] static WorkId of(std::uint64_t packed) noexcept {
    return {static_cast<std::uint32_t>(packed >> 32U), static_cast<WorkKind>((packed >> 24U) & 0xFFU),
            static_cast<std::uint32_t>(packed & 0xFFFFFFU)};
  }
};

}  // namespace tributary::transport::verbs
