#pragma once
// The bytes of a token's claims: their layout, and the bounds of each claim.
#include <array>
#include <cstddef>
#include <span>

#include "tributary/protocol/credential.h"

namespace tributary::token {

inline constexpr std::size_t kClaimsBytes = 256;
using ClaimsBytes = std::array<std::byte, kClaimsBytes>;

/// Errc::bad_argument names the claim that is out of bounds.
[[nodiscard]] Status check(const TokenClaims& claims);
/// Writes claims that check() has accepted.
[[nodiscard]] ClaimsBytes encode(const TokenClaims& claims) noexcept;
/// Errc::corrupt: the bytes are no claims, or claims of another version, or a claim is out of bounds.
[[nodiscard]] Result<TokenClaims> decode(std::span<const std::byte, kClaimsBytes> bytes);

}  // namespace tributary::token
