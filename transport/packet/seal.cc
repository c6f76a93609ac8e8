#include "transport/packet/seal.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

SealTag tag_of(std::span<const std::byte> key, std::span<const std::byte> header,
               std::span<const std::byte> payload) noexcept {
  std::array<std::byte, kPacketHeaderBytes + kHandshakeBytes> message;
  const std::size_t more = std::min(payload.size(), kHandshakeBytes);
  std::memcpy(message.data(), header.data(), offsetof(PacketHeader, checksum));
  std::memset(message.data() + offsetof(PacketHeader, checksum), 0, sizeof(PacketHeader::checksum));
  if (more > 0) std::memcpy(message.data() + kPacketHeaderBytes, payload.data(), more);
  const Digest digest = hmac_sha256(key, std::span(message).first(kPacketHeaderBytes + more));
  SealTag tag;
  std::copy_n(digest.begin(), tag.size(), tag.begin());
  return tag;
}

}  // namespace

SealTag open_tag(const LinkSecret& secret, std::span<const std::byte> header,
                 std::span<const std::byte> payload) noexcept {
  constexpr std::string_view kLabel = "tributary open";
  return tag_of(hkdf_expand(secret, std::as_bytes(std::span(kLabel))), header, payload);
}

Seal::Seal(const LinkSecret& secret, const SealContext& context, bool client) : context_(context), client_(client) {
  std::array<std::byte, 2 * kHandshakeRandomBytes> salt;
  std::ranges::copy(context.client_random, salt.begin());
  std::ranges::copy(context.listener_random, salt.begin() + kHandshakeRandomBytes);
  master_ = hkdf_extract(salt, secret);
  control_ours_ = derive("tributary control", client, 0);
  control_theirs_ = derive("tributary control", !client, 0);
  if (!set_up(sending_, 0, true) || !set_up(receiving_[0], 0, false)) {
    throw std::runtime_error("OpenSSL took no key for AES-128-GCM");
  }
}

Seal::~Seal() {
  for (Digest* const secret : {&master_, &control_ours_, &control_theirs_}) {
    OPENSSL_cleanse(secret->data(), secret->size());
  }
}

Digest Seal::derive(std::string_view label, bool from_client, std::uint64_t phase) const noexcept {
  struct {
    std::uint64_t client, listener, phase;
    std::uint8_t from_client, level;
  } told{context_.client, context_.listener, phase, from_client ? std::uint8_t{1} : std::uint8_t{0},
         static_cast<std::uint8_t>(context_.level)};
  constexpr std::size_t kToldBytes = 26;
  std::array<std::byte, 64> info;
  TRIBUTARY_ASSERT(label.size() + 1 + kToldBytes <= info.size(), "a label has {} characters", label.size());
  std::memcpy(info.data(), label.data(), label.size());
  info[label.size()] = std::byte{0};
  std::memcpy(info.data() + label.size() + 1, &told, kToldBytes);
  return hkdf_expand(master_, std::span(info).first(label.size() + 1 + kToldBytes));
}

bool Seal::set_up(PhaseKey& key, std::uint64_t phase, bool sending) const noexcept {
  const Digest material = derive("tributary data", sending == client_, phase);
  key.phase = kNoPhase;
  if (!key.aead.set(std::span(material).first<AeadKey::kMaterialBytes>(), sending)) return false;
  key.phase = phase;
  return true;
}

bool Seal::seal(std::uint64_t number, std::span<std::byte> head, std::span<const std::byte> rest,
                std::span<std::byte> sealed_rest) noexcept {
  TRIBUTARY_ASSERT(head.size() >= kPacketHeaderBytes + kSealTagBytes, "a sealed packet begins with {} bytes",
                   head.size());
  TRIBUTARY_ASSERT(!encrypts() || sealed_rest.size() >= rest.size(), "{} bytes are encrypted into {}", rest.size(),
                   sealed_rest.size());
  if (const std::uint64_t phase = number >> kPhaseBits; phase != sending_.phase && !set_up(sending_, phase, true)) {
    return false;
  }
  AeadKey& key = sending_.aead;
  const auto copied = head.subspan(kPacketHeaderBytes + kSealTagBytes);
  if (!key.begin(number) || !key.cover(head.first(kPacketHeaderBytes))) return false;
  const bool done = encrypts() ? key.pass(copied, copied.data()) && key.pass(rest, sealed_rest.data())
                               : key.cover(copied) && key.cover(rest);
  return done && key.end(head.subspan<kPacketHeaderBytes, kSealTagBytes>());
}

bool Seal::verify(PhaseKey& key, std::uint64_t number, std::span<std::byte> datagram) const noexcept {
  const auto payload = datagram.subspan(kPacketHeaderBytes + kSealTagBytes);
  return key.aead.begin(number) && key.aead.cover(datagram.first(kPacketHeaderBytes)) &&
         (encrypts() ? key.aead.pass(payload, payload.data()) : key.aead.cover(payload)) &&
         key.aead.matches(datagram.subspan<kPacketHeaderBytes, kSealTagBytes>());
}

Seal::Verdict Seal::open(std::uint64_t number, std::span<std::byte> datagram) noexcept {
  if (!taken_.fresh(number)) return Verdict::repeated;
  const std::uint64_t phase = number >> kPhaseBits;
  if (phase + 1 < receiving_phase_ || phase > receiving_phase_ + 1) return Verdict::forged;
  PhaseKey& key = receiving_[phase % receiving_.size()];
  if (key.phase != phase && !set_up(key, phase, false)) return Verdict::forged;
  if (!verify(key, number, datagram)) return Verdict::forged;
  taken_.note(number);
  receiving_phase_ = std::max(receiving_phase_, phase);
  return Verdict::authentic;
}

SealTag Seal::control_tag(bool ours, std::span<const std::byte> header,
                          std::span<const std::byte> payload) const noexcept {
  return tag_of(ours ? control_ours_ : control_theirs_, header, payload);
}

}  // namespace tributary::transport::packet
