#include "transport/packet/seal.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kIvBytes = 12;

unsigned char* bytes_of(std::byte* p) noexcept {
  return reinterpret_cast<unsigned char*>(p);
}
const unsigned char* bytes_of(const std::byte* p) noexcept {
  return reinterpret_cast<const unsigned char*>(p);
}

/// Fetches the cipher only once; otherwise OpenSSL would fetch it again for each key.
const EVP_CIPHER* cipher() {
  static const EVP_CIPHER* const one = EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr);
  if (one == nullptr) throw std::runtime_error("OpenSSL has no AES-128-GCM: its default provider is not loaded");
  return one;
}

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

bool update(EVP_CIPHER_CTX* context, std::byte* out, std::span<const std::byte> in) noexcept {
  int written = 0;
  return in.empty() || EVP_CipherUpdate(context, out == nullptr ? nullptr : bytes_of(out), &written,
                                        bytes_of(in.data()), static_cast<int>(in.size())) == 1;
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
  if (!key.context) key.context.reset(EVP_CIPHER_CTX_new());
  const Digest material = derive("tributary data", sending == client_, phase);
  std::copy_n(material.begin() + kKeyBytes, kIvBytes, key.iv.begin());
  key.phase = kNoPhase;
  if (!key.context || EVP_CipherInit_ex2(key.context.get(), cipher(), bytes_of(material.data()),
                                         bytes_of(key.iv.data()), sending ? 1 : 0, nullptr) != 1) {
    return false;
  }
  key.phase = phase;
  return true;
}

std::array<std::byte, 12> Seal::nonce(const PhaseKey& key, std::uint64_t number) noexcept {
  std::array<std::byte, 12> nonce = key.iv;
  for (std::size_t i = 0; i < sizeof number; ++i) nonce[4 + i] ^= static_cast<std::byte>(number >> (8 * i) & 0xFF);
  return nonce;
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
  EVP_CIPHER_CTX* const context = sending_.context.get();
  const auto iv = nonce(sending_, number);
  const auto copied = head.subspan(kPacketHeaderBytes + kSealTagBytes);
  if (EVP_CipherInit_ex2(context, nullptr, nullptr, bytes_of(iv.data()), 1, nullptr) != 1) return false;
  if (!update(context, nullptr, head.first(kPacketHeaderBytes))) return false;
  if (!update(context, encrypts() ? copied.data() : nullptr, copied)) return false;
  if (!update(context, encrypts() ? sealed_rest.data() : nullptr, rest)) return false;
  int written = 0;
  std::array<unsigned char, kSealTagBytes> last;
  return EVP_CipherFinal_ex(context, last.data(), &written) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(kSealTagBytes),
                             head.data() + kPacketHeaderBytes) == 1;
}

bool Seal::verify(PhaseKey& key, std::uint64_t number, std::span<std::byte> datagram) const noexcept {
  EVP_CIPHER_CTX* const context = key.context.get();
  const auto iv = nonce(key, number);
  const auto payload = datagram.subspan(kPacketHeaderBytes + kSealTagBytes);
  int written = 0;
  std::array<unsigned char, kSealTagBytes> last;
  return EVP_CipherInit_ex2(context, nullptr, nullptr, bytes_of(iv.data()), 0, nullptr) == 1 &&
         EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, static_cast<int>(kSealTagBytes),
                             datagram.data() + kPacketHeaderBytes) == 1 &&
         update(context, nullptr, datagram.first(kPacketHeaderBytes)) &&
         update(context, encrypts() ? payload.data() : nullptr, payload) &&
         EVP_CipherFinal_ex(context, last.data(), &written) == 1;
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
