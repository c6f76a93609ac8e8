#pragma once
// Identity tokens: texts that prove an identity's name and role to the manager until they expire. The holder of a
// signing key makes them; the manager verifies them without a look-up.
//
//   trb1.KEY.CLAIMS.SEAL    CLAIMS: JSON, SEAL: HMAC-SHA256 of the text before; both in base64url without padding
//
// The seal is an HMAC instead of a signature with a public key, because the check of a forged token then takes one
// microsecond instead of a hundred.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tree-manager/identity/identity.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

inline constexpr std::size_t kIdentityTokenBytesMax = 1024;
inline constexpr std::int64_t kTokenSecondsMax = 366LL * 24 * 3600;  // time from the start to the last renewal's end
inline constexpr std::int64_t kClockDifference = 60;  // seconds by which a manager's clock may be behind the signer's
inline constexpr std::size_t kSealKeyBytes = 32;

/// The contents of an identity token.
struct IdentityClaims {
  std::string id;    // the token's id, by which it is revoked; a renewed token keeps it
  std::string name;  // name of the identity
  Role role = Role::reader;
  std::string tenant{};  // tenant of a tenant's token; else empty
  std::string job{};     // empty: any job
  Scopes scopes = Scopes::all();
  std::int64_t from = 0;             // seconds since 1970-01-01 UTC
  std::int64_t until = 0;            // seconds since 1970-01-01 UTC
  std::int64_t life = 0;             // seconds that a renewal adds
  std::int64_t renewable_until = 0;  // latest end of a renewal; equal to `until`: no renewal is possible
  friend bool operator==(const IdentityClaims&, const IdentityClaims&) = default;
};

/// Returns when a token that is made now starts: earlier than now, for a manager whose clock is behind, as far as the
/// longest life allows.
[[nodiscard]] constexpr std::int64_t token_start(std::int64_t now_s, std::int64_t renewable_until) noexcept {
  const std::int64_t earliest = renewable_until - kTokenSecondsMax;
  return earliest > now_s - kClockDifference ? earliest : now_s - kClockDifference;
}

/// Checks the claims. Errc::bad_argument names the claim that is out of bounds.
[[nodiscard]] Status check(const IdentityClaims& claims);
[[nodiscard]] Identity identity_of(const IdentityClaims& claims);

/// Reads the claims without a check of the seal, to show a token to a person. Errc::corrupt: the text is no token.
[[nodiscard]] Result<IdentityClaims> read_identity_token(std::string_view token);
/// True if the text has the form of an identity token; other texts are another kind of secret.
[[nodiscard]] bool looks_like_identity_token(std::string_view text) noexcept;
[[nodiscard]] Result<std::string> make_token_id();

/// The signing keys, by name. The first key signs, and all keys verify, so a key can be changed without a break. Any
/// thread may make const calls.
class IdentityKeys {
 public:
  using Key = std::array<std::byte, kSealKeyBytes>;
  static constexpr std::size_t kKeysMax = 16;

  /// Without keys: signs no token, and accepts none.
  IdentityKeys() = default;
  /// Reads lines with a name and 64 hexadecimal digits; # begins a comment. Errc::bad_config names the wrong line.
  [[nodiscard]] static Result<IdentityKeys> parse(std::string_view text);
  /// Returns such a line with a new key.
  [[nodiscard]] static Result<std::string> make_line();

  /// Signs a token. Errc::bad_argument: check() refuses the claims. Errc::unsupported: there is no key.
  [[nodiscard]] Result<std::string> sign(const IdentityClaims& claims) const;
  /// Returns the claims of a valid token that one of the keys has signed. Errc::denied has the reason why a token is
  /// not accepted.
  [[nodiscard]] Result<IdentityClaims> verify(std::string_view token, std::int64_t now_s) const;
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  std::string signs_with_;
  std::map<std::string, Key, std::less<>> keys_;
};

}  // namespace tributary::manager
