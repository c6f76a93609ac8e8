#pragma once
// The routes that make, renew and revoke identity tokens.
#include <string>

#include "tree-manager/api/replies.h"
#include "tree-manager/identity/authenticator.h"

namespace tributary::manager {

/// Makes a token. An operator may make tokens of lesser roles only. `object` becomes the token's id and holder for the
/// audit log.
[[nodiscard]] HttpReply make_token(const Authenticator& authenticator, const Identity& caller, const std::string& body,
                                   std::int64_t now_s, std::string& object);
/// Gives the caller a token that is like its own, but is valid for longer.
[[nodiscard]] HttpReply renew_token(const Authenticator& authenticator, const IdentityClaims& claims,
                                    std::int64_t now_s);
/// `object` becomes the token's id for the audit log.
[[nodiscard]] HttpReply revoke_token(Authenticator& authenticator, const std::string& body, std::int64_t now_s,
                                     std::string& object);
[[nodiscard]] HttpReply list_revoked(const Authenticator& authenticator);

}  // namespace tributary::manager
