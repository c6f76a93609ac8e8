// The HTTP server with clients that are slow, many, hostile or only old.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>

#include "tests/system/manager/manager_process.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpTest : public ::testing::Test {
 protected:
  void serve(const std::string& settings) {
    const std::string config = folder_.write("manager.yaml", settings);
    manager_ = ManagerProcess::serving(folder_.file("state"), {"--config", config, "--log-level", "error"});
  }
  [[nodiscard]] std::string job_header() const {
    std::string token = read_file(folder_.file("state/job.token"));
    while (token.ends_with('\n')) token.pop_back();
    return "Authorization: Bearer " + token + "\r\n";
  }
  [[nodiscard]] bool still_serves() const { return manager_->client("").get("/healthz").has_value(); }

  Folder folder_;
  std::unique_ptr<ManagerProcess> manager_;
};

constexpr const char* kGet = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(HttpTest, AnswersSeveralRequestsOnOneConnection) {
  serve("");
  Connection connection(manager_->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(connection.send(kGet));
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 200 OK"));
  }
  ASSERT_TRUE(connection.send(std::string(kGet) + kGet)) << "two requests in one message";
  EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 200 OK"));
  ASSERT_TRUE(connection.send("POST /v1/groups HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 401"));
  ASSERT_TRUE(connection.send("GET /healthz HTTP/1.0\r\n\r\n"));
  EXPECT_THAT(connection.answer(), HasSubstr("200 OK"));
  EXPECT_TRUE(connection.closes_within(5s)) << "HTTP/1.0 does not keep alive";
}

TEST_F(HttpTest, AnswersHeadWithoutABody) {
  serve("");
  Connection connection(manager_->port());
  ASSERT_TRUE(connection.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  // The head announces the length, but the body must not follow.
  EXPECT_TRUE(connection.closes_within(5s));
}

TEST_F(HttpTest, ClosesConnectionsThatAreTooSlow) {
  serve("request_limit: 300ms\nidle_limit: 300ms\n");
  Connection silent(manager_->port());
  Connection half_a_head(manager_->port());
  ASSERT_TRUE(half_a_head.send("GET /healthz HTT"));
  Connection half_a_body(manager_->port());
  ASSERT_TRUE(half_a_body.send("POST /v1/groups HTTP/1.1\r\nHost: x\r\n" + job_header() +
                               "Content-Length: 100\r\n\r\n{\"job\""));
  Connection idle(manager_->port());
  ASSERT_TRUE(idle.send(kGet));
  EXPECT_THAT(idle.answer(), HasSubstr("200 OK"));
  for (Connection* it : {&silent, &half_a_head, &half_a_body, &idle}) EXPECT_TRUE(it->closes_within(20s));
  // A client that sends a byte from time to time is still too slow: the limit is for the whole request.
  Connection dripping(manager_->port());
  const auto start = std::chrono::steady_clock::now();
  while (dripping.send("x") && std::chrono::steady_clock::now() - start < 20s) {
    if (dripping.closes_within(50ms)) break;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_TRUE(still_serves());
}

TEST_F(HttpTest, LetsTheOldestStrangerMakeRoomForANewcomer) {
  serve("connections_max: 3\n");
  std::vector<std::unique_ptr<Connection>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<Connection>(manager_->port()));
    ASSERT_TRUE(held.back()->send(kGet));
    ASSERT_THAT(held.back()->answer(), HasSubstr("200 OK"));
  }
  Connection fourth(manager_->port());
  ASSERT_TRUE(fourth.send(kGet));
  EXPECT_THAT(fourth.answer(), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_TRUE(held.front()->closes_within(10s));
}

TEST_F(HttpTest, TwoThousandIdleConnectionsKeepNobodyOut) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  serve("request_limit: 1min\nidle_limit: 1min\n");
  Connection known(manager_->port());
  const std::string with_token = "GET /healthz HTTP/1.1\r\nHost: x\r\n" + job_header() + "\r\n";
  ASSERT_TRUE(known.send(with_token));
  ASSERT_THAT(known.answer(), StartsWith("HTTP/1.1 200"));
  auto aggregators = manager_->for_aggregators();
  auto jobs = manager_->for_jobs();
  auto registered = aggregators.register_aggregator({.name = "a",
                                                     .host = "here",
                                                     .data = {"127.0.0.1", 7471},
                                                     .http = {"127.0.0.1", 7472},
                                                     .memory_bytes = 1U << 30,
                                                     .children_max = 8,
                                                     .version = "test"});
  ASSERT_TRUE(registered) << registered.error().message;
  std::vector<std::unique_ptr<Connection>> silent;
  for (int i = 0; i < 2000; ++i) {
    silent.push_back(std::make_unique<Connection>(manager_->port()));
    if (i % 500 != 499) continue;
    EXPECT_TRUE(still_serves()) << "after " << i + 1;
    EXPECT_TRUE(aggregators.renew_aggregator("a", registered->incarnation, {}, {})) << "after " << i + 1;
    const auto group = jobs.request_group({.job = "j", .hosts = {"here", "there"}, .lanes = 1});
    EXPECT_TRUE(group) << group.error().message;
  }
  ASSERT_TRUE(known.send(with_token));
  EXPECT_THAT(known.answer(), StartsWith("HTTP/1.1 200"))
      << "strangers do not displace a client that has shown a token";
}

// Tests connections to which only the server holds a reference: an earlier version then waited for ever for its own
// lock.
TEST_F(HttpTest, EndsOnASignalWhateverItsConnectionsAreDoing) {
  cpu_set_t before{}, one{};
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  std::size_t core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_SET(core, &one);
  const std::uint64_t starts = [] {
    const char* text = std::getenv("TRIBUTARY_MANAGER_STARTS");
    return text == nullptr ? 50 : std::strtoull(text, nullptr, 10);
  }();
  for (std::uint64_t i = 0; i < starts; ++i) {
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);  // the manager inherits this
    serve("");
    {
      Connection connection(manager_->port());
      ASSERT_TRUE(connection.send(kGet));
      ASSERT_THAT(connection.answer(), HasSubstr("200 OK"));
    }
    manager_->signal(SIGTERM);
    ASSERT_EQ(manager_->wait().exit_code, 0) << "start " << i;
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  }
}

TEST_F(HttpTest, RefusesARequestThatIsTooLongBeforeItHasReadIt) {
  serve("");
  {
    Connection connection(manager_->port());
    (void)connection.send("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n");
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 431"));
  }
  {
    Connection connection(manager_->port());
    ASSERT_TRUE(connection.send("POST /v1/groups HTTP/1.1\r\nHost: x\r\n" + job_header() +
                                "Content-Length: 99999999999\r\n\r\n"));
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 413"));
  }
  {
    Connection connection(manager_->port());
    ASSERT_TRUE(connection.send("DELETE /v1/groups/1 HTTP/1.1\r\nHost: x\r\n" + job_header() +
                                "Transfer-Encoding: chunked\r\n\r\n"));
    for (int i = 0; i < 100 && connection.send("1000\r\n" + std::string(4096, ' ') + "\r\n"); ++i) {
    }
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 413"));
  }
  // Without a token the server does not read the body.
  {
    Connection connection(manager_->port());
    ASSERT_TRUE(connection.send("POST /v1/groups HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"));
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 401"));
  }
  {
    Connection connection(manager_->port());
    ASSERT_TRUE(connection.send("POST /v1/plan HTTP/1.1\r\nHost: x\r\n" + job_header() +
                                "Expect: 100-continue\r\nContent-Length: 17\r\n\r\n"));
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 100 Continue"));
    ASSERT_TRUE(connection.send("{\"ranks\":[\"a\"]}  "));
    EXPECT_THAT(connection.answer(), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(HttpTest, SurvivesBytesThatAreNoHttp) {
  serve("request_limit: 500ms\n");
  const std::vector<std::string> rude{"\r\n\r\n\r\n",
                                      "nonsense\r\n\r\n",
                                      "GET / HTTP/9.9\r\n\r\n",
                                      "GET /%zz HTTP/1.1\r\n\r\n",
                                      "GET /%00 HTTP/1.1\r\n\r\n",
                                      std::string("\0\1\2\3\4\5\6\7", 8),
                                      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
                                      "GET  HTTP/1.1\r\n\r\n",
                                      "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                                      "GET / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                                      "POST /v1/plan HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n",
                                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"};
  for (const std::string& bytes : rude) {
    Connection connection(manager_->port());
    (void)connection.send(bytes);
    EXPECT_THAT(connection.answer(3s), Not(StartsWith("HTTP/1.1 2")));
  }
  EXPECT_TRUE(still_serves());
}

}  // namespace
}  // namespace tributary::manager
