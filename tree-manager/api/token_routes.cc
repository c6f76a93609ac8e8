#include "tree-manager/api/token_routes.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "tree-manager/api/json_input.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSecondsMax = static_cast<std::uint64_t>(kTokenSecondsMax);

HttpReply signed_reply(const Authenticator& authenticator, const IdentityClaims& claims) {
  const auto token = authenticator.sign(claims);
  if (!token) return error_reply(token.error());
  return json_reply({{"token", *token},
                     {"id", claims.id},
                     {"expires_at", claims.until},
                     {"renewable_until", claims.renewable_until}});
}

/// Returns for example "tenant alice of physics".
std::string holder_of(const IdentityClaims& claims) {
  const bool other_tenant = !claims.tenant.empty() && claims.tenant != claims.name;
  return std::string(to_string(claims.role)) + " " + claims.name + (other_tenant ? " of " + claims.tenant : "");
}

Result<Scopes> scopes_in(const std::vector<std::string>& words) {
  if (words.empty()) return Scopes::all();
  Scopes scopes;
  for (const std::string& word : words) {
    const auto scope = scope_from_string(word);
    if (!scope) return fail(Errc::bad_argument, "'scopes': '" + word + "' is no scope");
    scopes.add(*scope);
  }
  return scopes;
}

Result<IdentityClaims> claims_in(const std::string& body, std::int64_t now_s) {
  JsonInput in(body);
  const std::string role = in.text("role", "tenant");
  IdentityClaims claims{
      .id = {}, .name = in.text("name", ""), .tenant = in.text("tenant", ""), .job = in.text("job", "")};
  claims.life = static_cast<std::int64_t>(in.number("life_seconds", 1, kSecondsMax));
  const auto renewable = static_cast<std::int64_t>(in.number("renewable_seconds", 0, kSecondsMax, 0));
  const auto scopes = scopes_in(in.texts("scopes", false));
  if (auto ok = in.finish(); !ok) return std::unexpected(ok.error());
  if (!scopes) return std::unexpected(scopes.error());
  const auto known = role_from_string(role);
  if (!known) return fail(Errc::bad_argument, "'role': '" + role + "' is no role");
  auto id = make_token_id();
  if (!id) return std::unexpected(id.error());
  claims.id = std::move(*id);
  claims.role = *known;
  claims.scopes = *scopes;
  if (claims.name.empty()) claims.name = claims.tenant;
  claims.until = now_s + claims.life;
  claims.renewable_until = std::max(claims.until, now_s + renewable);
  claims.from = token_start(now_s, claims.renewable_until);
  return claims;
}

}  // namespace

HttpReply make_token(const Authenticator& authenticator, const Identity& caller, const std::string& body,
                     std::int64_t now_s, std::string& object) {
  const auto claims = claims_in(body, now_s);
  if (!claims) return error_reply(claims.error());
  const bool higher = claims->role == Role::administrator || claims->role == Role::operator_;
  if (higher && !caller.roles.has(Role::administrator)) {
    return error_reply(403, "the role " + to_string(caller.roles) + " may not make a token of the role " +
                                std::string(to_string(claims->role)) + "; it takes administrator");
  }
  HttpReply reply = signed_reply(authenticator, *claims);
  if (reply.status == 200) object = "token " + claims->id + ": " + holder_of(*claims);
  return reply;
}

HttpReply renew_token(const Authenticator& authenticator, const IdentityClaims& claims, std::int64_t now_s) {
  if (claims.id.empty()) return error_reply(400, "only identity tokens are renewed; this is another kind of secret");
  IdentityClaims next = claims;
  next.until = std::max(claims.until, std::min(now_s + claims.life, claims.renewable_until));
  return signed_reply(authenticator, next);
}

HttpReply revoke_token(Authenticator& authenticator, const std::string& body, std::int64_t now_s, std::string& object) {
  JsonInput in(body);
  const std::string id = in.text("id");
  const auto until = static_cast<std::int64_t>(in.number("until", 0, kUnixSecondsMax, 0));
  if (auto ok = in.finish(); !ok) return error_reply(ok.error());
  const bool ascii = std::ranges::all_of(id, [](unsigned char c) { return c < 128; });
  if (!ascii || !is_name(id)) return error_reply(400, "'id' is no token's id; `tributary token show` shows it");
  const std::int64_t last = now_s + kTokenSecondsMax;
  const auto ok = authenticator.revoke(id, until == 0 ? last : std::min(until, last), now_s);
  if (!ok) return error_reply(ok.error());
  object = "token " + id;
  return json_reply({{"done", true}});
}

HttpReply list_revoked(const Authenticator& authenticator) {
  json list = json::array();
  const Revocations revoked = authenticator.revoked();
  for (const auto& [id, until] : revoked.all()) list.push_back({{"id", id}, {"until", until}});
  return json_reply({{"revoked", std::move(list)}});
}

}  // namespace tributary::manager
