#pragma once
// Identity tokens: texts that prove an identity's name and role to the manager until they expire. The holder of a
// signing key makes them; the manager verifies them without a look-up.
//
//   trb1.KEY.CLAIMS.SEAL    CLAIMS: JSON, SEAL: HMAC-SHA256 of all before its dot; both in base64url without padding
//
// HMAC and not a signature with a public key: a forged token costs the manager a microsecond and not a hundred.
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
inline constexpr std::int64_t kTokenSecondsMax = 366LL * 24 * 3600;  // from the start to the last renewal's end
inline constexpr std::size_t kSealKeyBytes = 32;

/// The contents of an identity token.
struct IdentityClaims {
  std::string id;    // the token's own, for its revocation; a renewed token keeps it
  std::string name;  // who it is
  Role role = Role::reader;
  std::string tenant{};  // for tenants; else empty
  std::string job{};     // empty: any
  Scopes scopes = Scopes::all();
  std::int64_t from = 0;             // seconds since 1970-01-01 UTC
  std::int64_t until = 0;            // seconds since 1970-01-01 UTC
  std::int64_t life = 0;             // seconds that a renewal adds
  std::int64_t renewable_until = 0;  // no renewal lasts longer; `until`: there is none
  friend bool operator==(const IdentityClaims&, const IdentityClaims&) = default;
};

/// Errc::bad_argument names the claim that is out of bounds.
[[nodiscard]] Status check(const IdentityClaims& claims);
[[nodiscard]] Identity identity_of(const IdentityClaims& claims);

/// Reads the claims and believes nothing: for a person who wants to see a token. Errc::corrupt: it is none.
[[nodiscard]] Result<IdentityClaims> read_identity_token(std::string_view token);
/// True if the text says that it is an identity token; everything else is another kind of secret.
[[nodiscard]] bool looks_like_identity_token(std::string_view text) noexcept;
[[nodiscard]] Result<std::string> make_token_id();

/// The signing keys, by name. The first signs, and all verify: so a key is changed without a break. Const calls are
/// safe on any thread.
class IdentityKeys {
 public:
  using Key = std::array<std::byte, kSealKeyBytes>;
  static constexpr std::size_t kKeysMax = 16;

  /// Without keys: signs nothing, and believes nothing.
  IdentityKeys() = default;
  /// Reads lines of a name and 64 hexadecimal digits; # begins a comment. Errc::bad_config names the line.
  [[nodiscard]] static Result<IdentityKeys> parse(std::string_view text);
  /// Returns such a line with a new key.
  [[nodiscard]] static Result<std::string> make_line();

  /// Errc::bad_argument: check() refuses the claims. Errc::unsupported: there is no key.
  [[nodiscard]] Result<std::string> sign(const IdentityClaims& claims) const;
  /// Returns the claims of a token that one of the keys has signed, within its time. Errc::denied says why not.
  [[nodiscard]] Result<IdentityClaims> verify(std::string_view token, std::int64_t now_s) const;
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  std::string signs_with_;
  std::map<std::string, Key, std::less<>> keys_;
};

}  // namespace tributary::manager
