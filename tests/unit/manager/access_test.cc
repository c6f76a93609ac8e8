// Each role tries each route, and each tenant tries the other tenant's groups.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "service-kit/rate_limit.h"
#include "tests/unit/manager/api_fixture.h"
#include "tests/unit/manager/openapi_check.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tree-manager/api/audit_log.h"

namespace tributary::manager {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// Letters of the roles that may call the route: administrator, operator, tenant, reader, aGgregator. A dot: every
/// client may call it, without proof.
const std::map<std::string, std::string>& allowed() {
  static const std::map<std::string, std::string> all{{"GET /", "."},
                                                      {"GET /web/{file}", "."},
                                                      {"GET /healthz", "."},
                                                      {"GET /v1/openapi.json", "."},
                                                      {"GET /v1/version", "."},
                                                      {"GET /v1/leader", "."},
                                                      {"GET /v1/public-key", "."},
                                                      {"GET /metrics", "aotrg"},
                                                      {"GET /v1/aggregators", "aotrg"},
                                                      {"GET /v1/aggregators/{name}", "aotrg"},
                                                      {"GET /v1/groups", "aotrg"},
                                                      {"GET /v1/groups/{id}", "aotrg"},
                                                      {"GET /v1/trees", "aotrg"},
                                                      {"GET /v1/overview", "aotrg"},
                                                      {"GET /v1/events", "aotrg"},
                                                      {"GET /v1/topology", "aotrg"},
                                                      {"POST /v1/aggregators", "ag"},
                                                      {"DELETE /v1/aggregators/{name}", "ag"},
                                                      {"PUT /v1/aggregators/{name}/lease", "ag"},
                                                      {"POST /v1/aggregators/{name}/drain", "ao"},
                                                      {"POST /v1/aggregators/{name}/undrain", "ao"},
                                                      {"PUT /v1/topology", "ao"},
                                                      {"POST /v1/plan", "aot"},
                                                      {"POST /v1/groups", "t"},
                                                      {"DELETE /v1/groups/{id}", "at"},
                                                      {"PUT /v1/groups/{id}/lease", "t"},
                                                      {"GET /v1/groups/{id}/tokens", "t"},
                                                      {"POST /v1/groups/{id}/rebuild", "t"},
                                                      {"GET /v1/tenants", "aotr"},
                                                      {"PUT /v1/tenants/{name}", "a"},
                                                      {"DELETE /v1/tenants/{name}", "a"},
                                                      {"GET /v1/reservations", "aotrg"},
                                                      {"POST /v1/reservations", "ao"},
                                                      {"DELETE /v1/reservations/{name}", "ao"},
                                                      {"POST /v1/tokens", "ao"},
                                                      {"POST /v1/tokens/renew", "aotrg"},
                                                      {"POST /v1/tokens/revoke", "ao"},
                                                      {"GET /v1/tokens/revoked", "ao"}};
  return all;
}

char letter_of(Role role) {
  return role == Role::aggregator ? 'g' : to_string(role)[0];
}

class AccessTest : public ApiFixture {
 protected:
  [[nodiscard]] std::string token(IdentityClaims claims) const {
    if (claims.id.empty()) claims.id = "id-of-" + claims.name;
    claims.from = clock_.unix_seconds();
    claims.until = claims.from + 100;
    claims.life = 100;
    claims.renewable_until = claims.from + 1000;
    auto made = keys_.sign(claims);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return *made;
  }
  [[nodiscard]] std::string of_role(Role role, Scopes scopes = Scopes::all()) const {
    return token({.name = "one", .role = role, .tenant = role == Role::tenant ? "physics" : "", .scopes = scopes});
  }
  [[nodiscard]] std::string of_tenant(const std::string& tenant, const std::string& job = "") const {
    return token({.name = tenant, .role = Role::tenant, .tenant = tenant, .job = job});
  }
  HttpReply call(const std::string& operation, const std::string& token, const json& body = nullptr) {
    const std::size_t space = operation.find(' ');
    const HttpHead head = head_of(operation.substr(0, space), operation.substr(space + 1), token);
    const Admission admission = api_->admit(head);
    if (admission.refusal) return *admission.refusal;
    return api_->handle(head, body.is_null() ? "" : body.dump());
  }
  /// Calls without a token, over TLS.
  HttpReply call_with(const std::string& operation, service::Certificate certificate, const std::string& token = "") {
    const std::size_t space = operation.find(' ');
    HttpHead head = head_of(operation.substr(0, space), operation.substr(space + 1), token);
    head.certificate = std::make_shared<const service::Certificate>(std::move(certificate));
    const Admission admission = api_->admit(head);
    if (admission.refusal) return *admission.refusal;
    return api_->handle(head, "");
  }
  static json answer(const HttpReply& reply) { return json::parse(reply.body); }
  static std::string message(const HttpReply& reply) { return answer(reply)["error"]["message"]; }
  json group_of(const std::string& token, const std::string& request = "") {
    json body = {{"job", "train"}, {"ranks", nodes(4)}};
    if (!request.empty()) body["request_id"] = request;
    const HttpReply reply = call("POST /v1/groups", token, body);
    EXPECT_EQ(reply.status, 200U) << reply.body;
    return answer(reply);
  }
  static std::vector<json> lines_of(const std::string& path) {
    std::vector<json> lines;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      EXPECT_LE(line.size(), AuditLog::kLineBytesMax);
      lines.push_back(json::parse(line));
    }
    return lines;
  }
  static std::string filled(std::string path) {
    for (const auto& [brace, value] :
         {std::pair{"{name}", "none"}, std::pair{"{id}", "1"}, std::pair{"{file}", "none"}}) {
      if (const auto at = path.find(brace); at != std::string::npos) path.replace(at, std::string(brace).size(), value);
    }
    return path;
  }
};

TEST_F(AccessTest, EachRoleMayCallWhatTheTableSaysAndNothingElse) {
  use({.reads_need_token = true});
  for (const std::string& operation : api_->routes()) {
    ASSERT_TRUE(allowed().contains(operation)) << operation << " has no row in this test";
    const std::string& roles = allowed().at(operation);
    const bool open = roles == ".";
    EXPECT_EQ(call(filled(operation), "").status == 401U, !open) << operation;
    EXPECT_EQ(call(filled(operation), "trb1.a.b.c").status == 401U, !open) << operation;
    for (const Role role : kRoles) {
      const HttpReply reply = call(filled(operation), of_role(role));
      const bool may = open || roles.contains(letter_of(role));
      EXPECT_EQ(reply.status == 403U, !may) << operation << " as " << to_string(role) << ": " << reply.body;
      EXPECT_NE(reply.status, 401U) << operation << " as " << to_string(role);
      if (may) continue;
      EXPECT_THAT(message(reply), HasSubstr(std::string(to_string(role)) + " may not " + operation));
    }
  }
  EXPECT_THAT(api_->routes(), SizeIs(allowed().size()));
}

TEST_F(AccessTest, EachRoleMayCallTheSameWithACertificate) {
  std::string yaml;
  for (const Role role : kRoles) {
    const std::string name(to_string(role));
    yaml += "- {subject: CN=" + name + ", role: " + name + (role == Role::tenant ? ", tenant: physics" : "") + "}\n";
  }
  auto certificates = CertificateIdentities::parse(yaml, "c.yaml");
  ASSERT_TRUE(certificates.has_value()) << certificates.error().message;
  const auto live = std::make_shared<LiveCertificates>(std::move(*certificates));
  use({.reads_need_token = true, .certificates = live});
  for (const std::string& operation : api_->routes()) {
    const std::string& roles = allowed().at(operation);
    const bool open = roles == ".";
    EXPECT_EQ(call_with(filled(operation), {.subject = "CN=nobody"}).status == 401U, !open) << operation;
    EXPECT_EQ(call_with(filled(operation), {.subject = "CN=administrator"}, "wrong").status == 401U, !open)
        << operation << ": a certificate does not make a wrong token good";
    for (const Role role : kRoles) {
      const HttpReply reply = call_with(filled(operation), {.subject = "CN=" + std::string(to_string(role))});
      const bool may = open || roles.contains(letter_of(role));
      EXPECT_EQ(reply.status == 403U, !may) << operation << " as " << to_string(role) << ": " << reply.body;
      EXPECT_NE(reply.status, 401U) << operation << " as " << to_string(role);
    }
  }
  EXPECT_THAT(message(call_with("POST /v1/groups", {.subject = "CN=nobody"})),
              HasSubstr("the certificate 'CN=nobody' stands for nobody"));
  live->use({});
  EXPECT_EQ(call_with("GET /v1/topology", {.subject = "CN=reader"}).status, 401U);
}

TEST_F(AccessTest, EachOldSecretMayCallWhatItsRolesMayCall) {
  use({.reads_need_token = true});
  for (const std::string& operation : api_->routes()) {
    const std::string& roles = allowed().at(operation);
    const std::size_t space = operation.find(' ');
    const AccessRow* const row = access_row(operation.substr(0, space), operation.substr(space + 1));
    ASSERT_NE(row, nullptr) << operation;
    const bool forbidden = row->scope && (*row->scope == Scope::tokens || *row->scope == Scope::tenants);
    const std::vector<std::pair<const char*, bool>> secrets{
        {kJobToken, roles.contains('t')},
        {kAggregatorToken, roles.find_first_of("og") != std::string::npos && !forbidden}};
    for (const auto& [secret, may] : secrets) {
      const HttpReply reply = call(filled(operation), secret);
      EXPECT_EQ(reply.status == 403U, roles != "." && !may) << operation << " with " << secret << ": " << reply.body;
      EXPECT_NE(reply.status, 401U) << operation << " with " << secret;
    }
  }
}

TEST(CertificateIdentities, NameTheHoldersOfCertificates) {
  const auto read = CertificateIdentities::parse(
      "- {subject: 'CN=leaf-a,O=x', role: aggregator}\n"
      "- {san: 'URI:spiffe://x/alice', role: tenant, tenant: physics, job: train, name: alice, scopes: [read]}\n"
      "- {san: 'DNS:*.Leafs.example', role: aggregator}\n",
      "c.yaml");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->look({.subject = "CN=leaf-a,O=x"}).identity->name, "leaf-a");
  const auto alice = read->look({.subject = "CN=z", .names = {"DNS:z", "URI:spiffe://x/alice"}}).identity;
  ASSERT_TRUE(alice);
  EXPECT_EQ(alice->name + alice->tenant + alice->job, "alicephysicstrain");
  EXPECT_EQ(alice->scopes, Scopes(Scope::read));
  EXPECT_EQ(read->look({.subject = "", .names = {"DNS:A.leafs.Example"}}).identity->name, "a.leafs.example");
  for (const char* name :
       {"DNS:leafs.example", "DNS:a.b.leafs.example", "DNS:*.leafs.example.org", "URI:a.leafs.example"})
    EXPECT_FALSE(read->look({.subject = "CN=leaf-a", .names = {name}}).identity) << name;
}

TEST(CertificateIdentities, NameTheMistakesOfTheirFile) {
  for (const auto& [yaml, words] : std::vector<std::pair<std::string, std::string>>{
           {"a: b\n", "a list of entries is expected"},
           {"- {role: reader}\n", "either 'subject' or 'san' names the certificate"},
           {"- {subject: CN=a, san: 'DNS:a', role: reader}\n", "either 'subject' or 'san'"},
           {"- {subject: CN=a}\n", "role: the key is missing"},
           {"- {subject: CN=a, role: king}\n", "there are the roles"},
           {"- {subject: CN=a, role: tenant}\n", "the tenant must be"},
           {"- {subject: CN=a, role: reader, scopes: [all]}\n", "there are the scopes"},
           {"- {subject: O=a, role: reader}\n", "the name must be"},
           {"- {san: a, role: reader}\n", "does not begin with DNS:"},
           {"- {san: 'DNS:a*.b', role: reader}\n", "a star stands only for the first label"},
           {"- {san: 'DNS:*.b', role: reader, name: x}\n", "has its own name"},
           {"- {subject: CN=a, role: reader}\n- {subject: CN=a, role: operator}\n", "c.yaml:2: an earlier entry"},
           {"- {subject: CN=a, role: reader, colour: red}\n", "there is no such key"}}) {
    const auto read = CertificateIdentities::parse(yaml, "c.yaml");
    EXPECT_THAT(read ? "no mistake" : read.error().message, HasSubstr(words)) << yaml;
  }
}

TEST_F(AccessTest, ATokenWithoutTheScopeIsRefused) {
  use({.reads_need_token = true});
  for (const AccessRow& row : access_table()) {
    if (row.open || !row.scope) continue;
    const std::string operation = std::string(row.method) + " " + std::string(row.pattern);
    for (const Role role : kRoles) {
      if (!row.roles.has(role)) continue;
      Scopes others;
      for (const Scope scope : kScopes) {
        if (scope != *row.scope) others.add(scope);
      }
      EXPECT_EQ(call(filled(operation), of_role(role, others)).status, 403U) << operation;
      EXPECT_NE(call(filled(operation), of_role(role, Scopes(*row.scope))).status, 403U) << operation;
    }
  }
}

TEST_F(AccessTest, ATenantMayDoNothingWithAnothersGroup) {
  enlist_all();
  for (const bool closed : {false, true}) {
    use({.reads_need_token = closed});
    const json made = group_of(of_tenant("chemistry"));
    const std::string path = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>());
    const std::string none = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>() + 1);
    const json proof = {{"record", made["record"]}, {"ranks", nodes(4)}};
    const std::vector<std::pair<std::string, json>> tries{{"DELETE ", nullptr},
                                                          {"PUT /lease", json::object()},
                                                          {"PUT /lease", proof},
                                                          {"POST /rebuild", {{"epoch", 1}}},
                                                          {"GET /tokens?epoch=1&from=0&count=1", nullptr}};
    for (const auto& [what, body] : tries) {
      const std::size_t space = what.find(' ');
      const auto on = [&](const std::string& group, const std::string& token) {
        return call(what.substr(0, space + 1) + group + what.substr(space + 1), token, body);
      };
      for (const std::string& other : {of_tenant("physics"), of_tenant("chemistry", "other"), std::string(kJobToken)}) {
        const HttpReply reply = on(path, other);
        EXPECT_EQ(reply.status, 404U) << what << ": " << reply.body;
        if (body == proof) continue;
        const HttpReply about_none = on(none, other);
        EXPECT_EQ(about_none.status, 404U) << what;
        std::string text = message(about_none);
        text.replace(text.find(none.substr(11)), none.size() - 11, path.substr(11));
        EXPECT_EQ(message(reply), text) << "nobody learns which groups other tenants have";
      }
    }
    const HttpReply seen = call("GET " + path, of_tenant("physics"));
    EXPECT_EQ(seen.status, closed ? 404U : 200U);
    EXPECT_EQ(call("GET /v1/trees?group=" + path.substr(11), of_tenant("physics")).status, closed ? 404U : 200U);
    EXPECT_EQ(call("GET " + path, of_tenant("chemistry")).status, 200U);
    EXPECT_EQ(answer(call("GET " + path, of_role(Role::reader)))["owner"], "chemistry");
    EXPECT_EQ(call("PUT " + path + "/lease", of_tenant("chemistry", "train")).status, 200U);
    EXPECT_EQ(call("DELETE " + path, of_tenant("chemistry")).status, 200U);
    EXPECT_EQ(call("DELETE " + path, of_tenant("physics")).status, 404U);
  }
}

TEST_F(AccessTest, ListingsShowATenantItsOwnGroupsWhereReadingNeedsAToken) {
  enlist_all();
  (void)group_of(of_tenant("chemistry"));
  (void)group_of(of_tenant("physics"));
  (void)group_of(kJobToken);
  const auto owners = [this](const std::string& token) {
    std::vector<std::string> list;
    const json listed = answer(call("GET /v1/groups", token));
    for (const json& group : listed["groups"]) list.push_back(group["owner"]);
    return list;
  };
  const auto trees = [this](const std::string& token) { return answer(call("GET /v1/trees", token))["trees"].size(); };
  const std::size_t all = trees("");
  use({.reads_need_token = true});
  EXPECT_THAT(owners(of_tenant("physics")), UnorderedElementsAre("physics"));
  EXPECT_THAT(owners(kJobToken), UnorderedElementsAre(""));
  EXPECT_THAT(owners(of_role(Role::reader)), UnorderedElementsAre("chemistry", "physics", ""));
  EXPECT_EQ(trees(of_tenant("physics")) + trees(of_tenant("chemistry")) + trees(kJobToken), all);
  use({.reads_need_token = true, .tenants_read_all = true});
  EXPECT_THAT(owners(of_tenant("physics")), SizeIs(3));
}

TEST_F(AccessTest, ASuspicionDoesNotTellATenantTheNumberOfAnothersGroup) {
  enlist_all();
  use({.reads_need_token = true});
  const json made = group_of(of_tenant("chemistry"));
  const std::string path = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>());
  const json report = {{"epoch", 1}, {"failed", {"leaf-a"}}};
  ASSERT_EQ(call("POST " + path + "/rebuild", of_tenant("chemistry"), report).status, 200U);
  for (const char* listing : {"GET /v1/aggregators", "GET /v1/aggregators/leaf-a"}) {
    const auto suspected = [&](const std::string& token) {
      const json found = answer(call(listing, token));
      if (!found.contains("aggregators")) return found["suspected"];
      for (const json& one : found["aggregators"]) {
        if (one["name"] == "leaf-a") return one["suspected"];
      }
      return json();
    };
    EXPECT_EQ(suspected(of_role(Role::reader))["group"], made["group"]) << listing;
    EXPECT_TRUE(suspected(of_tenant("physics")).contains("since")) << listing;
    EXPECT_FALSE(suspected(of_tenant("physics")).contains("group")) << listing;
  }
}

TEST_F(AccessTest, ARequestOfOneTenantNeverFindsAGroupOfAnother) {
  const json chemistry = group_of(of_tenant("chemistry"), "the-same-name");
  EXPECT_EQ(group_of(of_tenant("chemistry"), "the-same-name")["group"], chemistry["group"]);
  EXPECT_NE(group_of(of_tenant("physics"), "the-same-name")["group"], chemistry["group"]);
  EXPECT_NE(group_of(kJobToken, "the-same-name")["group"], chemistry["group"]);
}

TEST_F(AccessTest, ATokenForAJobAsksOnlyForGroupsOfThisJob) {
  const std::string token = of_tenant("physics", "slurm-7");
  EXPECT_EQ(call("POST /v1/groups", token, {{"job", "slurm-8"}, {"ranks", nodes(2)}}).status, 403U);
  const json made = answer(call("POST /v1/groups", token, {{"ranks", nodes(2)}}));
  const std::string path = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>());
  EXPECT_EQ(answer(call("GET " + path, token))["job"], "slurm-7");
}

TEST_F(AccessTest, AnAdministratorMayDeleteAnyGroupAndRenewNone) {
  const json made = group_of(of_tenant("chemistry"));
  const std::string path = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>());
  EXPECT_EQ(call("PUT " + path + "/lease", of_role(Role::administrator)).status, 403U);
  EXPECT_EQ(call("DELETE " + path, of_role(Role::administrator)).status, 200U);
}

TEST_F(AccessTest, AnAggregatorsLeaseIsItsOwn) {
  const auto of = [this](const char* name) { return token({.name = name, .role = Role::aggregator}); };
  const json body = {
      {"name", "leaf"}, {"host", "agg-leaf-0"}, {"data", "h:1"}, {"http", "h:2"}, {"memory_bytes", 1U << 30}};
  EXPECT_EQ(call("POST /v1/aggregators", of("one"), body).status, 200U);
  EXPECT_EQ(call("POST /v1/aggregators", of("two"), body).status, 409U);
  EXPECT_EQ(call("POST /v1/aggregators", kAggregatorToken, body).status, 409U);
  for (const char* what : {"PUT /v1/aggregators/leaf/lease", "DELETE /v1/aggregators/leaf"}) {
    EXPECT_EQ(call(what, of("two")).status, 403U) << what;
    EXPECT_EQ(call(what, kAggregatorToken).status, 403U) << what;
    EXPECT_EQ(call(what, of("one")).status, 200U) << what;
  }
  EXPECT_EQ(call("POST /v1/aggregators", kAggregatorToken, body).status, 200U);
  EXPECT_EQ(call("POST /v1/aggregators", of("one"), body).status, 200U)
      << "an aggregator moves to the tenant whose token it uses";
}

TEST_F(AccessTest, GroupsAndRevocationsOutliveTheManager) {
  const json made = group_of(of_tenant("chemistry"));
  const std::string path = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>());
  EXPECT_EQ(call("POST /v1/tokens/revoke", of_role(Role::operator_), {{"id", "id-of-physics"}}).status, 200U);
  open();
  use({});
  EXPECT_EQ(call("PUT " + path + "/lease", kJobToken).status, 404U);
  EXPECT_EQ(call("PUT " + path + "/lease", of_tenant("chemistry")).status, 200U);
  EXPECT_THAT(message(call("POST /v1/groups", of_tenant("physics"))), HasSubstr("the token was revoked"));
  store_.groups.clear();
  open();
  use({});
  const json proof = {{"record", made["record"]}, {"ranks", nodes(4)}};
  EXPECT_EQ(call("PUT " + path + "/lease", of_tenant("physics2"), proof).status, 404U);
  EXPECT_EQ(call("PUT " + path + "/lease", of_tenant("chemistry"), proof).status, 200U) << "a record proves its owner";
}

TEST_F(AccessTest, NobodyMakesATokenOfAHigherRole) {
  const auto make = [this](Role as, const char* role) {
    json body = {{"role", role}, {"name", "n"}, {"life_seconds", 60}};
    if (std::string_view(role) == "tenant") body["tenant"] = "physics";
    return call("POST /v1/tokens", of_role(as), body);
  };
  for (const char* role : {"administrator", "operator"}) {
    EXPECT_EQ(make(Role::operator_, role).status, 403U) << role;
    EXPECT_EQ(make(Role::administrator, role).status, 200U) << role;
  }
  for (const char* role : {"tenant", "reader", "aggregator"}) EXPECT_EQ(make(Role::operator_, role).status, 200U);
  EXPECT_EQ(make(Role::administrator, "king").status, 400U);
  EXPECT_EQ(call("POST /v1/tokens", kAggregatorToken, {{"life_seconds", 60}}).status, 403U);
}

TEST_F(AccessTest, ATokenIsRenewedUntilItsLastEnd) {
  const HttpReply made = call("POST /v1/tokens", of_role(Role::operator_),
                              {{"tenant", "physics"}, {"life_seconds", 60}, {"renewable_seconds", 100}});
  std::string token = answer(made)["token"];
  clock_.advance(std::chrono::seconds(59));
  token = answer(call("POST /v1/tokens/renew", token))["token"];
  clock_.advance(std::chrono::seconds(40));
  EXPECT_EQ(call("GET /v1/groups", token).status, 200U);
  token = answer(call("POST /v1/tokens/renew", token))["token"];
  EXPECT_EQ(read_identity_token(token)->id, answer(made)["id"].get<std::string>());
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(call("POST /v1/tokens/renew", token).status, 401U) << "100 s are over";
  EXPECT_EQ(call("POST /v1/tokens/renew", kJobToken).status, 400U);
}

TEST_F(AccessTest, TheAuditLogSaysWhoDidWhatAndWhatCameOfIt) {
  const TemporaryFolder folder;
  const std::string path = folder.file("audit.json");
  const auto audit = AuditLog::open(path);
  ASSERT_TRUE(audit.has_value()) << audit.error().message;
  use({.audit = audit->get()});
  const json made = group_of(of_tenant("chemistry"));
  const std::string group = "/v1/groups/" + std::to_string(made["group"].get<std::uint64_t>());
  EXPECT_EQ(call("PUT " + group + "/lease", of_tenant("chemistry")).status, 200U);
  EXPECT_EQ(call("GET " + group, of_tenant("chemistry")).status, 200U);
  EXPECT_EQ(call("DELETE " + group, of_tenant("physics")).status, 404U);
  std::filesystem::rename(path, folder.file("before.json"));
  ASSERT_TRUE((*audit)->reopen().has_value());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(call("DELETE /v1/groups/" + std::string(9999, '"'), "").status, 401U);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(call("DELETE " + group, "").status, 401U);

  const auto before = lines_of(folder.file("before.json"));
  ASSERT_THAT(before, SizeIs(2)) << "neither reads nor renewals";
  EXPECT_EQ(before[0]["who"], "chemistry");
  EXPECT_EQ(before[0]["outcome"], "done");
  EXPECT_EQ(before[1]["tenant"], "physics");
  EXPECT_EQ(before[1]["path"], group);
  EXPECT_EQ(before[1]["outcome"], "refused");
  const auto after = lines_of(path);
  ASSERT_THAT(after, SizeIs(AuditLog::kStrangersPerSecondMax + 1));
  EXPECT_EQ(after[0]["who"], "");
  EXPECT_EQ(after.back()["left_out"], 100 - AuditLog::kStrangersPerSecondMax);
}

TEST_F(AccessTest, TheAuditLogNamesWhatThePathDoesNotName) {
  const TemporaryFolder folder;
  const auto audit = AuditLog::open(folder.file("audit.json"));
  ASSERT_TRUE(audit.has_value()) << audit.error().message;
  use({.audit = audit->get()});
  const std::string boss = of_role(Role::administrator);
  enlist_all();
  const json spec = {
      {"name", "leaf-z"}, {"host", "agg-leaf-0"}, {"data", "10.0.0.9:1"}, {"http", "10.0.0.9:2"}, {"memory_bytes", 1}};
  EXPECT_EQ(call("POST /v1/aggregators", of_role(Role::aggregator), spec).status, 200U);
  std::vector<std::string> wanted{"aggregator leaf-z"};
  wanted.push_back("group " + std::to_string(group_of(of_tenant("chemistry"))["group"].get<std::uint64_t>()));
  const json token =
      answer(call("POST /v1/tokens", boss, {{"name", "alice"}, {"tenant", "physics"}, {"life_seconds", 60}}));
  wanted.push_back("token " + token["id"].get<std::string>() + ": tenant alice of physics");
  EXPECT_EQ(call("POST /v1/tokens/revoke", boss, {{"id", token["id"]}}).status, 200U);
  wanted.push_back("token " + token["id"].get<std::string>());
  EXPECT_EQ(call("POST /v1/reservations", boss,
                 {{"name", "r1"}, {"tenant", "physics"}, {"count", 1}, {"end", clock_.unix_seconds() + 100}})
                .status,
            200U);
  wanted.emplace_back("reservation r1");
  EXPECT_EQ(call("POST /v1/tokens/revoke", boss, {{"id", "a b"}}).status, 400U);
  wanted.emplace_back("");
  std::vector<std::string> objects;
  for (const json& line : lines_of(folder.file("audit.json"))) objects.push_back(line.value("object", ""));
  EXPECT_EQ(objects, wanted);
}

TEST_F(AccessTest, ATenantSeesItsOwnQuotaAndTheReasonWhyItGetsNoTree) {
  const TemporaryFolder folder;
  const auto audit = AuditLog::open(folder.file("audit.json"));
  use({.audit = audit->get()});
  enlist_all();
  EXPECT_EQ(call("PUT /v1/tenants/chemistry", of_role(Role::administrator), {{"groups", 1}, {"lanes", 4}}).status,
            200U);
  EXPECT_EQ(call("PUT /v1/tenants/physics", of_role(Role::administrator), {{"priority_max", "king"}}).status, 400U);
  EXPECT_EQ(call("PUT /v1/tenants/physics", of_role(Role::administrator), {{"priority_max", "high"}}).status, 200U);
  EXPECT_FALSE(group_of(of_tenant("chemistry")).contains("code"));
  const json refused = group_of(of_tenant("chemistry"));
  EXPECT_EQ(refused["code"], "quota-groups");
  EXPECT_THAT(refused["lanes"], SizeIs(0));
  EXPECT_THAT(refused["reason"].get<std::string>(), HasSubstr("'chemistry' has a quota of 1 groups"));
  EXPECT_FALSE(group_of(of_tenant("physics")).contains("code"));

  const json own = answer(call("GET /v1/tenants", of_tenant("chemistry")))["tenants"];
  ASSERT_THAT(own, SizeIs(1));
  EXPECT_EQ(own[0]["quota"], (json{{"groups", 1}, {"lanes", 4}}));
  EXPECT_EQ(own[0]["use"]["groups"], 1);
  EXPECT_THAT(answer(call("GET /v1/tenants", of_role(Role::operator_)))["tenants"], SizeIs(2));
  EXPECT_THAT(lines_of(folder.file("audit.json")).back()["status"], 200);
  bool logged = false;
  for (const json& line : lines_of(folder.file("audit.json"))) logged |= line.value("code", "") == "quota-groups";
  EXPECT_TRUE(logged);
}

TEST_F(AccessTest, ReservationsAreMadeListedAndEnded) {
  enlist_all();
  const std::string boss = of_role(Role::operator_);
  const std::int64_t now = clock_.unix_seconds();
  json wanted = {{"name", "r1"}, {"tenant", "chemistry"}, {"count", 2}, {"end", now + 100}, {"exclusive", true}};
  const HttpReply made = call("POST /v1/reservations", boss, wanted);
  EXPECT_EQ(made.status, 200U) << made.body;
  EXPECT_THAT(answer(made)["aggregators"], SizeIs(2));
  EXPECT_EQ(answer(made)["begin"], now);
  EXPECT_EQ(call("POST /v1/reservations", boss, wanted).status, 409U) << "the name is in use";
  wanted["name"] = "r2";
  EXPECT_EQ(call("POST /v1/reservations", boss, wanted).status, 409U) << "one aggregator is left";
  wanted["end"] = now;
  EXPECT_EQ(call("POST /v1/reservations", boss, wanted).status, 400U);
  wanted = {{"name", "r3"}, {"tenant", "chemistry"}, {"count", 1}, {"begin", now - 11}, {"end", now + 100}};
  EXPECT_EQ(call("POST /v1/reservations", boss, wanted).status, 400U) << "the caller may have given up";
  wanted["begin"] = now - 10;
  EXPECT_EQ(call("POST /v1/reservations", boss, wanted).status, 200U);
  EXPECT_EQ(call("DELETE /v1/reservations/r3", boss).status, 200U);
  wanted = {{"name", "r2"}, {"tenant", "physics"}, {"aggregators", {"nobody"}}, {"end", now + 100}};
  EXPECT_EQ(call("POST /v1/reservations", boss, wanted).status, 404U);
  EXPECT_THAT(answer(call("GET /v1/reservations", of_tenant("physics")))["reservations"], SizeIs(1));
  use({.reads_need_token = true});
  EXPECT_THAT(answer(call("GET /v1/reservations", of_tenant("physics")))["reservations"], SizeIs(0));
  EXPECT_THAT(answer(call("GET /v1/reservations", of_tenant("chemistry")))["reservations"], SizeIs(1));
  EXPECT_EQ(call("DELETE /v1/reservations/r1", boss).status, 200U);
  EXPECT_EQ(call("DELETE /v1/reservations/r1", boss).status, 404U);
}

TEST_F(AccessTest, AnIdentityThatFloodsTheManagerCostsTheOthersNothing) {
  use({.requests_per_second_max = 5});
  unsigned refused = 0;
  for (int i = 0; i < 40; ++i) refused += call("GET /v1/groups", of_tenant("physics")).status == 429U ? 1U : 0U;
  EXPECT_GE(refused, 20U);
  EXPECT_EQ(call("GET /v1/groups", of_tenant("chemistry")).status, 200U);
  EXPECT_EQ(call("GET /v1/groups", kJobToken).status, 200U);
}

TEST_F(AccessTest, AStrangerThatFloodsTheManagerCostsTheOthersNothing) {
  use({.requests_per_second_max = 5});
  const auto ask_from = [this](const std::string& address, const std::string& token = "") {
    HttpHead head = head_of("GET", "/v1/groups", token);
    head.remote_address = address;
    return api_->admit(head).refusal;
  };
  const auto refused = [&](const auto& address_of) {
    int count = 0;
    for (int i = 0; i < 40; ++i) count += ask_from(address_of(i)).has_value() ? 1 : 0;
    return count;
  };
  EXPECT_GE(refused([](int) { return std::string("10.0.0.1"); }), 20);
  EXPECT_GE(refused([](int i) { return "2001:db8::" + std::to_string(i); }), 20) << "one host may have a whole /64";
  const auto refusal = ask_from("10.0.0.1", "no token");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 429U) << "a wrong token proves nothing";
  EXPECT_THAT(message(*refusal), HasSubstr("callers without a token at your address send more than 5 requests"));
  EXPECT_FALSE(ask_from("10.0.0.2"));
  EXPECT_FALSE(ask_from("2001:db8:0:1::1"));
  EXPECT_FALSE(ask_from("10.0.0.1", of_tenant("physics"))) << "a tenant is not limited by strangers at its address";
  EXPECT_FALSE(ask_from("10.0.0.1", kJobToken));
}

TEST_F(AccessTest, AHolderOfASharedSecretThatFloodsTheManagerCostsTheOtherHoldersNothing) {
  use({.requests_per_second_max = 5});
  const auto ask_from = [this](const std::string& address, const std::string& secret, const std::string& path) {
    HttpHead head = head_of(path.ends_with("/lease") ? "PUT" : "GET", path, secret);
    head.remote_address = address;
    return api_->admit(head).refusal;
  };
  const auto flood = [&](const std::string& secret, const std::string& path) {
    int count = 0;
    for (int i = 0; i < 40; ++i) {
      const auto refusal = ask_from("10.0.0.1", secret, path);
      count += refusal && refusal->status == 429U ? 1 : 0;
    }
    return count;
  };
  EXPECT_GE(flood(kJobToken, "/v1/groups"), 20);
  const auto refusal = ask_from("10.0.0.1", kJobToken, "/v1/groups");
  ASSERT_TRUE(refusal);
  EXPECT_THAT(message(*refusal), HasSubstr("holders of job.token at your address send more than 5 requests"));
  EXPECT_FALSE(ask_from("10.0.0.2", kJobToken, "/v1/groups"));
  EXPECT_FALSE(ask_from("10.0.0.1", kAggregatorToken, "/v1/groups")) << "each secret has its own limit";
  EXPECT_FALSE(ask_from("10.0.0.1", of_tenant("physics"), "/v1/groups"));
  EXPECT_FALSE(ask_from("10.0.0.1", "", "/v1/groups"));

  EXPECT_GE(flood(kAggregatorToken, "/v1/aggregators"), 20);
  EXPECT_FALSE(ask_from("10.0.0.1", kAggregatorToken, "/v1/aggregators/leaf-0/lease"))
      << "an aggregator at this address renews its lease nevertheless";
  EXPECT_GE(flood(kAggregatorToken, "/v1/aggregators/leaf-0/lease"), 20) << "renewals have a limit, too";
  EXPECT_FALSE(ask_from("10.0.0.2", kAggregatorToken, "/v1/aggregators/leaf-0/lease"));
}

using service::RateLimit;

TEST(RateLimit, FillsUpWithTime) {
  RateLimit limit(10);
  RateLimit::TimePoint now{};
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(limit.take("a", now)) << i;
  EXPECT_FALSE(limit.take("a", now));
  EXPECT_TRUE(limit.take("b", now));
  now += std::chrono::milliseconds(110);
  EXPECT_TRUE(limit.take("a", now));
  EXPECT_FALSE(limit.take("a", now));
}

}  // namespace
}  // namespace tributary::manager
