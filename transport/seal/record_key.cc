#include "transport/seal/record_key.h"

#include <cstring>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr std::uint32_t kPayloadBit = 1U << 31U;

}  // namespace

std::optional<RecordHead> record_head(std::span<const std::byte> bytes) noexcept {
  TRIBUTARY_ASSERT(bytes.size() >= kRecordHeadBytes, "a record's head is read from {} bytes", bytes.size());
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  const RecordHead head{.payload = (word & kPayloadBit) != 0, .content_bytes = word & ~kPayloadBit};
  if (head.content_bytes == 0 || head.content_bytes > (head.payload ? kPayloadBytesMax : kFramesBytesMax)) {
    return std::nullopt;
  }
  return head;
}

/// Begins the next record, with the next key where a phase begins.
bool RecordKey::begin() noexcept {
  if (const std::uint64_t phase = next_ >> kPhaseBits; next_ == phase << kPhaseBits) {
    const Digest material = secrets_.key_of(from_client_, phase);
    if (!key_.set(std::span(material).first<AeadKey::kMaterialBytes>(), use_ == Use::seals)) return false;
  }
  return key_.begin(next_++);
}

bool RecordKey::seal(bool payload, std::span<const std::byte> content, std::span<std::byte> record) noexcept {
  TRIBUTARY_ASSERT(use_ == Use::seals && record.size() == content.size() + kRecordExtraBytes,
                   "{} bytes are sealed into a record of {}", content.size(), record.size());
  TRIBUTARY_ASSERT(!content.empty() && content.size() <= (payload ? kPayloadBytesMax : kFramesBytesMax),
                   "a record has {} bytes of content", content.size());
  const std::uint32_t word = static_cast<std::uint32_t>(content.size()) | (payload ? kPayloadBit : 0);
  std::memcpy(record.data(), &word, sizeof word);
  std::byte* const out = record.data() + kRecordHeadBytes;
  if (!begin() || !key_.cover(record.first(kRecordHeadBytes))) return false;
  if (!encrypts_ && out != content.data()) std::memcpy(out, content.data(), content.size());
  if (!(encrypts_ ? key_.pass(content, out) : key_.cover({out, content.size()}))) return false;
  return key_.end(record.last<AeadKey::kTagBytes>());
}

bool RecordKey::open(std::span<std::byte> record, std::span<std::byte> content) noexcept {
  TRIBUTARY_ASSERT(use_ == Use::opens && record.size() == content.size() + kRecordExtraBytes,
                   "a record of {} bytes is opened into {}", record.size(), content.size());
  const auto sealed = record.subspan(kRecordHeadBytes, content.size());
  if (!begin() || !key_.cover(record.first(kRecordHeadBytes))) return false;
  if (!(encrypts_ ? key_.pass(sealed, content.data()) : key_.cover(sealed))) return false;
  if (!key_.matches(record.last<AeadKey::kTagBytes>())) return false;
  if (!encrypts_) std::memcpy(content.data(), sealed.data(), sealed.size());
  return true;
}

bool RecordKey::pass_message(std::span<std::byte> content) noexcept {
  TRIBUTARY_ASSERT(!content.empty(), "message {} has no content", next_);
  return begin() && (encrypts_ ? key_.pass(content, content.data()) : key_.cover(content));
}

bool RecordKey::seal_message(std::span<std::byte> content, AeadKey::Tag tag) noexcept {
  TRIBUTARY_ASSERT(use_ == Use::seals, "a key that opens seals {} bytes", content.size());
  return pass_message(content) && key_.end(tag);
}

bool RecordKey::open_message(std::span<std::byte> content, AeadKey::Tag tag) noexcept {
  TRIBUTARY_ASSERT(use_ == Use::opens, "a key that seals opens {} bytes", content.size());
  return pass_message(content) && key_.matches(tag);
}

}  // namespace tributary::transport
