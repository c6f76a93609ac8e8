#pragma once
// The frame is the unit of every channel, between ranks and between ranks and aggregators. docs/protocol.md draws it.
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
/// The version in each frame, each token and each unique id. Raise it whenever an older reader could misunderstand one
/// of them: docs/protocol.md has the rule, and the meaning of each number.
inline constexpr std::uint8_t kProtocolVersion = 3;
static_assert(kProtocolVersion < 10, "a unique id has one digit for it");

/// Bounds that every reader of frames checks before it uses a field.
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
  // Frames between a child and its aggregator: one channel for each child and lane. "Up" is to the aggregator.
  join = 1,          // up: payload is a JoinPayload (credential.h)
  ready = 2,         // down: every child of every aggregator of this lane has joined
  refuse = 3,        // down, then closed: payload is the reason, UTF-8
  contribution = 4,  // up
  result = 5,        // down
  fault = 6,         // up, then down: ranks disagree on an operation; payload is a MismatchReport
  failed = 7,        // both ways, then closed: this lane's tree is broken in this epoch; payload is a LaneLoss
  leave = 8,         // up: this child sends no more frames and waits for no frame
  ask = 9,           // up: no results come; is the aggregator alive?
  alive = 10,        // down: answer to ask, at once, from the worker's loop
  // Frames between a rank and rank 0: the control star. "Up" is to rank 0.
  hello = 16,       // up: introduces the rank, with a proof of the group's secret; payload is JSON
  challenge = 17,   // down, twice: a nonce, then rank 0's proof
  welcome = 18,     // down: the membership table; payload is JSON
  descriptor = 19,  // down: this rank's part of the group descriptor; payload is JSON
  joined = 20,      // up: all lanes of an epoch are ready, or the rank could not join; payload is the reason or empty
  propose = 21,     // down: start no more operations, and answer with the next operation's number
  next_operation = 22,  // up: answer to propose, or to amend
  commit = 23,          // down: use this epoch from this operation on, or go on without it
  lane_failed = 24,     // up: a tree of this epoch is broken at this rank
  freeze = 25,          // down: stop using this epoch, and answer with `holdings`
  holdings = 26,        // up: the results of the window that this rank has
  recover = 27,         // down: this rank's part of the repair, made from all holdings
  stalled = 28,         // up: an operation of this rank does not end
  inquiry = 29,         // down: which operation does this rank wait for?
  progress = 30,        // up: answer to inquiry
  abort = 31,           // both ways: the communicator ends; payload is the reason, UTF-8
  goodbye = 32,         // reserved: no process sends it
  finalize = 33,        // up: all operations of this rank have ended; down: all ranks' operations have ended
  second_way = 34,      // up, then down: connections of two ranks, or all of one rank, now use the second transport
  whereabouts = 35,     // up: asks for the addresses of some ranks
  members = 36,         // down: answer to whereabouts
  amend = 37,           // down: the policy will change; start no more operations, answer with the next number
  amended = 38,         // down: use this step of the policy from this operation on; payload is an Amendment (policy.h)
  // Frames between two ranks: the channels of the fallback and of messages.
  peer_hello = 48,  // first frame of the side that connects; payload proves the group's secret
  peer_data = 49,   // a piece of a fallback collective
  repair = 50,      // a result or an input that recovery moves between ranks
  message = 51,     // a piece of a send/recv pair
  taken = 52,       // number of frames that the receiver has taken; also the answer to a peer_hello of a second channel
  offer = 53,       // a send with a tag waits for its receive; carries no data
  want = 54,        // a receive has taken the offer with this number: send its message
};

namespace frame_flags {
inline constexpr std::uint16_t kBare = 1;  // the frame moves the window and carries no data
/// The flag of a contribution: a rank below needs the result's data, not only its arrival.
inline constexpr std::uint16_t kWantsResult = 2;
inline constexpr std::uint16_t kAll = kBare | kWantsResult;
}  // namespace frame_flags

/// The arguments of a call that must be equal on every rank.
struct Signature {
  Collective collective = Collective::all_reduce;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t root = 0;
  std::uint64_t count = 0;  // number of elements in the call's argument
  friend bool operator==(const Signature&, const Signature&) = default;
};
/// Returns a text such as "all_reduce of 1000 float32 (sum)" or "broadcast of 3 int8 from rank 2".
[[nodiscard]] std::string to_string(const Signature& signature);

/// The header of every frame: 64 bytes, little-endian, before the payload.
struct FrameHeader {
  std::uint32_t magic = kFrameMagic;
  std::uint8_t version = kProtocolVersion;
  FrameType type = FrameType::join;
  std::uint16_t flags = 0;
  std::uint32_t payload_bytes = 0;
  std::uint32_t epoch = 0;  // between ranks with two ways: number of frames taken from the other direction
  std::uint64_t group = 0;
  std::uint64_t sequence = 0;   // lanes: the segment's sequence; fallback: the schedule's round
  std::uint64_t operation = 0;  // number of the collective call in its communicator
  std::uint64_t count = 0;      // Signature::count
  std::uint32_t segment = 0;    // the segment's index within its operation
  Collective collective = Collective::all_reduce;
  DType dtype = DType::uint8;
  ReduceOp op = ReduceOp::sum;
  std::uint8_t lane = 0;
  std::uint32_t root = 0;      // Signature::root; in some types of frames between ranks the sender's rank
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

/// The reason why bytes are no frame. The reader counts such bytes and does not use them.
enum class FrameReject : std::uint8_t { magic, version, type, payload_too_long, dtype, op, collective, lane, flags };
[[nodiscard]] std::string_view to_string(FrameReject reject) noexcept;

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out) noexcept;
/// Reads a header of exactly 64 bytes, and checks every field that has a bound: the returned header has only valid
/// enumerators, and a payload length that its type allows.
[[nodiscard]] std::expected<FrameHeader, FrameReject> decode(std::span<const std::byte, kFrameHeaderBytes> in) noexcept;

/// Returns the largest payload that a frame of this type may carry.
[[nodiscard]] std::uint32_t payload_bytes_max(FrameType type) noexcept;
[[nodiscard]] std::string_view to_string(FrameType type) noexcept;

/// A report that two ranks made different calls for one operation.
struct MismatchReport {
  std::uint64_t operation = 0;
  std::uint32_t rank_a = 0, rank_b = 0;
  Signature a, b;
  friend bool operator==(const MismatchReport&, const MismatchReport&) = default;
};
inline constexpr std::size_t kMismatchReportBytes = 56;
void encode(const MismatchReport& report, std::span<std::byte, kMismatchReportBytes> out) noexcept;
[[nodiscard]] std::optional<MismatchReport> decode_mismatch(std::span<const std::byte> in) noexcept;
/// Returns a text: "operation 7: rank 0 called all_reduce of 10 float32 (sum), rank 3 called barrier".
[[nodiscard]] std::string to_string(const MismatchReport& report);

}  // namespace tributary
