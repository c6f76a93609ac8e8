#pragma once
// Tokens for tests that look at their bytes.
#include <cstddef>
#include <utility>

#include "tributary/protocol/credential.h"

namespace tributary {

inline constexpr std::size_t kJobAt = 48;  // docs/protocol.md, "Tokens"

/// Signs with a key that all tests of one process share.
inline Token signed_with(const TokenClaims& claims) {
  static const SigningKey key = std::move(*SigningKey::generate());
  return key.sign(claims).value();
}

}  // namespace tributary
