#include "tree-manager/identity/authenticator.h"

#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

constexpr std::string_view kBearer = "Bearer ";

/// The comparison takes as long for a wrong token as for a right token of the same length.
bool same_token(std::string_view a, std::string_view b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

/// The aggregator token may drain and put topologies, as in earlier versions. It is on every aggregator's host, so it
/// may not issue tokens.
Identity holder_of_aggregator_token() {
  return {.name = "aggregator.token",
          .roles = Roles(Role::operator_, Role::aggregator),
          .scopes = Scopes(Scope::read, Scope::plan, Scope::aggregators, Scope::drain, Scope::topology),
          .old_secret = true};
}

Identity holder_of_job_token() {
  return {.name = "job.token",
          .roles = Roles(Role::tenant),
          .scopes = Scopes(Scope::read, Scope::plan, Scope::groups),
          .old_secret = true};
}

}  // namespace

Authenticator::Authenticator(OldSecrets old, IdentityKeys keys, Revocations revoked,
                             std::function<Status(const std::string&)> keep)
    : keep_(std::move(keep)), old_(std::move(old)), keys_(std::move(keys)), revoked_(std::move(revoked)) {}

std::optional<Identity> Authenticator::by_old_secret(std::string_view token, const std::string& from) {
  const std::lock_guard lock(mutex_);
  const bool aggregator = same_token(token, old_.aggregator_token);
  const bool job = same_token(token, old_.job_token);
  if (!aggregator && !job) return std::nullopt;
  Identity identity = aggregator ? holder_of_aggregator_token() : holder_of_job_token();
  const Role role = aggregator ? Role::aggregator : Role::tenant;
  if (!seen_old_.has(role)) {
    seen_old_.add(role);
    spdlog::warn(
        "{} uses {}, a secret that all its holders share and that does not expire; `tributary token make` makes a "
        "token for each of them, and old_secrets: false refuses the file",
        from, identity.name);
  }
  return identity;
}

Proof Authenticator::look(std::string_view authorization, const std::string& from, std::int64_t now_s) {
  if (!authorization.starts_with(kBearer)) return {};
  const std::string_view token = authorization.substr(kBearer.size());
  if (!looks_like_identity_token(token)) {
    auto identity = by_old_secret(token, from);
    const bool known = identity.has_value();
    return {.identity = std::move(identity), .why = known ? "" : coded(Reason::wrong_token, "the token is wrong")};
  }
  const std::lock_guard lock(mutex_);
  auto claims = keys_.verify(token, now_s);
  if (!claims) return {.identity = std::nullopt, .why = claims.error().message};
  if (revoked_.has(claims->id))
    return {.identity = std::nullopt, .why = coded(Reason::token_revoked, "the token was revoked")};
  return {.identity = identity_of(*claims), .why = {}, .claims = std::move(*claims)};
}

Result<std::string> Authenticator::sign(const IdentityClaims& claims) const {
  const std::lock_guard lock(mutex_);
  return keys_.sign(claims);
}

Status Authenticator::revoke(const std::string& id, std::int64_t until, std::int64_t now_s) {
  const std::lock_guard one_at_a_time(revoking_);
  Revocations next = revoked();
  if (auto ok = next.add(id, until, now_s); !ok) return ok;
  if (auto ok = keep_(next.text()); !ok) return ok;  // waits for the disk, so it runs without the lock
  const std::lock_guard lock(mutex_);
  revoked_ = std::move(next);
  return {};
}

Revocations Authenticator::revoked() const {
  const std::lock_guard lock(mutex_);
  return revoked_;
}

void Authenticator::use_old_secrets(OldSecrets secrets) {
  const std::lock_guard lock(mutex_);
  if (!old_.aggregator_token.empty()) old_.aggregator_token = std::move(secrets.aggregator_token);
  if (!old_.job_token.empty()) old_.job_token = std::move(secrets.job_token);
}

Status Authenticator::use_revocations(const std::string& kept) {
  auto revoked = Revocations::parse(kept);
  if (!revoked) return std::unexpected(revoked.error());
  const std::lock_guard one_at_a_time(revoking_);
  const std::lock_guard lock(mutex_);
  revoked_ = std::move(*revoked);
  return {};
}

void Authenticator::use_keys(IdentityKeys keys) {
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

}  // namespace tributary::manager
