#include "tree-manager/api/certificate_identities.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "service-kit/yaml_text.h"
#include "tree-manager/topology/yaml_fields.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

constexpr std::string_view kSubject = "subject:";
constexpr std::array<std::string_view, 4> kKinds{"DNS:", "IP:", "URI:", "email:"};

/// Capital letters make no difference in host names.
std::string folded(std::string name) {
  if (!name.starts_with("DNS:")) return name;
  std::transform(name.begin() + 4, name.end(), name.begin() + 4, [](unsigned char c) { return std::tolower(c); });
  return name;
}

/// Returns "DNS:*.leafs.example" for "DNS:a.leafs.example"; empty for a name of another kind.
std::string with_star(const std::string& name) {
  const std::size_t dot = name.find('.');
  return name.starts_with("DNS:") && dot != std::string::npos ? "DNS:*" + name.substr(dot) : "";
}

/// Returns the text behind "DNS:" and so on, or behind the subject's first "CN=".
std::string plain_name(const std::string& key) {
  if (!key.starts_with(kSubject)) return key.substr(key.find(':') + 1);
  const std::size_t at = key.find("CN=");
  if (at == std::string::npos) return {};
  return key.substr(at + 3, key.find(',', at) - at - 3);
}

bool has_star(const std::string& key) {
  return key.starts_with("DNS:*.");
}

/// Reads the entry's key: "subject:..." or an alternative name.
std::string read_key(YamlMap& entry) {
  const auto any = [](std::string_view text) -> Result<std::string> { return std::string(text); };
  const std::string subject = entry.parsed<std::string>("subject", "", any);
  const std::string san = entry.parsed<std::string>("san", "", any);
  if (subject.empty() == san.empty()) {
    entry.complain(san.empty() ? "subject" : "san", "either 'subject' or 'san' names the certificate");
    return {};
  }
  if (san.empty()) return std::string(kSubject) + subject;
  if (std::ranges::none_of(kKinds, [&](std::string_view kind) { return san.starts_with(kind); }))
    entry.complain("san", "it does not begin with DNS:, IP:, URI: or email:");
  if (san.contains('*') && (!has_star(san) || san.find('*', 5) != std::string::npos))
    entry.complain("san", "a star stands only for the first label of a DNS name, as in DNS:*.leafs.example");
  return folded(san);
}

Scopes read_scopes(YamlMap& entry, YamlErrors& errors) {
  const YAML::Node list = entry.take("scopes");
  if (!list.IsDefined()) return Scopes::all();
  Scopes scopes;
  if (!list.IsSequence()) entry.complain("scopes", "a list is expected here, as [read, groups]");
  for (const auto& node : list) {
    const auto word = scalar(node, entry.path_of("scopes"), errors);
    const auto scope = word ? scope_from_string(*word) : std::nullopt;
    if (scope) {
      scopes.add(*scope);
    } else {
      entry.complain("scopes", "there are the scopes read, groups, plan, aggregators, drain, topology and tokens");
    }
  }
  return scopes;
}

Identity read_identity(YamlMap& entry, const std::string& key, YamlErrors& errors) {
  const auto any = [](std::string_view text) -> Result<std::string> { return std::string(text); };
  const auto role = role_from_string(entry.text("role", "what the certificate's holder may do"));
  if (!role) entry.complain("role", "there are the roles administrator, operator, tenant, reader and aggregator");
  IdentityClaims claims{.id = "certificate",
                        .name = entry.parsed<std::string>("name", has_star(key) ? "star" : plain_name(key), any),
                        .role = role.value_or(Role::reader),
                        .tenant = entry.parsed<std::string>("tenant", "", any),
                        .job = entry.parsed<std::string>("job", "", any),
                        .scopes = read_scopes(entry, errors),
                        .from = 0,
                        .until = 1,
                        .life = 1,
                        .renewable_until = 1};
  if (has_star(key) && claims.name != "star") entry.complain("name", "each certificate of a star has its own name");
  if (auto ok = check(claims); !ok) entry.complain("role", ok.error().message);
  Identity identity = identity_of(claims);
  identity.token_id.clear();
  return identity;
}

}  // namespace

Result<CertificateIdentities> CertificateIdentities::parse(const std::string& yaml, const std::string& file) {
  auto root = service::parse_yaml(yaml, file);
  if (!root) return std::unexpected(root.error());
  YamlErrors errors(file);
  CertificateIdentities identities;
  if (!root->IsSequence() && !root->IsNull())
    errors.add(*root, "", "a list of entries is expected here, each with subject or san, and role");
  if (root->IsSequence() && root->size() > kEntriesMax)
    errors.add(*root, "", "the list has more than " + std::to_string(kEntriesMax) + " entries");
  if (!errors.any() && root->IsSequence()) {
    for (std::size_t i = 0; i < root->size(); ++i) {
      YamlMap entry((*root)[i], "[" + std::to_string(i) + "]", errors);
      const std::string key = read_key(entry);
      Identity identity = read_identity(entry, key, errors);
      entry.finish();
      if (!identities.entries_.try_emplace(key, std::move(identity)).second)
        errors.add((*root)[i], "", "an earlier entry names the same certificate");
    }
  }
  if (auto ok = errors.status(); !ok) return std::unexpected(ok.error());
  return identities;
}

Result<CertificateIdentities> CertificateIdentities::load(const std::string& path) {
  if (path.empty()) return CertificateIdentities();
  const auto text = read_text_file(path, "file of certificates' identities");
  if (!text) return std::unexpected(text.error());
  return parse(*text, path);
}

Proof CertificateIdentities::look(const service::Certificate& certificate) const {
  const auto found = entries_.find(std::string(kSubject) + certificate.subject);
  if (found != entries_.end()) return {.identity = found->second, .why = {}};
  for (const std::string& name : certificate.names) {
    const std::string key = folded(name);
    if (const auto exact = entries_.find(key); exact != entries_.end()) return {.identity = exact->second, .why = {}};
    const auto star = entries_.find(with_star(key));
    if (star == entries_.end() || key.size() - 4 > kNameBytesMax) continue;
    Identity identity = star->second;
    identity.name = plain_name(key);
    return {.identity = std::move(identity), .why = {}};
  }
  return {.identity = std::nullopt,
          .why = coded(Reason::unknown_certificate, "the certificate '" + certificate.subject +
                                                        "' stands for nobody: certificate_file has no entry for it")};
}

}  // namespace tributary::manager
