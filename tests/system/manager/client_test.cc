// manager_client with a real manager, without a server, and with servers that are not managers.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "tests/system/manager/manager_process.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using manager_client::AggregatorState;
using manager_client::ManagerClient;
using manager_client::ManagerSettings;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

manager_client::AggregatorRegistration registration(const std::string& name) {
  return {.name = name,
          .host = "here",
          .data = {"0.0.0.0", 7471},
          .http = {"0.0.0.0", 7472},
          .memory_bytes = 1U << 30,
          .children_max = 8,
          .version = "test"};
}

/// Listens on loopback. For each of the answers it accepts a connection, reads some bytes and sends the answer. With ""
/// it sends no answer until the test ends.
class Impostor {
 public:
  explicit Impostor(const std::string& answer) : Impostor(std::vector{answer}) {}
  explicit Impostor(std::vector<std::string> answers) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(fd_, 4), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this, answers = std::move(answers)] {
      for (const std::string& answer : answers) serve(answer);
    });
  }
  ~Impostor() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  void serve(const std::string& answer) const {
    const int connection = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    char bytes[65536];
    (void)!::recv(connection, bytes, sizeof bytes, 0);
    if (!answer.empty()) {
      (void)::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL);
    } else {
      while (::recv(connection, bytes, sizeof bytes, 0) > 0) {
      }
    }
    ::close(connection);
  }
  int fd_;
  std::string url_;
  std::thread thread_;
};

ManagerClient client_of(ManagerSettings settings) {
  return std::move(*ManagerClient::create(std::move(settings)));
}

TEST(Client, LeadsAnAggregatorAndAGroupThroughTheirLives) {
  const Folder folder;
  const auto manager = ManagerProcess::serving(folder.path());
  auto fleet = manager->for_aggregators();
  auto jobs = manager->for_jobs();

  const auto nothing = jobs.request_group({.job = "train", .hosts = {"a", "b"}, .lanes = 2});
  ASSERT_TRUE(nothing.has_value()) << nothing.error().message;
  EXPECT_TRUE(nothing->descriptor.empty());
  EXPECT_GT(nothing->retry_after_seconds, 0U);
  EXPECT_THAT(nothing->descriptor.reason, HasSubstr("no aggregator is registered"));

  const auto registered = fleet.register_aggregator(registration("one"));
  ASSERT_TRUE(registered.has_value()) << registered.error().message;
  EXPECT_EQ(registered->name, "one");
  EXPECT_EQ(registered->lease_seconds, 10U);
  EXPECT_EQ(*fleet.renew_aggregator("one", registered->incarnation, {.lanes_active = 3}), AggregatorState::active);
  EXPECT_EQ(*fleet.renew_aggregator("one", registered->incarnation + 1, {}), AggregatorState::unknown);
  EXPECT_EQ(*fleet.renew_aggregator("one", registered->incarnation, {}, {0}), AggregatorState::active);
  EXPECT_FALSE(fleet.get("/v1/aggregators/one")->at("addresses").at(0).at("live").get<bool>());
  EXPECT_EQ(*fleet.renew_aggregator("one", registered->incarnation, {}), AggregatorState::active);
  EXPECT_TRUE(fleet.get("/v1/aggregators/one")->at("addresses").at(0).at("live").get<bool>());
  EXPECT_EQ(*fleet.renew_aggregator("two", 1, {}), AggregatorState::unknown);

  EXPECT_TRUE(jobs.renew_group(nothing->descriptor.group)->rebuild_advised);
  const auto rebuilt = jobs.rebuild_group(nothing->descriptor.group, 0, {});
  ASSERT_TRUE(rebuilt.has_value()) << rebuilt.error().message;
  EXPECT_EQ(rebuilt->descriptor.epoch, 1U);
  ASSERT_THAT(rebuilt->descriptor.lanes, SizeIs(2));
  const LaneEntry& entry = rebuilt->descriptor.lanes[0].entries[1];
  EXPECT_EQ(entry.aggregator, (Endpoint{"127.0.0.1", 7471}));
  const auto claims =
      TokenVerifier::create(registered->keys.public_key)->verify(entry.tokens[0], rebuilt->descriptor.expires_at - 1);
  ASSERT_TRUE(claims.has_value()) << claims.error().message;
  EXPECT_EQ(claims->rank, 1U);
  EXPECT_EQ(claims->job, "train");
  EXPECT_TRUE(claims->root);

  const auto lease = jobs.renew_group(rebuilt->descriptor.group);
  ASSERT_TRUE(lease.has_value());
  EXPECT_TRUE(lease->known);
  EXPECT_EQ(lease->epoch, 1U);
  EXPECT_EQ((*jobs.get("/v1/groups"))["groups"][0]["path"], "in-network");
  EXPECT_EQ(jobs.rebuild_group(rebuilt->descriptor.group, 9, {}).error().code, Errc::mismatch);
  ASSERT_TRUE(fleet.request("POST", "/v1/aggregators/one/drain", nullptr).has_value());
  EXPECT_EQ(*fleet.renew_aggregator("one", registered->incarnation, {}), AggregatorState::draining);
  EXPECT_TRUE(jobs.delete_group(rebuilt->descriptor.group).has_value());
  EXPECT_FALSE(jobs.renew_group(rebuilt->descriptor.group)->known);
  EXPECT_TRUE(fleet.unregister_aggregator("one").has_value());
  EXPECT_EQ(fleet.unregister_aggregator("one").error().code, Errc::peer_gone);
}

TEST(Client, ReadsItsTokenAgainWhenTheManagerRefusesIt) {
  const Folder folder;
  const auto manager = ManagerProcess::serving(folder.file("state"));
  const std::string first = read_file(folder.file("state/job.token"));
  int calls = 0;
  auto jobs = ManagerClient::create({.url = manager->url(), .token = first, .fresh_token = [&] {
                                       ++calls;
                                       return std::string(64, 'n');
                                     }});
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message;
  const auto ask = [&] { return jobs->request_group({.job = "j", .hosts = {"a", "b"}}); };
  ASSERT_TRUE(ask().has_value());
  EXPECT_EQ(calls, 0);
  std::ofstream(folder.file("state/job.token")) << std::string(64, 'n') << "\n";
  manager->signal(SIGHUP);
  const auto limit = std::chrono::steady_clock::now() + 30s;
  while (calls == 0 && std::chrono::steady_clock::now() < limit) ASSERT_TRUE(ask().has_value());
  EXPECT_EQ(calls, 1) << "the manager takes the new token without a restart";
  ASSERT_TRUE(ask().has_value());
  EXPECT_EQ(calls, 1) << "the new token stays";
  manager->signal(SIGKILL);
}

TEST(Client, DistinguishesTheManagersRefusals) {
  const Folder folder;
  const auto manager = ManagerProcess::serving(folder.path());
  EXPECT_EQ(manager->client("wrong").request_group({.hosts = {"a"}}).error().code, Errc::denied);
  EXPECT_EQ(manager->for_aggregators().request_group({.hosts = {"a"}}).error().code, Errc::denied);
  EXPECT_EQ(manager->for_jobs().request_group({.hosts = {}}).error().code, Errc::bad_argument);
  EXPECT_EQ(manager->for_jobs().request_group({.hosts = {"\xff"}}).error().code, Errc::io)
      << "the client never sends text that is not UTF-8";
  EXPECT_EQ(manager->for_jobs().rebuild_group(12345, 1, {}).error().code, Errc::peer_gone);
  EXPECT_EQ(manager->client("").get("/nothing").error().code, Errc::peer_gone);
  EXPECT_EQ(manager->client("").get("no path").error().code, Errc::bad_argument);
}

TEST(Client, AnErrorNamesTheAddressAndTheRemedyIfNoManagerAnswers) {
  std::string url;
  {
    const Impostor gone("");
    url = gone.url();
    Connection(static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));  // this connection ends the
                                                                                        // server's thread
  }
  const auto answer = client_of({.url = url}).get("/v1/version");
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Errc::unreachable);
  EXPECT_THAT(answer.error().message, AllOf(HasSubstr(url), HasSubstr("Connection refused"),
                                            HasSubstr("check that tributary-manager runs there")));

  const auto nameless = client_of({.url = "http://no-such-host.invalid"}).get("/");
  EXPECT_EQ(nameless.error().code, Errc::unreachable);
  EXPECT_THAT(nameless.error().message, HasSubstr("looking up its name"));
}

TEST(Client, GivesUpAfterItsLimitOnAServerThatSaysNothing) {
  const Impostor silent("");
  auto client = client_of({.url = silent.url(), .request_limit = 200ms});
  const auto start = std::chrono::steady_clock::now();
  const auto answer = client.get("/");
  EXPECT_EQ(answer.error().code, Errc::unreachable);
  EXPECT_THAT(answer.error().message, HasSubstr("no end within 200 ms"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Client, EndsAtOnceWhenItIsCancelled) {
  const Impostor silent("");
  auto client = client_of({.url = silent.url(), .request_limit = 60s});
  std::thread canceller([&] {
    std::this_thread::sleep_for(50ms);
    client.cancel();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.get("/").error().code, Errc::aborted);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  canceller.join();
  EXPECT_EQ(client.get("/").error().code, Errc::aborted) << "cancel() holds for all later calls";
}

TEST(Client, RefusesAnswersThatMakeNoSense) {
  const auto body = [](const std::string& text) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  };
  for (const std::string& text : {body("no json"), body("[]"), body("{}"), body("{\"group\":\"x\"}"), body("")}) {
    const Impostor impostor(text);
    EXPECT_EQ(client_of({.url = impostor.url()}).request_group({.hosts = {"a"}}).error().code, Errc::corrupt) << text;
  }
  for (const std::string& text :
       {std::string("garbage\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")}) {
    const Impostor impostor(text);
    EXPECT_EQ(client_of({.url = impostor.url()}).get("/").error().code, Errc::unreachable) << text;
  }
  const Impostor talkative(body(std::string(100'000, ' ')));
  EXPECT_EQ(client_of({.url = talkative.url(), .answer_bytes_max = 1000}).get("/").error().code, Errc::corrupt);
  const Impostor broken("HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops");
  EXPECT_THAT(client_of({.url = broken.url()}).get("/").error().message, HasSubstr("with 500: no reason was given"));
}

std::string answer_with(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST(Client, AsksAgainWhileTheManagersStoreBlocks) {
  const std::string blocked = answer_with("503 Service Unavailable",
                                          R"({"error":{"code":"retry","reason_code":"store-blocked","message":"no"}})");
  const Impostor slow({blocked, blocked, answer_with("200 OK", "{}")});
  EXPECT_TRUE(client_of({.url = slow.url()}).get("/").has_value());
  const Impostor dead(std::vector(20, blocked));
  const auto refused = client_of({.url = dead.url(), .request_limit = 700ms}).get("/");
  ASSERT_FALSE(refused.has_value()) << "until the limit";
  EXPECT_EQ(refused.error().code, Errc::retry);
  const Impostor busy(
      {answer_with("503 Service Unavailable", R"({"error":{"code":"retry","message":"no"}})"), blocked});
  EXPECT_EQ(client_of({.url = busy.url()}).get("/").error().code, Errc::retry) << "other refusals come at once";
}

TEST(Client, RefusesATextThatIsNoUrl) {
  for (const char* url : {"", "localhost:7470", "https://", "http://", "http://:7470", "http://x:0", "http://x:99999",
                          "http://x:y", "http://a b", "http://u@x", "ftp://x"}) {
    const auto made = ManagerClient::create({.url = url});
    ASSERT_FALSE(made.has_value()) << url;
    EXPECT_EQ(made.error().code, Errc::bad_argument);
    EXPECT_THAT(made.error().message, HasSubstr("write http://host:7470"));
  }
  for (const char* url : {"http://x", "http://x/", "http://x:1/prefix/", "http://[::1]:7470", "http://[::1]"}) {
    EXPECT_TRUE(ManagerClient::create({.url = url}).has_value()) << url;
  }
  EXPECT_FALSE(ManagerClient::create({.url = "http://x", .token = "two words"}).has_value());
}

}  // namespace
}  // namespace tributary::manager
