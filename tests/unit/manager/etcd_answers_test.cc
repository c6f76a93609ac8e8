// Answers that leave open whether etcd has made a write, and what the store makes of them.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "tree-manager/store/etcd/etcd_store.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

struct Answer {
  unsigned status = 200;
  std::string body = "{}";
};

/// One transaction's fate: etcd makes it or not, and the caller gets this answer instead of etcd's own; nullopt: the
/// connection ends without one.
struct Trouble {
  bool made = true;
  std::optional<Answer> answer;
};

/// A gateway of etcd with one key, which is the leader's: it makes a transaction if the key's version is the right one.
class FakeEtcd {
 public:
  FakeEtcd() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&at), bytes), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~FakeEtcd() {
    {
      const std::lock_guard lock(mutex_);
      ::shutdown(listener_, SHUT_RDWR);
      if (connection_ >= 0) ::shutdown(connection_, SHUT_RDWR);
    }
    thread_.join();
    ::close(listener_);
  }
  FakeEtcd(const FakeEtcd&) = delete;
  FakeEtcd& operator=(const FakeEtcd&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  void next(std::deque<Trouble> troubles) {
    const std::lock_guard lock(mutex_);
    troubles_ = std::move(troubles);
  }
  /// Returns true if etcd has the value.
  [[nodiscard]] bool has(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return keys_.contains(to_base64_text("/tributary/value/" + name));
  }

 private:
  void run() {
    while (true) {
      const int connection = ::accept(listener_, nullptr, nullptr);
      if (connection < 0) return;
      note(connection);
      serve(connection);
      note(-1);
      ::close(connection);
    }
  }
  void note(int connection) {
    const std::lock_guard lock(mutex_);
    connection_ = connection;
  }
  void serve(int connection) {
    std::string bytes;
    while (true) {
      const auto request = take_request(connection, bytes);
      const auto answer = request ? answer_to(request->first, request->second) : std::nullopt;
      if (!answer) return;
      const std::string text = "HTTP/1.1 " + std::to_string(answer->status) +
                               " X\r\nContent-Length: " + std::to_string(answer->body.size()) + "\r\n\r\n" +
                               answer->body;
      if (::send(connection, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
  /// Returns the path and the body of the next request; nullopt at the connection's end.
  static std::optional<std::pair<std::string, std::string>> take_request(int connection, std::string& bytes) {
    constexpr std::string_view kLength = "Content-Length: ";
    while (true) {
      const std::size_t head = bytes.find("\r\n\r\n");
      const std::size_t length = bytes.find(kLength);
      if (head != std::string::npos && length < head) {
        const std::size_t end = head + 4 + std::stoul(bytes.substr(length + kLength.size()));
        if (bytes.size() >= end) {
          const std::size_t path = bytes.find(' ') + 1;
          auto request =
              std::pair(bytes.substr(path, bytes.find(' ', path) - path), bytes.substr(head + 4, end - head - 4));
          bytes.erase(0, end);
          return request;
        }
      }
      std::string more(65536, '\0');
      const ssize_t got = ::recv(connection, more.data(), more.size(), 0);
      if (got <= 0) return std::nullopt;
      bytes.append(more, 0, static_cast<std::size_t>(got));
    }
  }
  std::optional<Answer> answer_to(const std::string& path, const std::string& body) {
    const std::lock_guard lock(mutex_);
    if (path != "/v3/kv/txn") return Answer{};
    std::optional<Trouble> trouble;
    if (!troubles_.empty()) {
      trouble = troubles_.front();
      troubles_.pop_front();
    }
    const bool made = (!trouble || trouble->made) && make(json::parse(body));
    if (trouble) return trouble->answer;
    if (made) return Answer{.body = R"({"succeeded":true})"};
    const json leader = {{"create_revision", "7"}, {"version", std::to_string(version_)}};
    return Answer{.body = json{{"responses", {{{"response_range", {{"kvs", json::array({leader})}}}}}}}.dump()};
  }
  bool make(const json& transaction) {
    if (transaction.at("compare").at(1).at("version") != std::to_string(version_)) return false;
    ++version_;
    for (const json& one : transaction.at("success")) {
      if (one.contains("request_put")) keys_.insert(one.at("request_put").at("key").get<std::string>());
    }
    return true;
  }

  const int listener_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;  // guards the members below
  int connection_ = -1;
  std::deque<Trouble> troubles_;
  std::set<std::string> keys_;
  std::uint64_t version_ = 1;
  std::thread thread_;
};

std::unique_ptr<EtcdStore> store_on(const FakeEtcd& etcd) {
  auto store = open_etcd({.endpoints = {etcd.url()}}, {.write_limit = 2s},
                         {.lease = 1, .revision = 7, .version = 1, .fence_base = 1, .candidate = "me"});
  EXPECT_TRUE(store.has_value());
  return std::move(store).value();
}

/// No write may be told as done that etcd does not have.
void expect_true_words(FakeEtcd& etcd, EtcdStore& store, const std::string& name) {
  const Status told = store.put_value(name, "x");
  EXPECT_EQ(told.has_value() && !etcd.has(name), false) << name << " is told as kept, and is not";
}

TEST(EtcdAnswers, AnAnswerThatLeavesAWriteOpenIsNoRefusal) {
  for (const Answer& answer : {Answer{502, "<html>Bad Gateway</html>"}, Answer{504, "<html>Gateway Time-out</html>"},
                               Answer{408, R"({"code":1,"message":"context canceled"})"},
                               Answer{504, R"({"code":4,"message":"context deadline exceeded"})"},
                               Answer{500, R"({"code":13,"message":"stream terminated by RST_STREAM"})"}}) {
    for (const bool made : {true, false}) {
      FakeEtcd etcd;
      const auto store = store_on(etcd);
      etcd.next({{.made = made, .answer = answer}});
      EXPECT_TRUE(store->put_value("first", "x").has_value()) << answer.body;
      EXPECT_TRUE(etcd.has("first")) << answer.body;
      expect_true_words(etcd, *store, "second");
      EXPECT_TRUE(etcd.has("second")) << answer.body;
    }
  }
}

TEST(EtcdAnswers, ARefusalIsBelievedOnlyIfTheRequestWasSentOnce) {
  const Answer no_room{500, R"({"code":8,"message":"etcdserver: mvcc: database space exceeded"})"};
  FakeEtcd etcd;
  const auto store = store_on(etcd);
  etcd.next({{.made = false, .answer = no_room}});
  EXPECT_EQ(store->put_value("none", "x").error().code, Errc::exhausted);
  EXPECT_FALSE(store->lost());
  etcd.next({{.made = true, .answer = std::nullopt}, {.made = false, .answer = no_room}});
  expect_true_words(etcd, *store, "first");
  expect_true_words(etcd, *store, "second");
  EXPECT_TRUE(store->lost()) << "the outcome of the first write is not known";
}

}  // namespace
}  // namespace tributary::manager
