#pragma once
// The secret that seals packets between a child and its aggregator. Only these two use it; it never travels in clear.
//
// The manager shares one secret with each aggregator, and another with the ranks of each group, by X25519 (RFC 7748): a
// process that reads all messages learns none of these secrets. A child's *link secret* is derived from the
// aggregator's shared secret and the child's place, so the aggregator derives it itself. The child's token carries it,
// masked by the secret that the child shares with the manager. The token's signature covers the masked link secret.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary {

/// The protection of a group's packets and streams, ascending.
enum class PacketSecurity : std::uint8_t {
  off = 0,           // a checksum, which protects only against accidental changes
  authenticate = 1,  // a process without the key cannot make, change or repeat a packet
  encrypt = 2,       // a process without the key also cannot read a payload
};
[[nodiscard]] std::string_view to_string(PacketSecurity security) noexcept;
/// Reads a text. Errc::bad_argument lists the allowed texts.
[[nodiscard]] Result<PacketSecurity> parse_packet_security(std::string_view text);

inline constexpr std::size_t kExchangeKeyBytes = 32;
inline constexpr std::size_t kLinkSecretBytes = 16;
inline constexpr std::size_t kDigestBytes = 32;
using ExchangePublicKey = std::array<std::byte, kExchangeKeyBytes>;
using SharedSecret = std::array<std::byte, 32>;
using LinkSecret = std::array<std::byte, kLinkSecretBytes>;
using Digest = std::array<std::byte, kDigestBytes>;

/// Returns an HMAC-SHA256 (RFC 2104).
[[nodiscard]] Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) noexcept;
/// Return the parts of HKDF (RFC 5869) with SHA-256: `extract`, and the first block of `expand`.
[[nodiscard]] Digest hkdf_extract(std::span<const std::byte> salt, std::span<const std::byte> secret) noexcept;
[[nodiscard]] Digest hkdf_expand(std::span<const std::byte> key, std::span<const std::byte> info) noexcept;
/// Returns whether `a` and `b`, which have equal lengths, are equal. Compares in constant time.
[[nodiscard]] bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;
/// Fills `into` with random bytes of the system; false if the system has none.
[[nodiscard]] bool random_bytes(std::span<std::byte> into) noexcept;

/// A key pair for X25519. Any 32 bytes are a private key.
class ExchangeKey {
 public:
  [[nodiscard]] static Result<ExchangeKey> generate();
  [[nodiscard]] static Result<ExchangeKey> from_private(std::span<const std::byte, kExchangeKeyBytes> bytes);
  [[nodiscard]] const ExchangePublicKey& public_key() const noexcept { return public_key_; }
  [[nodiscard]] std::span<const std::byte, kExchangeKeyBytes> private_bytes() const noexcept { return private_; }
  /// Returns the secret that this key and `other` share: the owner of `other` gets the same secret. Errc::corrupt:
  /// `other` is a key that no honest process makes.
  [[nodiscard]] Result<SharedSecret> agree(const ExchangePublicKey& other) const;

 private:
  std::array<std::byte, kExchangeKeyBytes> private_{};
  ExchangePublicKey public_key_{};
};

/// Derives the private key of one purpose from a secret that serves several purposes.
[[nodiscard]] Result<ExchangeKey> exchange_key_of(std::span<const std::byte> secret, std::string_view purpose);

/// One child's place at its aggregator.
struct LinkName {
  std::uint64_t group = 0;  // 0: the secret of packets between ranks
  std::uint32_t epoch = 0;
  std::uint32_t lane = 0;
  std::uint16_t child = 0;
  friend bool operator==(const LinkName&, const LinkName&) = default;
};

/// Returns the link secret of the child at this place, from the secret that its aggregator shares with the manager.
[[nodiscard]] LinkSecret link_secret(const SharedSecret& of_aggregator, const LinkName& name) noexcept;
/// Masks a link secret for the child's token; unmasks it if `secret` is a masked secret. `of_child` is the secret that
/// the child shares with the manager, `aggregator` the name in the token.
[[nodiscard]] LinkSecret masked(const LinkSecret& secret, const SharedSecret& of_child, const LinkName& name,
                                std::string_view aggregator) noexcept;

}  // namespace tributary
