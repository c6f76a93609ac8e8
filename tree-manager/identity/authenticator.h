#pragma once
// Finds out who sends a request, by the token that came with it.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tree-manager/identity/identity_token.h"
#include "tree-manager/identity/revocations.h"

namespace tributary::manager {

/// Secrets that all of a kind share, as earlier versions had. An empty one is good for nothing.
struct OldSecrets {
  std::string aggregator_token;  // drains and puts topologies, too
  std::string job_token;
};

struct Proof {
  std::optional<Identity> identity;
  std::string why;          // without an identity: what is wrong with the token; empty: none was given
  IdentityClaims claims{};  // of an identity token
};

/// Any thread.
class Authenticator {
 public:
  /// `keep` saves the revocations' text, before they count.
  Authenticator(OldSecrets old, IdentityKeys keys, Revocations revoked, std::function<Status(const std::string&)> keep);

  /// `authorization` is the header's text, `from` the address that sends it.
  [[nodiscard]] Proof look(std::string_view authorization, const std::string& from, std::int64_t now_s);
  [[nodiscard]] Result<std::string> sign(const IdentityClaims& claims) const;
  /// The token is good for nothing from now on, nor is one that it was renewed to.
  [[nodiscard]] Status revoke(const std::string& id, std::int64_t now_s);
  [[nodiscard]] Revocations revoked() const;
  /// Changes the keys. Tokens of a key that is not there any more are good for nothing.
  void use_keys(IdentityKeys keys);

 private:
  [[nodiscard]] std::optional<Identity> by_old_secret(std::string_view token, const std::string& from);

  const OldSecrets old_;
  const std::function<Status(const std::string&)> keep_;
  std::mutex revoking_;       // held while a revocation is saved
  mutable std::mutex mutex_;  // guards everything below
  IdentityKeys keys_;
  Revocations revoked_;
  Roles seen_old_;  // of old secrets that were used
};

}  // namespace tributary::manager
