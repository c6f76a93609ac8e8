#include "tributary/protocol/link_secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <string>
#include <vector>

#include "protocol/src/openssl_key.h"

namespace tributary {
namespace {

struct KeyContextFree {
  void operator()(EVP_PKEY_CTX* context) const noexcept { EVP_PKEY_CTX_free(context); }
};
using openssl::bytes_of;
using openssl::Key;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, KeyContextFree>;

/// Returns the place as bytes: little-endian, with fixed lengths, so that no two places have the same bytes.
std::vector<std::byte> info_of(std::string_view purpose, const LinkName& name, std::string_view aggregator) {
  std::vector<std::byte> info(purpose.size() + 1 + 18 + aggregator.size());
  std::byte* at = info.data();
  const auto put = [&at](const void* from, std::size_t bytes) {
    at = std::copy_n(static_cast<const std::byte*>(from), bytes, at);
  };
  put(purpose.data(), purpose.size());
  *at++ = std::byte{0};
  put(&name.group, sizeof name.group);
  put(&name.epoch, sizeof name.epoch);
  put(&name.lane, sizeof name.lane);
  put(&name.child, sizeof name.child);
  put(aggregator.data(), aggregator.size());
  return info;
}

}  // namespace

std::string_view to_string(PacketSecurity security) noexcept {
  switch (security) {
    case PacketSecurity::off:
      return "off";
    case PacketSecurity::authenticate:
      return "authenticate";
    case PacketSecurity::encrypt:
      return "encrypt";
  }
  return "unknown";
}

Result<PacketSecurity> parse_packet_security(std::string_view text) {
  for (const auto security : {PacketSecurity::off, PacketSecurity::authenticate, PacketSecurity::encrypt}) {
    if (text == to_string(security)) return security;
  }
  return fail(Errc::bad_argument, "it is none of off, authenticate and encrypt");
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) noexcept {
  Digest digest{};
  unsigned int bytes = kDigestBytes;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(message.data()), message.size(),
       bytes_of(digest.data()), &bytes);
  return digest;
}

Digest hkdf_extract(std::span<const std::byte> salt, std::span<const std::byte> secret) noexcept {
  return hmac_sha256(salt, secret);
}

Digest hkdf_expand(std::span<const std::byte> key, std::span<const std::byte> info) noexcept {
  std::array<std::byte, 256> message;
  const std::size_t bytes = std::min(info.size(), message.size() - 1);
  std::copy_n(info.begin(), bytes, message.begin());
  message[bytes] = std::byte{1};
  return hmac_sha256(key, std::span(message).first(bytes + 1));
}

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool random_bytes(std::span<std::byte> into) noexcept {
  return RAND_bytes(bytes_of(into.data()), static_cast<int>(into.size())) == 1;
}

Result<ExchangeKey> ExchangeKey::generate() {
  std::array<std::byte, kExchangeKeyBytes> bytes{};
  if (!random_bytes(bytes)) return fail(Errc::io, "OpenSSL has no random numbers");
  return from_private(bytes);
}

Result<ExchangeKey> ExchangeKey::from_private(std::span<const std::byte, kExchangeKeyBytes> bytes) {
  ExchangeKey pair;
  std::ranges::copy(bytes, pair.private_.begin());
  const Key key(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes_of(bytes.data()), bytes.size()));
  std::size_t size = kExchangeKeyBytes;
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), bytes_of(pair.public_key_.data()), &size) != 1) {
    return fail(Errc::unsupported, "OpenSSL made no X25519 key: its default provider is not loaded");
  }
  return pair;
}

Result<SharedSecret> ExchangeKey::agree(const ExchangePublicKey& other) const {
  const Key mine(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, bytes_of(private_.data()), private_.size()));
  const Key theirs(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, bytes_of(other.data()), other.size()));
  const KeyContext context(mine ? EVP_PKEY_CTX_new(mine.get(), nullptr) : nullptr);
  std::array<std::byte, 32> raw{};
  std::size_t bytes = raw.size();
  if (!theirs || !context || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), theirs.get()) != 1 ||
      EVP_PKEY_derive(context.get(), bytes_of(raw.data()), &bytes) != 1) {
    return fail(Errc::corrupt, "these 32 bytes are no X25519 public key");
  }
  constexpr std::string_view kSalt = "tributary exchange 1";
  return hkdf_extract(std::as_bytes(std::span(kSalt)), raw);
}

Result<ExchangeKey> exchange_key_of(std::span<const std::byte> secret, std::string_view purpose) {
  return ExchangeKey::from_private(hmac_sha256(secret, std::as_bytes(std::span(purpose))));
}

LinkSecret link_secret(const SharedSecret& of_aggregator, const LinkName& name) noexcept {
  const Digest digest = hkdf_expand(of_aggregator, info_of("tributary link", name, {}));
  LinkSecret secret;
  std::copy_n(digest.begin(), secret.size(), secret.begin());
  return secret;
}

LinkSecret masked(const LinkSecret& secret, const SharedSecret& of_child, const LinkName& name,
                  std::string_view aggregator) noexcept {
  const Digest mask = hkdf_expand(of_child, info_of("tributary mask", name, aggregator));
  LinkSecret result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = secret[i] ^ mask[i];
  return result;
}

}  // namespace tributary
