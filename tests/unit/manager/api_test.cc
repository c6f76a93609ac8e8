// The REST interface without sockets. The tests check every answer against openapi.json.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "tests/unit/manager/api_fixture.h"
#include "tests/unit/manager/openapi_check.h"
#include "tree-manager/api/embedded.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

class ApiTest : public ApiFixture {
 protected:
  ApiTest() : openapi_(json::parse(kOpenApiJson)) {}

  /// Calls the handler in the same way as the HTTP server. Finds the operation by the form of the path in the document.
  HttpReply call(const std::string& method, const std::string& path, const std::string& body = "",
                 const std::string& token = kAggregatorToken) {
    const HttpHead head = head_of(method, path, token);
    const Admission admission = api_->admit(head);
    HttpReply reply = admission.refusal                        ? *admission.refusal
                      : body.size() > admission.body_bytes_max ? api_->reject(413, "the body is too long")
                                                               : api_->handle(head, body);
    check(method + " " + pattern_of(head.path), reply);
    return reply;
  }
  json job(const std::string& method, const std::string& path, const json& body = json::object()) {
    return json::parse(call(method, path, body.dump(), kJobToken).body);
  }
  json fleet(const std::string& method, const std::string& path, const json& body = json::object()) {
    return json::parse(call(method, path, body.dump(), kAggregatorToken).body);
  }
  json look(const std::string& path) { return json::parse(call("GET", path, "", "").body); }

  static json registration(const std::string& name, const std::string& host) {
    return {{"name", name},
            {"host", host},
            {"data", "0.0.0.0:7471"},
            {"http", "10.1.1.1:7472"},
            {"memory_bytes", 1U << 30}};
  }
  static json four_ranks() { return {{"job", "train"}, {"ranks", nodes(4)}, {"lanes", 2}}; }
  static std::string message(const HttpReply& reply) { return json::parse(reply.body)["error"]["message"]; }

  OpenApi openapi_;
  std::set<std::string> good_;  // operations with an answer of 200

 private:
  static std::string pattern_of(const std::string& path) {
    for (const auto& [prefix, parameter] :
         {std::pair{std::string("/v1/aggregators/"), "{name}"}, std::pair{std::string("/v1/groups/"), "{id}"},
          std::pair{std::string("/web/"), "{file}"}, std::pair{std::string("/v1/tenants/"), "{name}"},
          std::pair{std::string("/v1/reservations/"), "{name}"}}) {
      if (!path.starts_with(prefix)) continue;
      const std::size_t slash = path.find('/', prefix.size());
      return prefix + parameter + (slash == std::string::npos ? "" : path.substr(slash));
    }
    return path;
  }
  void check(const std::string& operation, const HttpReply& reply) {
    const auto known = openapi_.operations();
    const bool routed = std::find(known.begin(), known.end(), operation) != known.end();
    if (routed) {
      EXPECT_EQ(openapi_.check_answer(operation, reply.status, reply.content_type, reply.body), "");
      if (reply.status == 200) good_.insert(operation);
    } else {
      EXPECT_GE(reply.status, 400U) << operation;
      EXPECT_EQ(openapi_.check(json::parse(reply.body), "Error"), "");
    }
  }
};

TEST_F(ApiTest, ServesExactlyTheRoutesOfItsDocument) {
  EXPECT_THAT(api_->routes(), UnorderedElementsAreArray(openapi_.operations()));
}

TEST_F(ApiTest, AnswersEveryRouteAsItsDocumentSays) {
  EXPECT_EQ(openapi_.check_request("POST /v1/aggregators", registration("leaf-a", "agg-leaf-0")), "");
  EXPECT_EQ(openapi_.check_request("POST /v1/groups", four_ranks()), "");
  const json accepted = fleet("POST", "/v1/aggregators", registration("leaf-a", "agg-leaf-0"));
  EXPECT_EQ(accepted["name"], "leaf-a");
  EXPECT_EQ(from_base64(accepted["public_key"].get<std::string>())->size(), kPublicKeyBytes);
  fleet("POST", "/v1/aggregators", registration("leaf-b", "agg-leaf-1"));
  fleet("POST", "/v1/aggregators", registration("spine", "agg-spine-0"));
  EXPECT_EQ(look("/v1/aggregators/leaf-a")["data"], "192.0.2.7:7471") << "the wildcard is the caller's address";
  EXPECT_EQ(look("/v1/aggregators/leaf-a")["http"], "10.1.1.1:7472");
  const json renewal = {{"incarnation", accepted["incarnation"]},
                        {"load", {{"memory_in_use_bytes", 5}, {"lanes_active", 1}}}};
  EXPECT_EQ(fleet("PUT", "/v1/aggregators/leaf-a/lease", renewal)["state"], "active");
  const json word = {
      {"group", 1},          {"rank", 0}, {"lag_milliseconds", 5}, {"late_milliseconds", 6}, {"operations_behind", 7},
      {"cause", "slow-data"}};
  const json telling = {{"load", {{"late", {word}}}}};
  EXPECT_EQ(openapi_.check_request("PUT /v1/aggregators/{name}/lease", telling), "");
  EXPECT_EQ(fleet("PUT", "/v1/aggregators/leaf-a/lease", telling)["late_max"], 64);
  const auto refusal = [&](const json& late) {
    return message(
        call("PUT", "/v1/aggregators/leaf-a/lease", json{{"load", {{"late", late}}}}.dump(), kAggregatorToken));
  };
  EXPECT_THAT(refusal(json::array({json::object()})), HasSubstr("load.late[0]."));
  EXPECT_THAT(refusal(std::vector<json>(65, word)), HasSubstr("'load.late' is not a list of at most 64 objects"));
  EXPECT_THAT(refusal(json::array({3})), HasSubstr("'load.late' is not a list of at most 64 objects"));
  fleet("POST", "/v1/aggregators/leaf-a/drain");
  EXPECT_EQ(fleet("PUT", "/v1/aggregators/leaf-a/lease")["state"], "draining");
  fleet("POST", "/v1/aggregators/leaf-a/undrain");
  EXPECT_EQ(look("/v1/aggregators/leaf-a")["state"], "resuming");
  EXPECT_EQ(fleet("PUT", "/v1/aggregators/leaf-a/lease", {{"draining", true}})["state"], "active");
  EXPECT_EQ(fleet("PUT", "/v1/aggregators/leaf-a/lease", {{"draining", false}})["state"], "active");
  EXPECT_THAT(look("/v1/aggregators")["aggregators"], SizeIs(3));

  const json plan = job("POST", "/v1/plan", four_ranks());
  EXPECT_THAT(plan["trees"], SizeIs(2));
  const json granted = job("POST", "/v1/groups", four_ranks());
  const auto descriptor = group_descriptor_from_json(granted);
  ASSERT_TRUE(descriptor.has_value()) << descriptor.error().message;
  EXPECT_THAT(descriptor->lanes, SizeIs(2));
  const std::string group = "/v1/groups/" + std::to_string(descriptor->group);
  EXPECT_EQ(job("PUT", group + "/lease")["rebuild_advised"], false);
  json late = word;
  late["group"] = descriptor->group;
  fleet("PUT", "/v1/aggregators/leaf-a/lease", {{"load", {{"late", {late}}}}});
  for (const json& list :
       {look(group)["late"], look("/v1/groups")["groups"][0]["late"], job("PUT", group + "/lease")["late"]}) {
    ASSERT_THAT(list, SizeIs(1));
    EXPECT_EQ(list[0]["rank"], 0);
    EXPECT_EQ(list[0]["host"], look(group)["hosts"][0]);
    EXPECT_EQ(list[0]["lag_milliseconds"], 5);
    EXPECT_EQ(list[0]["operations_behind"], 7);
    EXPECT_EQ(list[0]["cause"], "slow-data");
  }
  const json page = json::parse(call("GET", group + "/tokens?epoch=1&from=1&count=2", "", kJobToken).body);
  EXPECT_THAT(page["lanes"][0]["ranks"], SizeIs(2));
  for (const char* query :
       {"", "?epoch=1", "?epoch=1&from=0&count=x", "?epoch=1&from=0&from=0", "?epoch=1&from=0&count=1&",
        "?epoch=1&from=0&count=5", "?epoch=&from=0&count=1", "?epoch=1&from=0&count=99999999999"}) {
    EXPECT_EQ(call("GET", group + "/tokens" + query, "", kJobToken).status, 400U) << query;
  }
  EXPECT_EQ(call("GET", group + "/tokens?epoch=2&from=0&count=1", "", kJobToken).status, 409U);
  json proof{{"record", granted["record"]}, {"ranks", four_ranks()["ranks"]}};
  EXPECT_EQ(job("PUT", group + "/lease", proof)["epoch"], 1);
  EXPECT_GT(job("PUT", group + "/lease", {{"want_record", true}})["record"].get<std::string>().size(), 100U);
  proof["record"] = "AAAA";
  EXPECT_EQ(call("PUT", group + "/lease", proof.dump(), kJobToken).status, 400U);
  proof["record"] = granted["record"];
  proof["ranks"].push_back("one-more");
  EXPECT_EQ(call("PUT", group + "/lease", proof.dump(), kJobToken).status, 409U);
  EXPECT_EQ(look(group)["path"], "in-network");
  EXPECT_THAT(look(group)["trees"], SizeIs(2));
  EXPECT_EQ(look("/v1/groups")["groups"][0]["job"], "train");
  const json trees = look("/v1/trees");
  ASSERT_THAT(trees["trees"], SizeIs(2));
  EXPECT_EQ(trees["trees"][0]["root"]["aggregator"], "spine");
  EXPECT_EQ(trees["trees"][0]["root"]["children"][0]["children"][1]["rank"], 1);
  EXPECT_EQ(look("/v1/trees?group=" + std::to_string(descriptor->group)), trees);
  EXPECT_EQ(job("POST", group + "/rebuild", {{"epoch", 1}, {"failed", {"leaf-a"}}})["epoch"], 2);
  EXPECT_EQ(look("/v1/aggregators/leaf-a")["state"], "suspected");
  EXPECT_EQ(look("/v1/aggregators/leaf-a")["suspected"]["group"], descriptor->group);
  EXPECT_THAT(message(call("DELETE", group + "?lost=leaf-b", "", kJobToken)), HasSubstr("the query is failed="));
  EXPECT_THAT(message(call("DELETE", group + "?failed=leaf-b,", "", kJobToken)), HasSubstr("it is empty"));
  job("DELETE", group + "?failed=leaf-b,nobody");
  EXPECT_EQ(look("/v1/aggregators/leaf-b")["suspected"]["group"], descriptor->group);
  EXPECT_EQ(call("GET", group).status, 404U);
  fleet("DELETE", "/v1/aggregators/leaf-b");

  const std::int64_t now = clock_.unix_seconds();
  const auto boss = keys_.sign({.id = "1",
                                .name = "boss",
                                .role = Role::administrator,
                                .from = now,
                                .until = now + 9,
                                .life = 9,
                                .renewable_until = now + 9});
  const json wanted{{"role", "tenant"},   {"tenant", "physics"}, {"job", "train"},        {"name", "alice"},
                    {"scopes", {"read"}}, {"life_seconds", 9},   {"renewable_seconds", 9}};
  EXPECT_EQ(openapi_.check_request("POST /v1/tokens", wanted), "");
  EXPECT_EQ(call("POST", "/v1/tokens", wanted.dump(), *boss).status, 200U);
  EXPECT_EQ(call("POST", "/v1/tokens/renew", "", *boss).status, 200U);
  EXPECT_EQ(call("POST", "/v1/tokens/revoke", R"({"id": "2"})", *boss).status, 200U);
  EXPECT_THAT(json::parse(call("GET", "/v1/tokens/revoked", "", *boss).body)["revoked"], SizeIs(1));

  const json rule{{"groups", 3}, {"lanes", 9}, {"priority_max", "high"}, {"weight", 16}, {"security", "encrypt"}};
  EXPECT_EQ(openapi_.check_request("PUT /v1/tenants/{name}", rule), "");
  EXPECT_EQ(call("PUT", "/v1/tenants/physics", rule.dump(), *boss).status, 200U);
  EXPECT_EQ(call("PUT", "/v1/tenants/physics", "", *boss).status, 400U) << "nobody lifts all limits by mistake";
  EXPECT_EQ(call("PUT", "/v1/tenants/physics", R"({"weight": 17})", *boss).status, 400U);
  EXPECT_EQ(call("PUT", "/v1/tenants/physics", R"({"security": "much"})", *boss).status, 400U);
  const json told = json::parse(call("GET", "/v1/tenants", "", *boss).body)["tenants"][0];
  EXPECT_EQ(told["weight"], 16);
  EXPECT_EQ(told["security"], "encrypt");
  EXPECT_EQ(call("DELETE", "/v1/tenants/physics", "", *boss).status, 200U);
  const json reservation{{"name", "r"}, {"tenant", "physics"}, {"count", 1}, {"end", now + 100}, {"exclusive", true}};
  EXPECT_EQ(openapi_.check_request("POST /v1/reservations", reservation), "");
  EXPECT_EQ(call("POST", "/v1/reservations", reservation.dump(), *boss).status, 200U);
  EXPECT_THAT(look("/v1/reservations")["reservations"], SizeIs(1));
  EXPECT_EQ(call("DELETE", "/v1/reservations/r", "", *boss).status, 200U);

  EXPECT_THAT(look("/v1/overview")["aggregators"], SizeIs(2));
  EXPECT_THAT(look("/v1/events")["events"], Not(IsEmpty()));
  EXPECT_THAT(call("GET", "/web/styles.css", "", "").body, HasSubstr("prefers-color-scheme"));
  look("/v1/topology");
  look("/v1/public-key");
  look("/v1/version");
  look("/v1/leader");
  look("/v1/openapi.json");
  look("/healthz");
  EXPECT_THAT(call("GET", "/metrics", "", "").body, HasSubstr("tributary_manager_aggregators{state=\"active\"} 1"));
  EXPECT_THAT(call("GET", "/", "", "").body, HasSubstr("<!doctype html>"));
  EXPECT_EQ(call("PUT", "/v1/topology", leaf_spine_yaml(2, 2, 1)).status, 409U) << "the topology comes from a file";
  open("");
  use({});
  EXPECT_EQ(call("PUT", "/v1/topology", leaf_spine_yaml(2, 2, 1)).status, 200U);
  EXPECT_EQ(look("/v1/topology")["source"], "api");

  EXPECT_THAT(good_, UnorderedElementsAreArray(openapi_.operations()))
      << "every operation must have been seen to succeed";
}

TEST_F(ApiTest, TakesAnAddressForEachDeviceAndShowsWhichLive) {
  json two = registration("two", "agg-leaf-0");
  two["data_more"] = {"10.2.0.1:7471", "[::]:7473"};
  two["data_down"] = {1};
  EXPECT_EQ(openapi_.check_request("POST /v1/aggregators", two), "");
  ASSERT_EQ(fleet("POST", "/v1/aggregators", two)["name"], "two");
  const json both = {{{"at", "192.0.2.7:7471"}, {"live", true}},
                     {{"at", "10.2.0.1:7471"}, {"live", false}},
                     {{"at", "192.0.2.7:7473"}, {"live", true}}};
  EXPECT_EQ(look("/v1/aggregators/two")["addresses"], both);
  EXPECT_EQ(look("/v1/aggregators/two")["data"], "192.0.2.7:7471")
      << "this member is for older clients, which know of one address";
  const json renewal = {{"data_down", {0, 2}}};
  EXPECT_EQ(openapi_.check_request("PUT /v1/aggregators/{name}/lease", renewal), "");
  EXPECT_EQ(fleet("PUT", "/v1/aggregators/two/lease", renewal)["state"], "active");
  EXPECT_FALSE(look("/v1/aggregators/two")["addresses"][0]["live"].get<bool>());
  EXPECT_TRUE(look("/v1/aggregators/two")["addresses"][1]["live"].get<bool>());
  fleet("PUT", "/v1/aggregators/two/lease");
  EXPECT_TRUE(look("/v1/aggregators/two")["addresses"][0]["live"].get<bool>())
      << "the renewal names no address: all live";

  two["data_more"] = {"0.0.0.0:7471"};
  EXPECT_THAT(message(call("POST", "/v1/aggregators", two.dump())),
              HasSubstr("data_more[0]: 192.0.2.7:7471 is there twice"));
  two["data_more"] = std::vector<std::string>(1000, "h:1");
  EXPECT_THAT(message(call("POST", "/v1/aggregators", two.dump())), HasSubstr("more than 15"));
  EXPECT_THAT(message(call("PUT", "/v1/aggregators/two/lease", R"({"data_down": [16]})")), HasSubstr("from 0 to 15"));
  EXPECT_THAT(message(call("PUT", "/v1/aggregators/two/lease", R"({"data_down": [3]})")), HasSubstr("there are 3"));
}

TEST_F(ApiTest, AnswersWithoutLanesAndAReasonWhenThereIsNoCapacity) {
  const json granted = job("POST", "/v1/groups", four_ranks());
  EXPECT_THAT(granted["lanes"], IsEmpty());
  EXPECT_THAT(granted["reason"].get<std::string>(), HasSubstr("no aggregator"));
  EXPECT_GT(granted["retry_after_seconds"], 0);
  EXPECT_GT(granted["group"], 0);
}

TEST_F(ApiTest, WantsTheRightTokenForEveryWrite) {
  const std::map<std::string, std::string> writes{
      {"POST /v1/aggregators", kJobToken},           {"DELETE /v1/aggregators/a", kJobToken},
      {"PUT /v1/aggregators/a/lease", kJobToken},    {"POST /v1/aggregators/a/drain", kJobToken},
      {"POST /v1/aggregators/a/undrain", kJobToken}, {"PUT /v1/topology", kJobToken},
      {"POST /v1/groups", kAggregatorToken},         {"DELETE /v1/groups/1", kAggregatorToken},
      {"PUT /v1/groups/1/lease", kAggregatorToken},  {"POST /v1/groups/1/rebuild", kAggregatorToken}};
  for (const auto& [operation, other] : writes) {
    const std::size_t space = operation.find(' ');
    const std::string method = operation.substr(0, space);
    const std::string path = operation.substr(space + 1);
    EXPECT_EQ(call(method, path, "{}", "").status, 401U) << operation;
    EXPECT_EQ(call(method, path, "{}", "wrong").status, 401U) << operation;
    EXPECT_EQ(call(method, path, "{}", std::string(kJobToken) + "x").status, 401U) << operation;
    EXPECT_EQ(call(method, path, "{}", other).status, 403U) << operation;
  }
  EXPECT_EQ(call("POST", "/v1/plan", "{}", "").status, 401U);
}

TEST_F(ApiTest, WantsATokenForReadsWhereThatIsSet) {
  use({.reads_need_token = true});
  for (const char* path : {"/v1/aggregators", "/v1/groups", "/v1/trees", "/v1/topology", "/metrics", "/v1/groups/1",
                           "/v1/aggregators/a"}) {
    EXPECT_EQ(call("GET", path, "", "").status, 401U) << path;
    EXPECT_THAT(call("GET", path, "", kJobToken).status, ::testing::AnyOf(200U, 404U)) << path;
    EXPECT_THAT(call("GET", path, "", kAggregatorToken).status, ::testing::AnyOf(200U, 404U)) << path;
  }
  for (const char* path : {"/healthz", "/", "/v1/openapi.json", "/v1/version", "/v1/leader", "/v1/public-key"}) {
    EXPECT_EQ(call("GET", path, "", "").status, 200U) << path;
  }
}

TEST_F(ApiTest, ShowsNoTokenToReaders) {
  enlist_all();
  const json granted = job("POST", "/v1/groups", four_ranks());
  const std::string token = granted["lanes"][0]["ranks"][0]["tokens"][0];
  for (const char* path : {"/v1/groups", "/v1/trees", "/metrics", "/v1/aggregators"}) {
    EXPECT_THAT(call("GET", path, "", "").body, Not(HasSubstr(token.substr(0, 40)))) << path;
  }
}

TEST_F(ApiTest, AnErrorNamesTheRightPathsAndMethods) {
  EXPECT_EQ(call("GET", "/nothing").status, 404U);
  EXPECT_EQ(call("GET", "/v1/groups/1/rebuild/more").status, 404U);
  EXPECT_EQ(call("GET", "").status, 404U);
  EXPECT_EQ(call("GET", "/v1/aggregators/").status, 404U);
  const HttpReply reply = call("PATCH", "/v1/groups");
  EXPECT_EQ(reply.status, 405U);
  EXPECT_EQ(message(reply), "this path takes GET, POST");
  EXPECT_EQ(call("GET", "/v1/groups/abc").status, 400U);
  EXPECT_EQ(call("GET", "/v1/groups/-1").status, 400U);
  EXPECT_EQ(call("GET", "/v1/groups/99999999999999999999999").status, 400U);
  EXPECT_EQ(call("GET", "/v1/trees?group=x").status, 400U);
  EXPECT_EQ(call("GET", "/v1/trees?colour=red").status, 400U);
}

struct BadInput {
  const char* method;
  const char* path;
  const char* token;
  json good;
};

std::vector<BadInput> bodies() {
  return {
      {"POST",
       "/v1/aggregators",
       kAggregatorToken,
       {{"name", "a"},
        {"host", "h"},
        {"data", "h:1"},
        {"data_more", {"i:1"}},
        {"data_down", {1}},
        {"http", "h:2"},
        {"memory_bytes", 1},
        {"children_max", 2},
        {"line_rate_bits_per_second", 1},
        {"version", "v"}}},
      {"PUT",
       "/v1/aggregators/spine/lease",
       kAggregatorToken,
       {{"incarnation", 1},
        {"data_down", json::array()},
        {"load", {{"memory_in_use_bytes", 1}, {"lanes_active", 1}, {"sessions", 1}, {"contribution_bytes_total", 1}}}}},
      {"POST",
       "/v1/groups",
       kJobToken,
       {{"job", "j"},
        {"ranks", {"a", "b"}},
        {"lanes", 1},
        {"window", 2},
        {"segment_bytes", 256},
        {"levels", 1},
        {"form_senders", "members"},
        {"rail", "rail-1"},
        {"link_rate_bits_per_second", 1}}},
      {"POST",
       "/v1/plan",
       kJobToken,
       {{"job", "j"}, {"ranks", {"a", "b"}}, {"lanes", 1}, {"window", 2}, {"segment_bytes", 256}, {"levels", 1}}},
      {"POST", "/v1/groups/1/rebuild", kJobToken, {{"epoch", 0}, {"failed", {"a"}}, {"in_use", true}}}};
}

const std::vector<json>& hostile_values() {
  static const std::vector<json> values{nullptr,
                                        true,
                                        -1,
                                        0,
                                        1.5,
                                        18446744073709551615ULL,
                                        -9223372036854775807LL,
                                        "",
                                        "x y",
                                        std::string(64, 'n'),
                                        std::string(10'000, 'n'),
                                        "\u0000",
                                        "../../etc/passwd",
                                        "h:99999",
                                        "h:0",
                                        ":1",
                                        json::array(),
                                        {nullptr},
                                        {1},
                                        {{{"a", 1}}},
                                        json::array({""}),
                                        json::array({"a\nb"}),
                                        json::object(),
                                        {{"a", 1}}};
  return values;
}

TEST_F(ApiTest, RefusesEveryWrongValueOfEveryMemberWithASentence) {
  enlist_all();
  for (const BadInput& it : bodies()) {
    const auto send = [&](const json& body) { return call(it.method, it.path, body.dump(), it.token); };
    std::vector<std::pair<json, std::string>> variants;
    for (const auto& [name, value] : it.good.items()) {
      for (const json& hostile : hostile_values()) {
        json body = it.good;
        body[name] = hostile;
        variants.emplace_back(body, name);
      }
    }
    for (const auto& [body, name] : variants) {
      const HttpReply reply = send(body);
      ASSERT_LT(reply.status, 500U) << body.dump().substr(0, 300);
      // The manager must accept a body that the document allows, and must refuse any other body.
      if (!openapi_
               .check_request(std::string(it.method) + " " +
                                  (std::string(it.path).contains("/groups/") ? "/v1/groups/{id}/rebuild"
                                   : std::string(it.path).contains("/lease") ? "/v1/aggregators/{name}/lease"
                                                                             : it.path),
                              body)
               .empty()) {
        EXPECT_EQ(reply.status, 400U) << name << ": " << body.dump().substr(0, 300);
      }
    }
    json more = it.good;
    more["colour"] = "red";
    EXPECT_THAT(message(send(more)), StartsWith("'colour' is unknown; known here: ")) << it.path;
    for (const char* text :
         {"[]", "3", "null", "{", "{\"a\":}", "\"x\"", "{\"job\":\"\xff\"}", "nonsense", "{}{}", "\xef\xbb\xbf{"}) {
      EXPECT_EQ(call(it.method, it.path, text, it.token).status, 400U) << it.path << " " << text;
    }
    EXPECT_EQ(call(it.method, it.path, std::string(60'000, '['), it.token).status, 400U);
    EXPECT_EQ(call(it.method, it.path, std::string(20U << 20, ' '), it.token).status, 413U);
  }
}

TEST_F(ApiTest, SurvivesAnyBytesAnywhere) {
  enlist_all();
  std::mt19937 random(5);
  const auto routes = openapi_.operations();
  const auto seeds = bodies();
  for (int round = 0; round < 4000; ++round) {
    const std::string& route = routes[random() % routes.size()];
    const std::size_t space = route.find(' ');
    std::string path = route.substr(space + 1);
    std::string body = seeds[random() % seeds.size()].good.dump();
    if (route == "PUT /v1/topology") body = leaf_spine_yaml(1, 1, 1);
    for (std::string* text : {&path, &body}) {
      for (unsigned edits = random() % 4; edits > 0 && !text->empty(); --edits) {
        if (random() % 2 == 0)
          (*text)[random() % text->size()] = static_cast<char>(random());
        else
          text->erase(random() % text->size(), 1 + random() % 9);
      }
    }
    HttpHead head{.method = route.substr(0, space),
                  .path = path,
                  .query = random() % 4 == 0 ? body.substr(0, 20) : "",
                  .authorization = "",
                  .remote_address = "::1"};
    head.authorization = std::string("Bearer ") + (random() % 2 == 0 ? kJobToken : kAggregatorToken);
    const Admission admission = api_->admit(head);
    const HttpReply reply = admission.refusal ? *admission.refusal : api_->handle(head, body);
    ASSERT_LT(reply.status, 500U) << route << "\n" << body << "\n" << reply.body;
  }
}

TEST_F(ApiTest, Answers507WhileTheStoreIsFullAndReadsGoOn) {
  enlist_all();
  store_.full = true;
  const HttpReply reply = call("POST", "/v1/groups", four_ranks().dump(), kJobToken);
  EXPECT_EQ(reply.status, 507U);
  EXPECT_EQ(json::parse(reply.body)["error"]["code"], "insufficient_storage");
  EXPECT_THAT(look("/v1/aggregators")["aggregators"], SizeIs(3));
  store_.full = false;
  EXPECT_EQ(call("POST", "/v1/groups", four_ranks().dump(), kJobToken).status, 200U);
}

TEST_F(ApiTest, RefusesRequestsBeyondItsLimits) {
  settings_.groups_max = 2;
  settings_.aggregators_max = 1;
  settings_.ranks_max = 5;
  open();
  use({});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(call("POST", "/v1/groups", four_ranks().dump(), kJobToken).status, 200U);
  EXPECT_EQ(call("POST", "/v1/groups", four_ranks().dump(), kJobToken).status, 503U);
  EXPECT_EQ(call("POST", "/v1/aggregators", registration("a", "h").dump()).status, 200U);
  EXPECT_EQ(call("POST", "/v1/aggregators", registration("b", "h").dump()).status, 503U);
  EXPECT_THAT(message(call("POST", "/v1/plan", json{{"ranks", nodes(6)}}.dump(), kJobToken)),
              HasSubstr("ranks has 6 members, not 1 to 5"));
}

/// Lets ThreadSanitizer watch many threads, and checks that every answer makes sense, which ThreadSanitizer cannot.
TEST_F(ApiTest, ServesManyThreadsAtOnce) {
  enlist_all();
  std::atomic<int> wrong{0};
  std::atomic<bool> over{false};
  const auto quietly = [&](const char* method, const std::string& path, const std::string& body, const char* token) {
    const HttpHead head{.method = method,
                        .path = path,
                        .query = "",
                        .authorization = std::string("Bearer ") + token,
                        .remote_address = "::1"};
    const Admission admission = api_->admit(head);
    HttpReply reply = admission.refusal ? *admission.refusal : api_->handle(head, body);
    if (reply.status != 200 && reply.status != 404 && reply.status != 409) ++wrong;
    return reply;
  };
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int round = 0; round < 150; ++round) {
      const json grant = json::parse(quietly("POST", "/v1/groups", four_ranks().dump(), kJobToken).body);
      const std::string group = "/v1/groups/" + grant["group"].dump();
      for (int i = 0; i < 3; ++i) quietly("PUT", group + "/lease", "", kJobToken);
      quietly("POST", group + "/rebuild", json{{"epoch", grant["epoch"]}, {"failed", {"leaf-a"}}}.dump(), kJobToken);
      for (const char* path : {"/v1/groups", "/v1/trees", "/metrics", "/v1/aggregators", "/v1/topology"})
        quietly("GET", path, "", kJobToken);
      if (random() % 3 == 0)
        quietly("POST", "/v1/aggregators", registration("leaf-b", "agg-leaf-1").dump(), kAggregatorToken);
      if (random() % 3 == 0) quietly("PUT", "/v1/aggregators/spine/lease", "{}", kAggregatorToken);
      quietly("DELETE", group, "", kJobToken);
    }
  };
  std::thread ticker([&] {
    // Pause between ticks, so that this thread does not keep the lock.
    for (; !over; std::this_thread::sleep_for(1ms)) cluster_->tick();
  });
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  over = true;
  ticker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cluster_->stats().groups_with_trees, 0U);
  EXPECT_EQ(cluster_->stats().groups_created, 600U);
}

}  // namespace
}  // namespace tributary::manager
