#pragma once
// Tokens: who may contribute to which lane of which group, as what. The manager signs them with Ed25519 (RFC 8032),
// aggregators verify them offline from the manager's public key. A token says all that an aggregator must know to serve
// the lane, so the data plane never asks the manager. They are bearer tokens: good for one join, until expires_at.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/link_secret.h"

namespace tributary {

inline constexpr std::size_t kPublicKeyBytes = 32;
inline constexpr std::size_t kPrivateKeyBytes = 32;
inline constexpr std::size_t kSignatureBytes = 64;
inline constexpr std::size_t kNameBytesMax = 63;
using PublicKey = std::array<std::byte, kPublicKeyBytes>;

enum class ChildKind : std::uint8_t { rank = 0, aggregator = 1 };

/// One child's right to one place in one aggregator's part of one lane, and that part's shape.
struct TokenClaims {
  std::string job;         // at most 63 bytes
  std::string aggregator;  // the aggregator this token is for, by name; at most 63 bytes
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint8_t lane = 0;
  ChildKind kind = ChildKind::rank;
  std::uint16_t child = 0;     // this child's index: contributions are added in this order
  std::uint16_t children = 0;  // of this aggregator in this lane, 1 to kChildrenMax
  std::uint16_t window = 0;    // segments a child may have outstanding, 1 to kWindowMax
  std::uint32_t segment_bytes = 0;
  std::uint32_t rank = 0;   // the rank, or the lowest rank below this child
  std::uint32_t ranks = 0;  // of the group
  bool root = false;        // this aggregator has no parent
  std::uint8_t scale = 0;  // of an average that comes from this child: 2^scale is at least the number of ranks below it
  std::string parent_host;  // root: empty. Where this aggregator's parent listens; at most 63 bytes
  std::uint16_t parent_port = 0;
  std::int64_t expires_at = 0;                    // seconds since 1970-01-01 UTC
  PacketSecurity security = PacketSecurity::off;  // the least that the group's packets have
  LinkSecret masked_secret{};                     // of the child, see masked(); zeros without security
  friend bool operator==(const TokenClaims&, const TokenClaims&) = default;
};

/// A signed token as it travels: fixed 320 bytes (256 of claims, 64 of signature).
inline constexpr std::size_t kTokenBytes = 320;
using Token = std::array<std::byte, kTokenBytes>;

/// The tokens that a child presents to its aggregator: first its own token, then the one by which that aggregator joins
/// its own parent, and so on to the root. 1 to kTreeLevelsMax tokens.
using TokenChain = std::vector<Token>;

/// The manager's key. Thread-compatible; `sign` is const and may run on several threads.
class SigningKey {
 public:
  [[nodiscard]] static Result<SigningKey> generate();
  /// From the 32-byte Ed25519 seed.
  [[nodiscard]] static Result<SigningKey> from_seed(std::span<const std::byte, kPrivateKeyBytes> seed);
  SigningKey(SigningKey&&) noexcept;
  SigningKey& operator=(SigningKey&&) noexcept;
  ~SigningKey();
  [[nodiscard]] std::array<std::byte, kPrivateKeyBytes> seed() const;
  [[nodiscard]] const PublicKey& public_key() const noexcept { return public_key_; }
  /// Errc::bad_argument names the claim that is out of bounds.
  [[nodiscard]] Result<Token> sign(const TokenClaims& claims) const;

 private:
  struct Impl;
  explicit SigningKey(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
  PublicKey public_key_{};
};

/// Holds the manager's public key, parsed once. `verify` costs about 100 us and is const: any thread.
class TokenVerifier {
 public:
  [[nodiscard]] static Result<TokenVerifier> create(const PublicKey& key);
  TokenVerifier(TokenVerifier&&) noexcept;
  TokenVerifier& operator=(TokenVerifier&&) noexcept;
  ~TokenVerifier();
  /// The claims, if the signature is the manager's, every field is within its bounds, and now_s < expires_at; else
  /// Errc::denied (forged, expired) or Errc::corrupt with a sentence. Whether they fit the place where they are
  /// presented is the caller's to check.
  [[nodiscard]] Result<TokenClaims> verify(const Token& token, std::int64_t now_s) const;

 private:
  struct Impl;
  explicit TokenVerifier(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Returns the claims of a token, whoever made it: for its holder, who got it from the manager. Errc::corrupt if it is
/// none.
[[nodiscard]] Result<TokenClaims> read_claims(const Token& token);

/// One to 63 printable characters without blanks.
[[nodiscard]] bool is_name(std::string_view text) noexcept;

/// The payload of a join frame.
struct JoinPayload {
  TokenChain tokens;
  /// Where an aggregator joins its parent: its own name, by which the parent tells the others who was lost, if it is.
  /// Nobody signs it. Empty: a rank's.
  std::string name;
};
inline constexpr std::size_t kJoinBytesMax = kTokenBytes * kTreeLevelsMax + kNameBytesMax;
[[nodiscard]] std::vector<std::byte> encode_join(const TokenChain& chain, std::string_view name);
/// Errc::corrupt as decode_token_chain() says, and where the name is none.
[[nodiscard]] Result<JoinPayload> decode_join(std::span<const std::byte> bytes);

[[nodiscard]] std::vector<std::byte> encode(const TokenChain& chain);
/// Errc::corrupt unless `bytes` is a whole number of tokens between 1 and kTreeLevelsMax.
[[nodiscard]] Result<TokenChain> decode_token_chain(std::span<const std::byte> bytes);

[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);
[[nodiscard]] Result<std::vector<std::byte>> from_base64(std::string_view text);
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

}  // namespace tributary
