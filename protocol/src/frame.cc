#include "tributary/protocol/frame.h"

#include <cstring>

#include "tributary/protocol/collective.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/scaled_sum.h"

namespace tributary {
namespace {

/// The rule for frames of one type; a type without a rule is no frame.
struct TypeRule {
  FrameType type;
  std::string_view name;
  std::uint32_t payload_bytes_max;
};

constexpr std::uint32_t kTextBytesMax = 4096;
constexpr std::uint32_t kQuestionBytesMax = 1U << 14;    // room for 1,024 numbers
constexpr std::uint32_t kMembersBytesMax = 1U << 20;     // room for 1,024 ranks, each with an address and a place
constexpr std::uint32_t kRepairPlanBytesMax = 1U << 18;  // room for 16 lanes, each with a window of numbers, 32 ranks
static_assert(kRepairPlanBytesMax >= kLanesMax * (100 + 21 * kWindowMax + 32 * 36));
constexpr TypeRule kRules[] = {
    {FrameType::join, "join", static_cast<std::uint32_t>(kJoinBytesMax)},
    {FrameType::ready, "ready", 0},
    {FrameType::refuse, "refuse", kTextBytesMax},
    {FrameType::contribution, "contribution", kSegmentBytesMax},
    {FrameType::result, "result", kSegmentBytesMax},
    {FrameType::fault, "fault", static_cast<std::uint32_t>(kMismatchReportBytes)},
    {FrameType::failed, "failed", kTextBytesMax},
    {FrameType::leave, "leave", 0},
    {FrameType::ask, "ask", 0},
    {FrameType::alive, "alive", 0},
    {FrameType::hello, "hello", kTextBytesMax},
    {FrameType::challenge, "challenge", kTextBytesMax},
    {FrameType::welcome, "welcome", kControlBytesMax},
    {FrameType::descriptor, "descriptor", kControlBytesMax},
    {FrameType::joined, "joined", kTextBytesMax},
    {FrameType::propose, "propose", 0},
    {FrameType::next_operation, "next_operation", 0},
    {FrameType::commit, "commit", kTextBytesMax},
    {FrameType::lane_failed, "lane_failed", kTextBytesMax},
    {FrameType::freeze, "freeze", kTextBytesMax},
    {FrameType::holdings, "holdings", kRepairPlanBytesMax},
    {FrameType::recover, "recover", kRepairPlanBytesMax},
    {FrameType::stalled, "stalled", kTextBytesMax},
    {FrameType::inquiry, "inquiry", kTextBytesMax},
    {FrameType::progress, "progress", kTextBytesMax},
    {FrameType::abort, "abort", kTextBytesMax},
    {FrameType::goodbye, "goodbye", 0},
    {FrameType::finalize, "finalize", 0},
    {FrameType::second_way, "second_way", kTextBytesMax},
    {FrameType::whereabouts, "whereabouts", kQuestionBytesMax},
    {FrameType::members, "members", kMembersBytesMax},
    {FrameType::amend, "amend", 0},
    {FrameType::amended, "amended", kTextBytesMax},
    {FrameType::peer_hello, "peer_hello", kTextBytesMax},
    {FrameType::peer_data, "peer_data", kPeerBytesMax},
    {FrameType::repair, "repair", kSegmentBytesMax},
    {FrameType::message, "message", kPeerBytesMax},
    {FrameType::taken, "taken", 0},
    {FrameType::offer, "offer", 0},
    {FrameType::want, "want", 0},
};

const TypeRule* rule_of(FrameType type) noexcept {
  // An index by type, so that decoding needs one load per frame for any number of types.
  static constexpr auto kIndex = [] {
    std::array<std::uint8_t, 256> index{};
    for (std::size_t i = 0; i < std::size(kRules); ++i) {
      index[static_cast<std::uint8_t>(kRules[i].type)] = static_cast<std::uint8_t>(i + 1);
    }
    return index;
  }();
  const std::uint8_t at = kIndex[static_cast<std::uint8_t>(type)];
  return at == 0 ? nullptr : &kRules[at - 1];
}

template <class T>
void put(std::byte*& at, const T& value) noexcept {
  std::memcpy(at, &value, sizeof value);
  at += sizeof value;
}
template <class T>
T take(const std::byte*& at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

bool valid(const Signature& s) noexcept {
  return static_cast<std::uint8_t>(s.collective) < kCollectiveCount &&
         static_cast<std::uint8_t>(s.dtype) < kDTypeCount && is_wire_op(s.op, s.dtype);
}

std::string_view text_of(ReduceOp op) noexcept {
  if (op == kScaledSum) return "avg between hosts";
  if (op == kExactSum) return "exact sum";
  if (op == kExactAverage) return "exact avg";
  if (op == kExactSumOfHosts) return "exact sum between hosts";
  if (op == kExactAverageOfHosts) return "exact avg between hosts";
  if (op == kOrderedProduct) return "ordered prod";
  return to_string(op);
}

void put(std::byte*& at, const Signature& s) noexcept {
  put(at, s.count);
  put(at, s.root);
  put(at, static_cast<std::uint8_t>(s.collective));
  put(at, static_cast<std::uint8_t>(s.dtype));
  put(at, static_cast<std::uint8_t>(s.op));
  put(at, std::uint8_t{0});
}
Signature take_signature(const std::byte*& at) noexcept {
  Signature s;
  s.count = take<std::uint64_t>(at);
  s.root = take<std::uint32_t>(at);
  s.collective = static_cast<Collective>(take<std::uint8_t>(at));
  s.dtype = static_cast<DType>(take<std::uint8_t>(at));
  s.op = static_cast<ReduceOp>(take<std::uint8_t>(at));
  (void)take<std::uint8_t>(at);
  return s;
}

}  // namespace

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> out) noexcept {
  std::memcpy(out.data(), &header, kFrameHeaderBytes);  // frame.h asserts the layout and the byte order
}

std::expected<FrameHeader, FrameReject> decode(std::span<const std::byte, kFrameHeaderBytes> in) noexcept {
  FrameHeader h;
  std::memcpy(&h, in.data(), kFrameHeaderBytes);
  if (h.magic != kFrameMagic) return std::unexpected(FrameReject::magic);
  if (h.version != kProtocolVersion) return std::unexpected(FrameReject::version);
  const TypeRule* rule = rule_of(h.type);
  if (rule == nullptr) return std::unexpected(FrameReject::type);
  if (h.payload_bytes > rule->payload_bytes_max) return std::unexpected(FrameReject::payload_too_long);
  if (static_cast<std::uint8_t>(h.dtype) >= kDTypeCount) return std::unexpected(FrameReject::dtype);
  if (!is_wire_op(h.op, h.dtype)) return std::unexpected(FrameReject::op);
  if (static_cast<std::uint8_t>(h.collective) >= kCollectiveCount) return std::unexpected(FrameReject::collective);
  if (h.lane >= kLanesMax) return std::unexpected(FrameReject::lane);
  if ((h.flags & ~frame_flags::kAll) != 0) return std::unexpected(FrameReject::flags);
  return h;
}

std::uint32_t payload_bytes_max(FrameType type) noexcept {
  const TypeRule* rule = rule_of(type);
  return rule == nullptr ? 0 : rule->payload_bytes_max;
}

std::string_view to_string(FrameType type) noexcept {
  const TypeRule* rule = rule_of(type);
  return rule == nullptr ? std::string_view{"unknown"} : rule->name;
}

std::string_view to_string(FrameReject reject) noexcept {
  switch (reject) {
    case FrameReject::magic:
      return "no Tributary frame (wrong magic)";
    case FrameReject::version:
      static_assert(kProtocolVersion == 3, "the text below names the version");
      return "its protocol version is not 3, which this process speaks; run one version of Tributary on all hosts";
    case FrameReject::type:
      return "unknown frame type";
    case FrameReject::payload_too_long:
      return "payload longer than its frame type allows";
    case FrameReject::dtype:
      return "unknown dtype";
    case FrameReject::op:
      return "unknown reduction operator";
    case FrameReject::collective:
      return "unknown collective";
    case FrameReject::lane:
      return "lane out of range";
    case FrameReject::flags:
      return "unknown flags";
  }
  return "unknown";
}

std::string to_string(const Signature& s) {
  std::string text{to_string(s.collective)};
  if (s.collective == Collective::barrier) return text;
  text += " of " + std::to_string(s.count) + " " + std::string(to_string(s.dtype));
  const CollectiveRow& row = row_of(s.collective);
  if (row.reduces) text += " (" + std::string(text_of(s.op)) + ")";
  if (row.senders == Holders::root) text += " from rank " + std::to_string(s.root);
  if (row.receivers == Holders::root) text += " to rank " + std::to_string(s.root);
  return text;
}

void encode(const MismatchReport& report, std::span<std::byte, kMismatchReportBytes> out) noexcept {
  std::byte* at = out.data();
  put(at, report.operation);
  put(at, report.rank_a);
  put(at, report.rank_b);
  put(at, report.a);
  put(at, report.b);
  std::memset(at, 0, static_cast<std::size_t>(out.data() + out.size() - at));
}

std::optional<MismatchReport> decode_mismatch(std::span<const std::byte> in) noexcept {
  if (in.size() != kMismatchReportBytes) return std::nullopt;
  const std::byte* at = in.data();
  MismatchReport report;
  report.operation = take<std::uint64_t>(at);
  report.rank_a = take<std::uint32_t>(at);
  report.rank_b = take<std::uint32_t>(at);
  report.a = take_signature(at);
  report.b = take_signature(at);
  if (!valid(report.a) || !valid(report.b)) return std::nullopt;
  return report;
}

std::string to_string(const MismatchReport& report) {
  return "operation " + std::to_string(report.operation) + ": rank " + std::to_string(report.rank_a) + " called " +
         to_string(report.a) + ", rank " + std::to_string(report.rank_b) + " called " + to_string(report.b);
}

}  // namespace tributary
