#pragma once
// A token says which child may contribute to which lane of which group. The manager signs tokens with Ed25519 (RFC
// 8032); aggregators verify them offline with the manager's public key. A token has all facts that an aggregator needs
// to serve the lane, so the data plane never asks the manager. Tokens are bearer tokens: each is valid for one join,
// until expires_at. One signature is good for a batch of tokens: it signs the root of a hash tree over them.
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
/// The greatest fence; a fence is the number of a manager's leadership. Every reader of JSON can read numbers up to
/// this number.
inline constexpr std::uint64_t kFenceMax = (1ULL << 53) - 1;
/// The most bytes of the job's name in a token that carries a fence.
inline constexpr std::size_t kFencedJobBytesMax = 55;
/// The most bytes of a tenant's name in a token. tenant_in_token() shortens longer names.
inline constexpr std::size_t kTokenTenantBytesMax = 24;
/// The greatest weight of a tenant's groups: an aggregator divides its work in proportion to the weights.
inline constexpr std::uint8_t kShareWeightMax = 16;

enum class ChildKind : std::uint8_t { rank = 0, aggregator = 1 };

/// The right of one child to one place in an aggregator's part of a lane, and the facts about this part.
struct TokenClaims {
  std::string job;         // at most 63 bytes
  std::string aggregator;  // name of the aggregator for which this token is valid; at most 63 bytes
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint8_t lane = 0;
  ChildKind kind = ChildKind::rank;
  std::uint16_t child = 0;     // this child's index: contributions are added in this order
  std::uint16_t children = 0;  // number of children of this aggregator in this lane, 1 to kChildrenMax
  std::uint16_t window = 0;    // segments that a child may have without a result, 1 to kWindowMax
  std::uint32_t segment_bytes = 0;
  std::uint32_t rank = 0;   // the rank, or the lowest rank below this child
  std::uint32_t ranks = 0;  // number of ranks in the group
  bool root = false;        // this aggregator has no parent
  std::uint8_t scale = 0;   // for averages: 2^scale is at least the number of ranks below this child
  std::string parent_host;  // address of this aggregator's parent, at most 63 bytes; empty at the root
  std::uint16_t parent_port = 0;
  std::int64_t expires_at = 0;                    // seconds since 1970-01-01 UTC
  PacketSecurity security = PacketSecurity::off;  // the least protection of the group's packets
  LinkSecret masked_secret{};                     // the child's link secret after masked(); zeros without security
  std::uint64_t fence = 0;  // number of the signer's leadership; if not 0, `job` is cut to kFencedJobBytesMax
  std::string tenant{};     // owner of the group, as tenant_in_token() writes it; empty: the group has no owner
  std::uint8_t weight = 1;  // weight of the tenant's groups, 1 to kShareWeightMax; with a tenant or a weight above 1,
                            // `job` is cut so that both fit behind it
  friend bool operator==(const TokenClaims&, const TokenClaims&) = default;
};

/// The most tokens that one signature signs.
inline constexpr std::size_t kTokensPerSignature = 8;
/// The bytes of a signed token: 256 bytes of claims, 16 of salt, 64 of signature, 8 for the place in the batch, and 96
/// for the way to the root of its hash tree.
inline constexpr std::size_t kTokenBytes = 440;
using Token = std::array<std::byte, kTokenBytes>;

/// The tokens that a child presents to its aggregator: first the child's token, then the token with which the
/// aggregator joins its parent, and so on up to the root. 1 to kTreeLevelsMax tokens.
using TokenChain = std::vector<Token>;

/// The manager's key. Several threads may call `sign` at once, because it is const.
class SigningKey {
 public:
  [[nodiscard]] static Result<SigningKey> generate();
  /// Makes the key from the 32-byte Ed25519 seed.
  [[nodiscard]] static Result<SigningKey> from_seed(std::span<const std::byte, kPrivateKeyBytes> seed);
  SigningKey(SigningKey&&) noexcept;
  SigningKey& operator=(SigningKey&&) noexcept;
  ~SigningKey();
  [[nodiscard]] std::array<std::byte, kPrivateKeyBytes> seed() const;
  [[nodiscard]] const PublicKey& public_key() const noexcept { return public_key_; }
  /// Signs a token. Errc::bad_argument names the claim that is out of bounds.
  [[nodiscard]] Result<Token> sign(const TokenClaims& claims) const;
  /// Signs one token for each of the claims, with one signature (about 30 us) for kTokensPerSignature tokens. A token
  /// tells its holder nothing from which it could make another token of the batch.
  [[nodiscard]] Result<std::vector<Token>> sign(std::span<const TokenClaims> claims) const;

 private:
  struct Impl;
  explicit SigningKey(std::unique_ptr<Impl> impl);
  [[nodiscard]] Status sign_batch(std::span<Token> batch) const;
  std::unique_ptr<Impl> impl_;
  PublicKey public_key_{};
};

/// A verifier with the manager's public key. `verify` costs about 100 us; several threads may call it at once.
class TokenVerifier {
 public:
  [[nodiscard]] static Result<TokenVerifier> create(const PublicKey& key);
  TokenVerifier(TokenVerifier&&) noexcept;
  TokenVerifier& operator=(TokenVerifier&&) noexcept;
  ~TokenVerifier();
  /// Returns the claims if the manager signed them, every field is within its bounds, and now_s < expires_at; else
  /// Errc::denied (forged, expired) or Errc::corrupt with a sentence. The caller must check that the claims are for the
  /// place at which the child presents the token.
  [[nodiscard]] Result<TokenClaims> verify(const Token& token, std::int64_t now_s) const;

 private:
  struct Impl;
  explicit TokenVerifier(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Returns the claims of a token without a check of its signature, for a process that got the token from the manager.
/// Errc::corrupt: the bytes are no token.
[[nodiscard]] Result<TokenClaims> read_claims(const Token& token);

/// Returns the text that stands for a tenant in tokens: its name; or, if the name is longer than kTokenTenantBytesMax
/// or has blanks, its first 15 bytes with '_' for blanks, '~', and 8 hexadecimal digits of the SHA-256 of the name.
[[nodiscard]] std::string tenant_in_token(std::string_view name);

/// True if the text is a name: 1 to 63 printable characters without blanks.
[[nodiscard]] bool is_name(std::string_view text) noexcept;

/// The payload of a join frame.
struct JoinPayload {
  TokenChain tokens;
  /// The name of an aggregator that joins its parent: if the aggregator is lost, the parent reports this name. No
  /// process signs it. A rank leaves it empty.
  std::string name;
};
inline constexpr std::size_t kJoinBytesMax = kTokenBytes * kTreeLevelsMax + kNameBytesMax;
[[nodiscard]] std::vector<std::byte> encode_join(const TokenChain& chain, std::string_view name);
/// Reads the payload of a join frame. Errc::corrupt: the tokens are malformed, or `name` is no name.
[[nodiscard]] Result<JoinPayload> decode_join(std::span<const std::byte> bytes);

[[nodiscard]] std::vector<std::byte> encode(const TokenChain& chain);
/// Reads a token chain. Errc::corrupt: `bytes` is not a whole number of tokens between 1 and kTreeLevelsMax.
[[nodiscard]] Result<TokenChain> decode_token_chain(std::span<const std::byte> bytes);

[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);
[[nodiscard]] Result<std::vector<std::byte>> from_base64(std::string_view text);
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

}  // namespace tributary
