#include "tree-manager/identity/identity_token.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/protocol/link_secret.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

constexpr std::string_view kMark = "trb1";
constexpr std::size_t kIdBytes = 8;
constexpr std::size_t kKeyNameBytesMax = 16;
constexpr JsonLimits kClaimLimits{.bytes_max = kIdentityTokenBytesMax, .depth_max = 3, .values_max = 64};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Base64 with the characters that URLs and file names allow, and without padding.
std::string to_base64url(std::span<const std::byte> bytes) {
  std::string text = to_base64(bytes);
  text.erase(std::min(text.find('='), text.size()));
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

/// Takes exactly the texts that to_base64url() writes, so that a token has only one form.
std::optional<std::vector<std::byte>> from_base64url(std::string_view text) {
  std::string plain(text);
  if (plain.find_first_of("+/=") != std::string::npos) return std::nullopt;
  std::ranges::replace(plain, '-', '+');
  std::ranges::replace(plain, '_', '/');
  plain.append((4 - plain.size() % 4) % 4, '=');
  const auto bytes = from_base64(plain);
  if (!bytes || to_base64url(*bytes) != text) return std::nullopt;
  return *bytes;
}

struct Parts {
  std::string_view key;
  std::string_view claims;
  std::string_view seal;
  std::string_view sealed;  // the text that the seal covers
};

std::optional<Parts> split(std::string_view token) {
  if (token.size() > kIdentityTokenBytesMax || std::ranges::count(token, '.') != 3) return std::nullopt;
  if (!looks_like_identity_token(token)) return std::nullopt;
  const std::size_t key = kMark.size() + 1;
  const std::size_t claims = token.find('.', key) + 1;
  const std::size_t seal = token.find('.', claims) + 1;
  return Parts{.key = token.substr(key, claims - 1 - key),
               .claims = token.substr(claims, seal - 1 - claims),
               .seal = token.substr(seal),
               .sealed = token.substr(0, seal - 1)};
}

json to_json(const IdentityClaims& claims) {
  json list = {{"id", claims.id},     {"name", claims.name},   {"role", std::string(to_string(claims.role))},
               {"from", claims.from}, {"until", claims.until}, {"life", claims.life}};
  if (!claims.tenant.empty()) list["tenant"] = claims.tenant;
  if (!claims.job.empty()) list["job"] = claims.job;
  if (claims.renewable_until != claims.until) list["renewable_until"] = claims.renewable_until;
  if (claims.scopes == Scopes::all()) return list;
  list["scopes"] = json::array();
  for (const Scope scope : kScopes) {
    if (claims.scopes.has(scope)) list["scopes"].push_back(std::string(to_string(scope)));
  }
  return list;
}

std::string text_in(const json& from, const char* name, bool required) {
  if (!required && !from.contains(name)) return {};
  return from.at(name).get<std::string>();
}

std::int64_t number_in(const json& from, const char* name) {
  const json& member = from.at(name);
  return member.is_number_integer() ? member.get<std::int64_t>() : -1;  // else a value that check() refuses
}

/// Throws if a claim is missing or has another type.
std::optional<IdentityClaims> claims_from(const json& from) {
  const auto role = role_from_string(text_in(from, "role", true));
  if (!role) return std::nullopt;
  IdentityClaims claims{.id = text_in(from, "id", true),
                        .name = text_in(from, "name", true),
                        .role = *role,
                        .tenant = text_in(from, "tenant", false),
                        .job = text_in(from, "job", false),
                        .from = number_in(from, "from"),
                        .until = number_in(from, "until"),
                        .life = number_in(from, "life")};
  claims.renewable_until = from.contains("renewable_until") ? number_in(from, "renewable_until") : claims.until;
  if (!from.contains("scopes")) return claims;
  claims.scopes = {};
  for (const json& word : from.at("scopes")) {
    const auto scope = scope_from_string(word.get<std::string>());
    if (!scope) return std::nullopt;
    claims.scopes.add(*scope);
  }
  return claims;
}

Result<IdentityClaims> read_claims(std::string_view text) {
  const auto corrupt = [] { return fail(Errc::corrupt, "this is no identity token: its claims cannot be read"); };
  const auto bytes = from_base64url(text);
  if (!bytes) return corrupt();
  try {
    const json from = json_or_discarded({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, kClaimLimits);
    if (!from.is_object()) return corrupt();
    auto claims = claims_from(from);
    if (!claims || !check(*claims)) return corrupt();
    return std::move(*claims);
  } catch (const json::exception&) {
    return corrupt();
  }
}

std::string span_text(std::int64_t seconds) {
  return std::to_string(seconds) + " s";
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool read_hex(std::string_view text, IdentityKeys::Key& into) {
  if (text.size() != 2 * into.size()) return false;
  for (std::size_t i = 0; i < into.size(); ++i) {
    const int high = hex_digit(text[2 * i]);
    const int low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    into[i] = static_cast<std::byte>(high << 4 | low);
  }
  return true;
}

/// True for a name of the characters from ! to ~, because JSON allows no broken UTF-8.
bool is_plain_name(std::string_view text) {
  return is_name(text) && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

bool is_key_name(std::string_view text) {
  return !text.empty() && text.size() <= kKeyNameBytesMax &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

bool looks_like_identity_token(std::string_view text) noexcept {
  return text.starts_with(kMark) && text.size() > kMark.size() && text[kMark.size()] == '.';
}

Status check(const IdentityClaims& claims) {
  const auto bad = [](const char* why) -> Status { return fail(Errc::bad_argument, why); };
  if (!is_plain_name(claims.id)) return bad("the token's id must be 1 to 63 ASCII characters without blanks");
  if (!is_plain_name(claims.name)) return bad("the name must be 1 to 63 ASCII characters without blanks");
  const bool tenant = claims.role == Role::tenant;
  if (tenant && !is_plain_name(claims.tenant)) return bad("the tenant must be 1 to 63 ASCII characters without blanks");
  if (!tenant && !claims.tenant.empty()) return bad("only the role tenant has a tenant");
  if (!tenant && !claims.job.empty()) return bad("only the role tenant has a job");
  if (!claims.job.empty() && !is_plain_name(claims.job))
    return bad("the job must be 1 to 63 ASCII characters without blanks");
  if (claims.from < 0 || claims.from > INT64_MAX / 2) return bad("the token's start is not a valid time");
  if (claims.until <= claims.from) return bad("the token ends before it starts");
  if (claims.renewable_until < claims.until) return bad("the token's renewals end before it does");
  if (claims.renewable_until - claims.from > kTokenSecondsMax)
    return bad("a token and its renewals last at most 366 days");
  if (claims.life < 1 || claims.life > kTokenSecondsMax) return bad("the life must be 1 s to 366 days");
  return {};
}

Identity identity_of(const IdentityClaims& claims) {
  return {.name = claims.name,
          .roles = Roles(claims.role),
          .scopes = claims.scopes,
          .tenant = claims.tenant,
          .job = claims.job,
          .token_id = claims.id};
}

Result<IdentityClaims> read_identity_token(std::string_view token) {
  const auto parts = split(token);
  if (!parts) return fail(Errc::corrupt, "this is no identity token: it does not have the form trb1.KEY.CLAIMS.SEAL");
  return read_claims(parts->claims);
}

Result<std::string> make_token_id() {
  std::array<std::byte, kIdBytes> bytes{};
  if (!random_bytes(bytes)) return fail(Errc::io, "OpenSSL has no random numbers");
  return to_hex(bytes);
}

Result<IdentityKeys> IdentityKeys::parse(std::string_view text) {
  IdentityKeys keys;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, std::min(text.find('#'), end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin);
    const std::size_t blank = line.find_first_of(" \t");
    const std::string_view name = line.substr(0, blank);
    Key key{};
    const std::size_t digits = line.find_first_not_of(" \t", std::min(blank, line.size()));
    if (!is_key_name(name) || digits == std::string_view::npos || !read_hex(line.substr(digits), key)) {
      return fail(Errc::bad_config, "line " + std::to_string(number) +
                                        " is no identity key: a name of a-z, 0-9 and -, then 64 hexadecimal digits");
    }
    if (!keys.keys_.emplace(name, key).second) {
      return fail(Errc::bad_config,
                  "line " + std::to_string(number) + ": the key '" + std::string(name) + "' is there twice");
    }
    if (keys.signs_with_.empty()) keys.signs_with_ = name;
    if (keys.size() > kKeysMax) return fail(Errc::bad_config, "there are more than 16 identity keys");
  }
  if (keys.size() == 0) return fail(Errc::bad_config, "there is no identity key");
  return keys;
}

Result<std::string> IdentityKeys::make_line() {
  Key key{};
  auto name = make_token_id();
  if (!name || !random_bytes(key)) return fail(Errc::io, "OpenSSL has no random numbers");
  return *name + " " + to_hex(key);
}

Result<std::string> IdentityKeys::sign(const IdentityClaims& claims) const {
  if (auto ok = check(claims); !ok) return std::unexpected(ok.error());
  const auto key = keys_.find(signs_with_);
  if (key == keys_.end()) return fail(Errc::unsupported, "there is no key for identity tokens");
  const std::string sealed =
      std::string(kMark) + "." + signs_with_ + "." + to_base64url(bytes_of(to_json(claims).dump()));
  std::string token = sealed + "." + to_base64url(hmac_sha256(key->second, bytes_of(sealed)));
  if (token.size() > kIdentityTokenBytesMax) return fail(Errc::bad_argument, "the token would be too long");
  return token;
}

Result<IdentityClaims> IdentityKeys::verify(std::string_view token, std::int64_t now_s) const {
  const auto denied = [](Reason code, std::string why) { return fail(Errc::denied, code, std::move(why)); };
  const auto parts = split(token);
  if (!parts) return denied(Reason::wrong_token, "the token is no identity token");
  const auto key = keys_.find(parts->key);
  if (key == keys_.end())
    return denied(Reason::wrong_token, "the token was signed with a key that this manager does not have");
  const auto seal = from_base64url(parts->seal);
  if (!seal || !same_bytes(*seal, hmac_sha256(key->second, bytes_of(parts->sealed))))
    return denied(Reason::wrong_token, "the token is forged or broken: its seal is wrong");
  auto claims = read_claims(parts->claims);
  if (!claims) return denied(Reason::wrong_token, "the token was made by another version");
  if (now_s < claims->from)
    return denied(Reason::token_not_yet_valid, "the token becomes valid in " + span_text(claims->from - now_s));
  if (now_s >= claims->until)
    return denied(Reason::token_expired, "the token expired " + span_text(now_s - claims->until) + " ago");
  return claims;
}

}  // namespace tributary::manager
