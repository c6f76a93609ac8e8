#pragma once
// Finds the sender of a request by the token in the request.
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "tree-manager/identity/identity_token.h"
#include "tree-manager/identity/revocations.h"

namespace tributary::manager {

/// Secrets that all callers of a kind share, as in earlier versions. No request is accepted with an empty secret.
struct OldSecrets {
  std::string aggregator_token;  // may drain and put topologies, too
  std::string job_token;
};

struct Proof {
  std::optional<Identity> identity;
  std::string why;          // without an identity: the mistake in the token, with its code; empty: no token was given
  IdentityClaims claims{};  // claims of an identity token
};

/// Any thread may call it.
class Authenticator {
 public:
  /// `keep` saves the text of the revocations before they take effect.
  Authenticator(OldSecrets old, IdentityKeys keys, Revocations revoked, std::function<Status(const std::string&)> keep);

  /// `authorization` is the header's text, `from` the sender's address.
  [[nodiscard]] Proof look(std::string_view authorization, const std::string& from, std::int64_t now_s);
  [[nodiscard]] Result<std::string> sign(const IdentityClaims& claims) const;
  /// From now on the authenticator accepts neither the token nor its renewals.
  /// It remembers the revocation for as long as such a token can be valid, until `until`.
  [[nodiscard]] Status revoke(const std::string& id, std::int64_t until, std::int64_t now_s);
  [[nodiscard]] Revocations revoked() const;
  /// Changes the keys. Tokens of a key that was removed are not accepted.
  void use_keys(IdentityKeys keys);
  /// Changes the secrets that all callers of a kind share. A secret that was empty at first stays without effect.
  void use_old_secrets(OldSecrets secrets);
  /// Takes over the saved text of the revocations. Errc::corrupt: it is no such text, and nothing has changed.
  [[nodiscard]] Status use_revocations(const std::string& kept);

 private:
  [[nodiscard]] std::optional<Identity> by_old_secret(std::string_view token, const std::string& from);

  const std::function<Status(const std::string&)> keep_;
  std::mutex revoking_;       // held while a revocation is saved
  mutable std::mutex mutex_;  // guards all members below
  OldSecrets old_;
  IdentityKeys keys_;
  Revocations revoked_;
  Roles seen_old_;  // roles of the old secrets that were used
};

}  // namespace tributary::manager
