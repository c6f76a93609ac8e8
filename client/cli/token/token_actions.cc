#include "client/cli/token/token_actions.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/moments.h"
#include "tree-manager/identity/key_file.h"

namespace tributary::cli {
namespace {

using manager::IdentityClaims;
using nlohmann::json;

Result<IdentityClaims> claims_for(const TokenWanted& wanted) {
  const auto role = manager::role_from_string(wanted.role);
  if (!role) return fail(Errc::bad_argument, "'" + wanted.role + "' is no role");
  auto id = manager::make_token_id();
  if (!id) return std::unexpected(id.error());
  const std::int64_t now = unix_now();
  IdentityClaims claims{.id = std::move(*id),
                        .name = wanted.name.empty() ? wanted.tenant : wanted.name,
                        .role = *role,
                        .tenant = wanted.tenant,
                        .job = wanted.job,
                        .until = now + wanted.life_s,
                        .life = wanted.life_s,
                        .renewable_until = now + std::max(wanted.life_s, wanted.renewable_s)};
  claims.from = manager::token_start(now, claims.renewable_until);
  if (wanted.scopes.empty()) return claims;
  claims.scopes = {};
  for (const std::string& word : wanted.scopes) {
    const auto scope = manager::scope_from_string(word);
    if (!scope) return fail(Errc::bad_argument, "'" + word + "' is no scope");
    claims.scopes.add(*scope);
  }
  return claims;
}

Result<std::string> sign_here(const TokenWanted& wanted) {
  const auto claims = claims_for(wanted);
  if (!claims) return std::unexpected(claims.error());
  const auto keys = manager::load_identity_keys(wanted.key_file);
  if (!keys) return std::unexpected(keys.error());
  return keys->sign(*claims);
}

Result<std::string> token_in(const Result<json>& answer) {
  if (!answer) return std::unexpected(answer.error());
  if (answer->is_object() && answer->contains("token") && (*answer)["token"].is_string())
    return (*answer)["token"].get<std::string>();
  return fail(Errc::corrupt, "the manager's answer holds no token; is it of the same version?");
}

Result<std::string> ask_for_token(const ManagerOptions& options, const TokenWanted& wanted) {
  auto client = connect(options);
  if (!client) return std::unexpected(client.error());
  json body = {{"role", wanted.role}, {"life_seconds", wanted.life_s}, {"renewable_seconds", wanted.renewable_s}};
  if (!wanted.name.empty()) body["name"] = wanted.name;
  if (!wanted.tenant.empty()) body["tenant"] = wanted.tenant;
  if (!wanted.job.empty()) body["job"] = wanted.job;
  if (!wanted.scopes.empty()) body["scopes"] = wanted.scopes;
  return token_in(client->request("POST", "/v1/tokens", body));
}

/// Writes the token for the caller only: to standard output, or to a file that only this user can read.
int put_out(const std::string& token, const std::string& file) {
  if (file.empty()) {
    std::puts(token.c_str());
    return kExitGood;
  }
  const auto ok = manager::write_private_file(file, token + "\n");
  return ok ? kExitGood : complain_of(ok.error());
}

std::vector<std::string> scopes_of(const IdentityClaims& claims) {
  std::vector<std::string> words;
  for (const manager::Scope scope : manager::kScopes) {
    if (claims.scopes.has(scope)) words.emplace_back(to_string(scope));
  }
  return words;
}

json document_of(const IdentityClaims& claims) {
  return {{"id", claims.id},         {"name", claims.name},        {"role", std::string(to_string(claims.role))},
          {"tenant", claims.tenant}, {"job", claims.job},          {"scopes", scopes_of(claims)},
          {"from", claims.from},     {"expires_at", claims.until}, {"renewable_until", claims.renewable_until}};
}

std::string table_of(const IdentityClaims& claims) {
  std::string text;
  const auto line = [&text](const char* what, const std::string& value) {
    text += what + std::string(12 - std::string_view(what).size(), ' ') + value + "\n";
  };
  line("id", claims.id);
  line("name", claims.name);
  line("role", std::string(to_string(claims.role)));
  if (!claims.tenant.empty()) line("tenant", claims.tenant);
  if (!claims.tenant.empty()) line("job", claims.job.empty() ? "any" : claims.job);
  std::string scopes;
  for (const std::string& word : scopes_of(claims)) scopes += (scopes.empty() ? "" : ", ") + word;
  line("scopes", claims.scopes == manager::Scopes::all() ? "all of the role" : scopes);
  line("from", utc_text(claims.from));
  const std::int64_t left = claims.until - unix_now();
  line("until", utc_text(claims.until) + (left > 0 ? "" : ", which is over"));
  if (claims.renewable_until != claims.until) line("renewable", "until " + utc_text(claims.renewable_until));
  return text;
}

}  // namespace

int make_token(const ManagerOptions& options, const TokenWanted& wanted) {
  const auto token = wanted.key_file.empty() ? ask_for_token(options, wanted) : sign_here(wanted);
  return token ? put_out(*token, wanted.output) : complain_of(token.error());
}

int show_token(const ManagerOptions& options, const std::string& token) {
  std::string text = token;
  if (text.empty()) {
    auto read = shown_token(options);
    if (!read) return complain_of(read.error());
    text = std::move(*read);
  }
  if (text.empty()) {
    return complain_of({Errc::bad_argument,
                        "no token is given: name a token, use --token-file, or set "
                        "TRIBUTARY_TOKEN_FILE"});
  }
  const auto claims = manager::read_identity_token(text);
  if (!claims) return complain_of(claims.error());
  const std::string out =
      is_document(options.form) ? document_text(document_of(*claims), options.form) : table_of(*claims);
  std::fputs(out.c_str(), stdout);
  return kExitGood;
}

int renew_token(const ManagerOptions& options) {
  auto client = connect(options);
  if (!client) return complain_of(client.error());
  const auto token = token_in(client->request("POST", "/v1/tokens/renew", json()));
  return token ? put_out(*token, token_file(options)) : complain_of(token.error());
}

int revoke_token(const ManagerOptions& options, const std::string& token) {
  std::string id = token;
  if (token == "-") std::getline(std::cin, id);
  json body = json::object();
  if (manager::looks_like_identity_token(id)) {
    const auto claims = manager::read_identity_token(id);
    if (!claims) return complain_of(claims.error());
    id = claims->id;
    body["until"] = claims->renewable_until;  // the manager need not remember it for longer
  }
  body["id"] = id;
  auto client = connect(options);
  if (!client) return complain_of(client.error());
  const auto done = client->request("POST", "/v1/tokens/revoke", body);
  if (!done) return complain_of(done.error());
  std::printf("token %s and all its renewals are revoked\n", id.c_str());
  return kExitGood;
}

int add_token_key(const std::string& key_file) {
  if (auto ok = manager::add_identity_key(key_file); !ok) return complain_of(ok.error());
  std::printf("%s has a new key, which signs from the manager's next SIGHUP on\n", key_file.c_str());
  return kExitGood;
}

}  // namespace tributary::cli
