#pragma once
// The routes that make, renew and revoke identity tokens.
#include <string>

#include "tree-manager/api/replies.h"
#include "tree-manager/identity/authenticator.h"

namespace tributary::manager {

/// An operator makes tokens of lesser roles alone.
[[nodiscard]] HttpReply make_token(const Authenticator& authenticator, const Identity& caller, const std::string& body,
                                   std::int64_t now_s);
/// Gives the caller a token like its own that lasts longer.
[[nodiscard]] HttpReply renew_token(const Authenticator& authenticator, const IdentityClaims& claims,
                                    std::int64_t now_s);
[[nodiscard]] HttpReply revoke_token(Authenticator& authenticator, const std::string& body, std::int64_t now_s);
[[nodiscard]] HttpReply list_revoked(const Authenticator& authenticator);

}  // namespace tributary::manager
