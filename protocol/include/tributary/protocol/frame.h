#pragma once
// The frame: what travels on every channel, between ranks, and between ranks and aggregators. docs/protocol.md draws
// it.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"

namespace tributary {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and so are all supported hosts");

inline constexpr std::uint32_t kFrameMagic = 0x31425254;  // "TRB1"
/// The number stands in each frame, in each token and in each unique id. Raise it whenever a reader of before could
/// misunderstand one of them: docs/protocol.md has the rule, and what each number stands for.
inline constexpr std::uint8_t kProtocolVersion = 2;
static_assert(kProtocolVersion < 10, "a unique id has one digit for it");

/// Bounds that every reader of frames enforces before it uses a field.
inline constexpr std::uint32_t kSegmentBytesMax = 1U << 20;
inline constexpr std::uint32_t kSegmentBytesMin = 256;
inline constexpr std::uint32_t kWindowMax = 256;
inline constexpr std::uint32_t kLanesMax = 16;
inline constexpr std::uint32_t kChildrenMax = 64;
inline constexpr std::uint32_t kTreeLevelsMax = 8;
inline constexpr std::uint32_t kRanksMax = 1U << 20;
inline constexpr std::uint32_t kControlBytesMax = 64U << 20;  // a membership table of a very large group
inline constexpr std::uint32_t kPeerBytesMax = 1U << 20;      // one data frame between ranks

enum class FrameType : std::uint8_t {
  // rank or aggregator <-> aggregator: one channel is one child's end of one lane
  join = 1,          // up: payload is a JoinPayload (credential.h)
  ready = 2,         // down: every child of every aggregator of this lane has joined
  refuse = 3,        // down, then closed: payload is the reason, UTF-8
  contribution = 4,  // up
  result = 5,        // down
  fault = 6,         // up, then down: ranks disagree on an operation; payload is a MismatchReport
  failed = 7,        // both ways, then closed: this lane's tree is broken in this epoch; payload is a LaneLoss
  leave = 8,         // up: this child has no more to say and waits for nothing
  ask = 9,           // up: nothing comes; do you live?
  alive = 10,        // down: answers it, from the worker's loop, at once
  // rank <-> rank 0: the control star
  hello = 16,       // up: who I am, with a proof of the group's secret; payload is JSON
  challenge = 17,   // down: nonce
  welcome = 18,     // down: the membership table; payload is JSON
  descriptor = 19,  // down: this rank's part of the group descriptor; payload is JSON
  joined = 20,      // up: all lanes of an epoch are ready here, or could not be joined; payload is the reason or empty
  propose = 21,     // down: stop starting operations, say which one is next
  next_operation = 22,  // up: answer to propose, or to amend
  commit = 23,          // down: from this operation on, use this epoch; or go on without it
  lane_failed = 24,     // up: this epoch is broken here
  freeze = 25,          // down: stop using this epoch, answer with a holdings report
  holdings = 26,        // up: which results of the window this rank has
  recover = 27,         // down: everyone's holdings
  stalled = 28,         // up: an operation does not end
  inquiry = 29,         // down: where are you
  progress = 30,        // up: answer to inquiry
  abort = 31,           // both ways: the communicator is over; payload is the reason, UTF-8
  goodbye = 32,         // both ways: orderly end
  finalize = 33,        // up: all my operations ended; down: everyone's did
  second_way = 34,      // up, then down: between two ranks, or one and all, connections go the other way from now on
  whereabouts = 35,     // up: where are these ranks?
  members = 36,         // down: there
  amend = 37,           // down: the policy is about to change; stop starting operations, say which one is next
  amended = 38,         // down: from this operation on, this step of the policy; payload is an Amendment (policy.h)
  // rank <-> rank: the fallback and point-to-point channels
  peer_hello = 48,  // first frame of the connecting side; payload proves the group's secret
  peer_data = 49,   // a piece of a fallback collective
  repair = 50,      // a result, or an input, that recovery moves between ranks
  message = 51,     // a piece of a send/recv pair
  taken = 52,       // how many frames of this connection have been taken; answers a peer_hello that goes on
  offer = 53,       // a send with a tag waits for its receive; no data
  want = 54,        // the receive is there: send the message that was offered under this number
};

namespace frame_flags {
inline constexpr std::uint16_t kBare = 1;  // moves the window, carries no data
inline constexpr std::uint16_t kWantsResult =
    2;  // contribution: somebody below needs the result's data, not only its arrival
inline constexpr std::uint16_t kAll = kBare | kWantsResult;
}  // namespace frame_flags

/// Identifies what was asked for; ranks whose signatures differ for one operation are in error.
struct Signature {
  Collective collective = Collective::all_reduce;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t root = 0;
  std::uint64_t count = 0;  // elements, as given to the call
  friend bool operator==(const Signature&, const Signature&) = default;
};
/// "all_reduce of 1000 float32 (sum)", "broadcast of 3 int8 from rank 2"
[[nodiscard]] std::string to_string(const Signature& signature);

/// 64 bytes, little-endian, in front of every payload.
struct FrameHeader {
  std::uint32_t magic = kFrameMagic;
  std::uint8_t version = kProtocolVersion;
  FrameType type = FrameType::join;
  std::uint16_t flags = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t epoch = 0;  // between ranks: frames taken of the other direction, where connections can go on
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;   // lanes: the segment's sequence. fallback: the schedule's round
  std::uint64_t operation = 0;  // the collective call's number in its communicator
  std::uint64_t count = 0;      // Signature::count
  std::uint32_t segment = 0;    // the segment's index within its operation
  Collective collective = Collective::all_reduce;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint8_t lane = 0;
  std::uint32_t root = 0;      // Signature::root; in frames between ranks also the sender's rank, as the type says
  std::uint32_t checksum = 0;  // CRC32C over header and payload on packet transports; 0 on reliable channels

  [[nodiscard]] Signature signature() const noexcept { return {collective, dtype, op, root, count}; }
  void set_signature(const Signature& s) noexcept {
    collective = s.collective;
    dtype = s.dtype;
    op = s.op;
    root = s.root;
    count = s.count;
  }
  [[nodiscard]] bool bare() const noexcept { return (flags & frame_flags::kBare) != 0; }
  [[nodiscard]] bool wants_result() const noexcept { return (flags & frame_flags::kWantsResult) != 0; }
};
inline constexpr std::size_t kFrameHeaderBytes = 64;
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);
static_assert(offsetof(FrameHeader, payload_bytes) == 8 && offsetof(FrameHeader, epoch) == 12 &&
              offsetof(FrameHeader, group) == 16 && offsetof(FrameHeader, sequence) == 24 &&
              offsetof(FrameHeader, operation) == 32 && offsetof(FrameHeader, count) == 40 &&
              offsetof(FrameHeader, segment) == 48 && offsetof(FrameHeader, collective) == 52 &&
              offsetof(FrameHeader, lane) == 55 && offsetof(FrameHeader, root) == 56 &&
              offsetof(FrameHeader, checksum) == 60);

using FrameBytes = std::array<std::byte, kFrameHeaderBytes>;

/// Why bytes are no frame. Counted, never trusted.
enum class FrameReject : std::uint8_t { magic, version, type, payload_too_long, dtype, op, collective, lane, flags };
[[nodiscard]] std::string_view to_string(FrameReject reject) noexcept;

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out) noexcept;
/// Checks every field that has a bound; what comes back holds only valid enumerators and a payload length that is
/// allowed for its type. Reads exactly 64 bytes.
[[nodiscard]] std::expected<FrameHeader, FrameReject> decode(std::span<const std::byte, kFrameHeaderBytes> in) noexcept;

/// Largest payload that a frame of this type may carry.
[[nodiscard]] std::uint32_t payload_bytes_max(FrameType type) noexcept;
[[nodiscard]] std::string_view to_string(FrameType type) noexcept;

/// Two ranks that asked for different things under one sequence.
struct MismatchReport {
  std::uint64_t operation = 0;
  std::uint32_t rank_a = 0, rank_b = 0;
  Signature a, b;
  friend bool operator==(const MismatchReport&, const MismatchReport&) = default;
};
inline constexpr std::size_t kMismatchReportBytes = 56;
void encode(const MismatchReport& report, std::span<std::byte, kMismatchReportBytes> out) noexcept;
[[nodiscard]] std::optional<MismatchReport> decode_mismatch(std::span<const std::byte> in) noexcept;
/// "operation 7: rank 0 called all_reduce of 10 float32 (sum), rank 3 called barrier"
[[nodiscard]] std::string to_string(const MismatchReport& report);

}  // namespace tributary
