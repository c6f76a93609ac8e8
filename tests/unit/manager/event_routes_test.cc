// GET /v1/events and /v1/overview: lists, streams, the rights of their readers, and their number.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/unit/manager/api_fixture.h"
#include "tree-manager/api/embedded.h"

namespace tributary::manager {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class EventRoutesTest : public ApiFixture {
 protected:
  [[nodiscard]] std::string of_tenant(const std::string& tenant, const std::string& id = "1") const {
    const std::int64_t now = clock_.unix_seconds();
    return *keys_.sign({.id = id,
                        .name = tenant,
                        .role = Role::tenant,
                        .tenant = tenant,
                        .from = now,
                        .until = now + 100,
                        .life = 100,
                        .renewable_until = now + 100});
  }
  HttpReply get(HttpHead head) {
    const Admission admission = api_->admit(head);
    return admission.refusal ? *admission.refusal : api_->handle(head, "");
  }
  HttpReply list(const std::string& token, const std::string& query = "") {
    return get(head_of("GET", "/v1/events" + query, token));
  }
  HttpReply stream(const std::string& token, const std::string& known = "", const std::string& passed_on = "") {
    HttpHead head = head_of("GET", "/v1/events", token);
    head.accept = "text/event-stream";
    head.last_event_id = known;
    head.passed_on = passed_on;
    return get(head);
  }
  void group_of(const std::string& token, const std::string& job) {
    const HttpHead head = head_of("POST", "/v1/groups", token);
    ASSERT_FALSE(api_->admit(head).refusal);
    ASSERT_EQ(api_->handle(head, json{{"job", job}, {"ranks", nodes(4)}}.dump()).status, 200U);
  }
  static std::vector<std::string> jobs_in(const HttpReply& reply) {
    std::vector<std::string> jobs;
    const json list = json::parse(reply.body);
    for (const json& event : list["events"]) {
      if (event["kind"] == "group-made") jobs.push_back(event["job"]);
    }
    return jobs;
  }
};

TEST_F(EventRoutesTest, ListTheEventsAfterAKnownOne) {
  enlist_all();
  const json all = json::parse(list("").body);
  ASSERT_THAT(all["events"], SizeIs(3));
  EXPECT_EQ(all["missed"], false) << "a newcomer has missed nothing";
  EXPECT_EQ(all["events"][0]["kind"], "aggregator-registered");
  EXPECT_EQ(all["events"][0]["aggregator"], "leaf-a");
  const std::string known = std::to_string(all["events"][1]["id"].get<std::uint64_t>());
  const json rest = json::parse(list("", "?after=" + known).body);
  ASSERT_THAT(rest["events"], SizeIs(1));
  EXPECT_EQ(rest["events"][0], all["events"][2]);
  EXPECT_EQ(json::parse(list("", "?after=1").body)["missed"], true);
  for (const char* query :
       {"?after=", "?after=x", "?after=-1", "?after=9007199254740992", "?before=1", "?after=1&after=2", "?"})
    EXPECT_EQ(list("", query).status, query == std::string("?") ? 200U : 400U) << query;
}

TEST_F(EventRoutesTest, StreamEventsAsTheyCome) {
  const HttpReply reply = stream("");
  ASSERT_EQ(reply.status, 200U);
  EXPECT_EQ(reply.content_type, "text/event-stream");
  ASSERT_NE(reply.flow, nullptr);
  EXPECT_THAT(*reply.flow->next(), testing::StartsWith("retry: 1000\nid: "));
  EXPECT_EQ(reply.flow->next(), "");
  enlist_all();
  const std::string text = *reply.flow->next();
  EXPECT_THAT(text, HasSubstr("event: aggregator-registered\ndata: {"));
  EXPECT_THAT(text, HasSubstr("\"aggregator\":\"spine\""));
  EXPECT_TRUE(text.ends_with("}\n\n"));
  EXPECT_EQ(reply.flow->next(), "");
}

TEST_F(EventRoutesTest, AStreamResumesAfterTheLastEventThatItsReaderHas) {
  enlist_all();
  const json all = json::parse(list("").body)["events"];
  const HttpReply reply = stream("", std::to_string(all[0]["id"].get<std::uint64_t>()));
  const std::string text = *reply.flow->next();
  EXPECT_THAT(text, Not(HasSubstr("leaf-a")));
  EXPECT_THAT(text, HasSubstr("leaf-b"));
  EXPECT_THAT(text, HasSubstr("spine"));
  EXPECT_THAT(text, Not(HasSubstr("event: missed")));
  EXPECT_THAT(*stream("", "7").flow->next(), HasSubstr("event: missed\ndata: {}"));
  EXPECT_EQ(stream("", "x").status, 400U);
}

TEST_F(EventRoutesTest, ATenantHearsOnlyOfItsOwnGroups) {
  enlist_all();
  const std::string physics = of_tenant("physics");
  const std::string chemistry = of_tenant("chemistry", "2");
  use({.reads_need_token = true});
  HttpReply open = stream(chemistry);
  static_cast<void>(open.flow->next());
  group_of(physics, "secret");
  group_of(chemistry, "own");
  EXPECT_THAT(jobs_in(list(physics)), ElementsAre("secret"));
  EXPECT_THAT(jobs_in(list(chemistry)), ElementsAre("own"));
  const std::string text = *open.flow->next();
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, HasSubstr("own"));
  const auto seen = [&](const std::string& token) {
    return json::parse(get(head_of("GET", "/v1/overview", token)).body)["groups"];
  };
  ASSERT_THAT(seen(physics), SizeIs(1));
  EXPECT_EQ(seen(physics)[0]["job"], "secret");
  EXPECT_EQ(list("").status, 401U);
  EXPECT_EQ(stream("").status, 401U);
  open.flow.reset();
  use({});
  EXPECT_THAT(jobs_in(list(physics)), SizeIs(2)) << "reads are open to everybody";
}

TEST_F(EventRoutesTest, AStreamEndsWithItsReadersRight) {
  use({.reads_need_token = true});
  const std::string token = of_tenant("physics");
  const HttpReply reply = stream(token);
  EXPECT_TRUE(reply.flow->next().has_value());
  enlist_all();
  EXPECT_TRUE(reply.flow->next().has_value());
  clock_.advance(std::chrono::seconds(101));
  enlist_all();
  EXPECT_EQ(reply.flow->next(), std::nullopt) << "the token has expired";
}

TEST_F(EventRoutesTest, AReaderBehindAnotherManagerGetsTheEventsOfTheMoment) {
  enlist_all();
  const json all = json::parse(list("").body)["events"];
  const HttpReply reply = stream("", std::to_string(all[1]["id"].get<std::uint64_t>()), "sealed words");
  EXPECT_EQ(reply.flow, nullptr);
  EXPECT_EQ(reply.content_type, "text/event-stream");
  EXPECT_THAT(reply.body, testing::StartsWith("retry: 1000\nid: "));
  EXPECT_THAT(reply.body, HasSubstr("spine"));
  EXPECT_THAT(reply.body, Not(HasSubstr("leaf-b")));
}

TEST_F(EventRoutesTest, NoCallerTakesAllStreams) {
  const std::string physics = of_tenant("physics");
  std::vector<HttpReply> open;
  for (std::size_t i = 0; i < EventStreams::kStreamsOfOneMax; ++i) {
    open.push_back(stream(physics));
    ASSERT_NE(open.back().flow, nullptr) << i;
  }
  EXPECT_EQ(stream(physics).status, 503U);
  EXPECT_NE(stream(of_tenant("chemistry", "2")).flow, nullptr);
  open.pop_back();
  EXPECT_NE(stream(physics).flow, nullptr) << "the place is free again";

  EventStreams streams;
  std::vector<std::shared_ptr<void>> places;
  for (std::size_t i = 0; i < EventStreams::kStrangersMax; ++i) {
    places.push_back(streams.enter({.name = "at " + std::to_string(i), .stranger = true}));
    ASSERT_NE(places.back(), nullptr);
  }
  EXPECT_EQ(streams.enter({.name = "at another", .stranger = true}), nullptr);
  EXPECT_NE(streams.enter({.name = "by somebody"}), nullptr) << "strangers keep nobody out";
  places.clear();
  EXPECT_EQ(streams.count(), 0U);
}

TEST_F(EventRoutesTest, MetricsCountStreamsAndTheirEvents) {
  const auto value = [&](const std::string& name) {
    const std::string page = get(head_of("GET", "/metrics", "")).body;
    const std::string line = "\ntributary_manager_" + name + " ";
    const std::size_t at = page.find(line);
    return at == std::string::npos ? "none" : page.substr(at + line.size(), page.find('\n', at + 1) - at - line.size());
  };
  EXPECT_EQ(value("event_streams"), "0");
  const std::string physics = of_tenant("physics");
  std::vector<HttpReply> open;
  for (std::size_t i = 0; i < EventStreams::kStreamsOfOneMax; ++i) open.push_back(stream(physics));
  EXPECT_EQ(stream(physics).status, 503U);
  EXPECT_EQ(value("event_streams"), std::to_string(EventStreams::kStreamsOfOneMax));
  EXPECT_EQ(value("event_streams_opened_total"), value("event_streams"));
  EXPECT_EQ(value("event_streams_refused_total"), "1");
  enlist_all();
  static_cast<void>(open[0].flow->next());
  static_cast<void>(open[1].flow->next());
  EXPECT_EQ(value("events_sent_total"), "6");
  static_cast<void>(stream("", "1", "sealed words"));
  EXPECT_EQ(value("events_sent_total"), "9") << "another manager passes these on";
  EXPECT_EQ(value("events_missed_total"), "1");
  EXPECT_EQ(value("event_streams_slow_total"), "0");
  open[0].flow->reader_is_slow();
  EXPECT_EQ(value("event_streams_slow_total"), "1");
  open.clear();
  EXPECT_EQ(value("event_streams"), "0");
}

TEST_F(EventRoutesTest, TheOverviewHasGroupsAndAggregators) {
  enlist_all();
  group_of(kJobToken, "train");
  const auto overview = [&](const std::string& query) { return get(head_of("GET", "/v1/overview" + query, "")); };
  const json all = json::parse(overview("").body);
  EXPECT_THAT(all["aggregators"], SizeIs(3));
  EXPECT_EQ(all["aggregators"][0]["state"], "active");
  EXPECT_EQ(all["groups"][0]["job"], "train");
  EXPECT_EQ(all["groups"][0]["ranks"], 4);
  EXPECT_EQ(all["fabric"]["kind"], "fat-tree");
  EXPECT_EQ(all["last_event"], settings_.events->log().last());
  EXPECT_FALSE(json::parse(overview("?only=groups").body).contains("aggregators"));
  EXPECT_THAT(json::parse(overview("?only=groups&host=de-1").body)["groups"], SizeIs(1));
  EXPECT_THAT(json::parse(overview("?host=node-7").body)["groups"], IsEmpty());
  for (const char* query : {"?only=jobs", "?host=a&host=b", "?colour=red"})
    EXPECT_EQ(overview(query).status, 400U) << query;
}

TEST_F(EventRoutesTest, TheFilesOfThePageHaveTheirTypesAndTags) {
  for (const WebFile& file : kWebFiles) {
    HttpHead head = head_of("GET", "/web/" + std::string(file.name), "");
    const HttpReply reply = get(head);
    ASSERT_EQ(reply.status, 200U) << file.name;
    EXPECT_EQ(reply.body, file.bytes);
    const bool script = file.name.ends_with(".js");
    EXPECT_EQ(reply.content_type == "text/javascript; charset=utf-8", script) << file.name;
    const std::map<std::string, std::string> headers(reply.headers.begin(), reply.headers.end());
    EXPECT_THAT(headers.at("Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self';"));
    EXPECT_THAT(headers.at("Content-Security-Policy"), Not(HasSubstr("unsafe")));
    head.if_none_match = "W/\"x\", " + headers.at("ETag");
    EXPECT_EQ(get(head).status, 304U);
    EXPECT_THAT(get(head).body, IsEmpty());
  }
  EXPECT_THAT(get(head_of("GET", "/", "")).body, HasSubstr("<!doctype html>"));
  EXPECT_EQ(get(head_of("GET", "/web/secrets.txt", "")).status, 404U);
}

}  // namespace
}  // namespace tributary::manager
