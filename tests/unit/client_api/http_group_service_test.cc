#include "client/api/http_group_service.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <thread>

#include "tributary/transport/tcp.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr GroupTraffic kTraffic{
    .operations = 5, .bytes_in_network = 4096, .bytes_between_ranks = 7, .bytes_in_shared_memory = 0};

/// A port of this host with a listener; the test decides what happens to connections.
class Port {
 public:
  Port() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &bytes);
    number_ = ntohs(at.sin_port);
  }
  ~Port() { shut(); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  void shut() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(number_); }
  /// Takes one request and answers it; returns the request.
  [[nodiscard]] std::string answer(const std::string& status, const std::string& body) const {
    const int connection = accept(fd_, nullptr, nullptr);
    std::string request;
    std::array<char, 4096> piece{};
    const auto whole = [&] {
      const std::size_t end = request.find("\r\n\r\n"), length = request.find("Content-Length: ");
      if (end == std::string::npos) return false;
      return length == std::string::npos || request.size() >= end + 4 + std::stoul(request.substr(length + 16));
    };
    while (!whole()) {
      const ssize_t got = read(connection, piece.data(), piece.size());
      if (got <= 0) break;
      request.append(piece.data(), static_cast<std::size_t>(got));
    }
    const std::string text = "HTTP/1.1 " + status +
                             "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                             "\r\nConnection: close\r\n\r\n" + body;
    EXPECT_EQ(write(connection, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(connection);
    return request;
  }

 private:
  int fd_;
  std::uint16_t number_ = 0;
};

std::unique_ptr<HttpGroupService> make(const std::string& url, transport::Transport& transport) {
  auto service = HttpGroupService::create({url, "secret"}, transport);
  EXPECT_TRUE(service) << service.error().message;
  return std::move(*service);
}

template <class T>
void poll_until(transport::Transport& transport, const std::optional<T>& answer) {
  const auto limit = SteadyClock::now() + 20s;
  while (!answer && SteadyClock::now() < limit) transport.poll(10ms);
}

TEST(HttpGroupService, ATextThatIsNoUrlIsAConfigurationError) {
  transport::TcpTransport transport;
  const auto service = HttpGroupService::create({"http://", ""}, transport);
  ASSERT_FALSE(service);
  EXPECT_EQ(service.error().code, Errc::bad_config);
  EXPECT_NE(service.error().message.find("TRIBUTARY_MANAGER"), std::string::npos);
}

TEST(HttpGroupService, AnUnreachableManagerIsAnAnswerOnTheTransportsThread) {
  transport::TcpTransport transport;
  Port port;
  const auto service = make(port.url(), transport);
  port.shut();
  std::optional<Errc> code;
  std::thread::id thread;
  service->request({.job = "j", .hosts = {"a", "b"}, .lanes = 1}, [&](const Result<GroupDescriptor>& answer) {
    code = answer ? Errc::retry : answer.error().code;
    thread = std::this_thread::get_id();
  });
  poll_until(transport, code);
  EXPECT_EQ(code, Errc::unreachable);
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(HttpGroupService, AForgottenGroupIsABadArgument) {
  transport::TcpTransport transport;
  Port port;
  const auto service = make(port.url(), transport);
  std::thread manager([&] {
    EXPECT_NE(port.answer("404 Not Found", R"({"error": "unknown group"})").find("secret"), std::string::npos);
  });
  std::optional<Errc> code;
  service->renew(7, kTraffic,
                 [&](const Result<GroupLease>& answer) { code = answer ? Errc::retry : answer.error().code; });
  poll_until(transport, code);
  manager.join();
  EXPECT_EQ(code, Errc::bad_argument);
}

constexpr const char* kGranted =
    R"({"group": 7, "epoch": 3, "job": "j", "expires_at": 1, "lease_seconds": 15, "reason": "none", "lanes": [],)"
    R"( "retry_after_seconds": 2, "record": "c2VhbGVk"})";
constexpr const char* kLease = R"({"lease_seconds": 15, "epoch": 3, "rebuild_advised": false, "reason": ""})";

/// Asks for group 7, which `port` grants.
void get_group(HttpGroupService& service, transport::TcpTransport& transport, Port& port) {
  std::thread manager([&] { static_cast<void>(port.answer("200 OK", kGranted)); });
  std::optional<bool> granted;
  service.request({.job = "j", .hosts = {"a", "b"}, .lanes = 1},
                  [&](const Result<GroupDescriptor>& answer) { granted = answer.has_value(); });
  poll_until(transport, granted);
  manager.join();
  ASSERT_EQ(granted, true);
}

TEST(HttpGroupService, AGroupThatTheManagerHasLostIsShownToItWithItsRecord) {
  for (const char* first : {"404 Not Found", "200 OK"}) {  // the manager has lost the group, or has older trees
    transport::TcpTransport transport;
    Port port;
    const auto service = make(port.url(), transport);
    get_group(*service, transport, port);
    std::string renewal, shown;
    std::thread manager([&] {
      renewal = port.answer(first, R"({"lease_seconds": 15, "epoch": 2, "rebuild_advised": false, "reason": ""})");
      shown = port.answer("200 OK", kLease);
    });
    std::optional<bool> renewed;
    service->renew(7, kTraffic, [&](const Result<GroupLease>& answer) { renewed = answer.has_value(); });
    poll_until(transport, renewed);
    manager.join();
    EXPECT_EQ(renewed, true);
    EXPECT_TRUE(shown.starts_with("PUT /v1/groups/7/lease")) << shown;
    EXPECT_NE(renewal.find(R"("bytes_in_network":4096)"), std::string::npos) << renewal;
    EXPECT_NE(shown.find(R"("record":"c2VhbGVk")"), std::string::npos) << shown;
    EXPECT_NE(shown.find(R"("ranks":["a","b"])"), std::string::npos) << shown;
  }
}

TEST(HttpGroupService, ARecordThatTheManagerRefusesIsABadArgument) {
  transport::TcpTransport transport;
  Port port;
  const auto service = make(port.url(), transport);
  get_group(*service, transport, port);
  std::thread manager([&] {
    static_cast<void>(port.answer("404 Not Found", "{}"));
    static_cast<void>(port.answer("409 Conflict", R"({"error": {"message": "it was given back"}})"));
  });
  std::optional<Errc> code;
  service->renew(7, kTraffic,
                 [&](const Result<GroupLease>& answer) { code = answer ? Errc::retry : answer.error().code; });
  poll_until(transport, code);
  manager.join();
  EXPECT_EQ(code, Errc::bad_argument);
}

TEST(HttpGroupService, ARebuildOfALostGroupIsAskedForAgainWhenTheManagerHasAdoptedTheGroup) {
  transport::TcpTransport transport;
  Port port;
  const auto service = make(port.url(), transport);
  get_group(*service, transport, port);
  std::string again;
  std::thread manager([&] {
    static_cast<void>(port.answer("404 Not Found", "{}"));
    static_cast<void>(port.answer("200 OK", kLease));
    again = port.answer("200 OK", kGranted);
  });
  std::optional<bool> rebuilt;
  service->rebuild(7, 3, {"x"}, false, [&](const Result<GroupDescriptor>& answer) { rebuilt = answer.has_value(); });
  poll_until(transport, rebuilt);
  manager.join();
  EXPECT_EQ(rebuilt, true);
  EXPECT_TRUE(again.starts_with("POST /v1/groups/7/rebuild")) << again;
}

TEST(HttpGroupService, BringsTheCodesOfReasonsWithTheirSentences) {
  transport::TcpTransport transport;
  Port port;
  const auto service = make(port.url(), transport);
  std::thread manager([&] {
    static_cast<void>(port.answer("200 OK", R"({"lease_seconds": 15, "epoch": 3, "rebuild_advised": true,)"
                                            R"( "reason": "aggregator a is draining", "code": "draining"})"));
    static_cast<void>(port.answer(
        "200 OK", R"({"group": 7, "epoch": 3, "job": "j", "expires_at": 1, "lease_seconds": 15, "reason": "full",)"
                  R"( "code": "no-tree", "lanes": [], "retry_after_seconds": 2, "record": "c2VhbGVk"})"));
    static_cast<void>(port.answer(
        "401 Unauthorized",
        R"({"error": {"code": "unauthorized", "message": "no token was given", "reason_code": "no-token"}})"));
  });
  std::optional<GroupLease> lease;
  service->renew(7, kTraffic, [&](const Result<GroupLease>& answer) { lease = answer.value_or(GroupLease{}); });
  poll_until(transport, lease);
  EXPECT_EQ(lease->why, "aggregator a is draining [draining]");
  std::optional<std::string> reason, error;
  service->request({.job = "j", .hosts = {"a"}},
                   [&](const Result<GroupDescriptor>& answer) { reason = answer ? answer->reason : ""; });
  poll_until(transport, reason);
  EXPECT_EQ(*reason, "full [no-tree]");
  service->request({.job = "j", .hosts = {"a"}, .attempt = 1},
                   [&](const Result<GroupDescriptor>& answer) { error = answer ? "" : answer.error().message; });
  poll_until(transport, error);
  manager.join();
  EXPECT_TRUE(error->ends_with(": no token was given [no-token]")) << *error;
}

TEST(HttpGroupService, TellsOfBetterTreesAndAsksForThemWithoutGivingUpThePresentOnes) {
  transport::TcpTransport transport;
  Port port;
  const auto service = make(port.url(), transport);
  std::string asked;
  std::thread manager([&] {
    static_cast<void>(port.answer(
        "200 OK", R"({"lease_seconds": 15, "epoch": 3, "rebuild_advised": true, "reason": "aggregator a is back"})"));
    asked = port.answer("503 Service Unavailable", R"({"error": "busy"})");
  });
  std::optional<GroupLease> lease;
  service->renew(7, kTraffic, [&](const Result<GroupLease>& answer) { lease = answer.value_or(GroupLease{}); });
  poll_until(transport, lease);
  EXPECT_TRUE(lease->better_trees);
  EXPECT_EQ(lease->why, "aggregator a is back") << "an older manager sends no code";
  std::optional<bool> answered;
  service->rebuild(7, 3, {}, true, [&](const Result<GroupDescriptor>& answer) { answered = answer.has_value(); });
  poll_until(transport, answered);
  manager.join();
  EXPECT_EQ(answered, false);
  EXPECT_NE(asked.find(R"("in_use":true)"), std::string::npos) << asked;
}

TEST(HttpGroupService, EndsSoonAndWithoutAnAnswerWhenTheManagerIsSilent) {
  transport::TcpTransport transport;
  const Port port;  // the system's queue takes connections, and the test never reads from them
  auto service = make(port.url(), transport);
  bool answered = false;
  service->request({.job = "j", .hosts = {"a"}, .lanes = 1}, [&](const Result<GroupDescriptor>&) { answered = true; });
  service->release(9, {});
  const auto begin = SteadyClock::now();
  service.reset();
  EXPECT_LT(SteadyClock::now() - begin, 4s);
  transport.poll(0ms);
  EXPECT_FALSE(answered);
}

TEST(HttpGroupService, GivesNoAnswerAfterItsEnd) {
  transport::TcpTransport transport;
  const Port port;
  auto service = make(port.url(), transport);
  bool answered = false;
  service->request({.job = "j", .hosts = {"a"}, .lanes = 1}, [&](const Result<GroupDescriptor>&) { answered = true; });
  static_cast<void>(port.answer("503 Service Unavailable", R"({"error": "busy"})"));
  service.reset();  // the answer is on its way to this thread
  transport.poll(0ms);
  EXPECT_FALSE(answered);
}

TEST(HttpGroupService, GivesAGroupBackSoon) {
  transport::TcpTransport transport;
  Port port;
  auto service = make(port.url(), transport);
  service->release(41, {"leaf-1", "leaf-2"});
  const std::string asked = port.answer("204 No Content", "");  // meanwhile the service goes on
  EXPECT_TRUE(asked.starts_with("DELETE ")) << asked;
  EXPECT_NE(asked.find("/41?failed=leaf-1,leaf-2 "), std::string::npos) << asked;
  port.shut();  // the service asks once more if it has not read that answer yet
}

TEST(HttpGroupService, GivesTheGroupBackWhenItEnds) {
  transport::TcpTransport transport;
  Port port;
  auto service = make(port.url(), transport);
  std::string asked;
  std::thread manager([&] { asked = port.answer("204 No Content", ""); });
  service->release(42, {"leaf-1"});
  service.reset();
  manager.join();
  EXPECT_TRUE(asked.starts_with("DELETE ")) << asked;
  EXPECT_NE(asked.find("/42?failed=leaf-1 "), std::string::npos) << asked;
}

}  // namespace
}  // namespace tributary::client
