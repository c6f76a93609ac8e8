// Tests the server over real sockets in one process, with many strangers, and at its end.
#include "service-kit/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace tributary::service {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGet = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr const char* kGetWithToken = "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: token\r\n\r\n";
constexpr int kPatienceMs = 20'000;

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int little = 65536;  // bytes that unread answers can fill at most
    (void)::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void send(std::string_view text) const { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// Reads until `enough` bytes of a body have arrived, the connection ends, or the time limit is over.
  std::string read(std::size_t enough = 1) {
    std::string all;
    while (true) {
      const std::size_t head = all.find("\r\n\r\n");
      if (head != std::string::npos && all.size() >= head + 4 + enough) return all;
      pollfd waits{socket_, POLLIN, 0};
      if (::poll(&waits, 1, kPatienceMs) != 1) return all;
      std::array<char, 65536> bytes{};
      const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (got <= 0) return all;
      all.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  [[nodiscard]] bool hears() const {
    pollfd waits{socket_, POLLIN, 0};
    return ::poll(&waits, 1, kPatienceMs) == 1;
  }
  [[nodiscard]] bool ends() const {
    pollfd waits{socket_, POLLIN, 0};
    char byte = 0;
    return ::poll(&waits, 1, kPatienceMs) == 1 && ::recv(socket_, &byte, 1, 0) <= 0;
  }
  [[nodiscard]] bool connected() const { return connected_; }

 private:
  const int socket_;
  bool connected_ = false;
};

class Page final : public HttpHandler {
 public:
  Admission admit(const HttpHead& head) override { return {.proved = head.authorization == "token"}; }
  HttpReply handle(const HttpHead& head, const std::string&) override {
    return {.body = std::string(head.path == "/long" ? long_bytes : 2, '7'), .headers = {}};
  }
  HttpReply reject(unsigned status, const std::string& message) override {
    return {.status = status,
            .body = nlohmann::json{{"error", {{"code", "busy"}, {"message", message}}}}.dump(),
            .headers = {}};
  }
  std::size_t long_bytes = 32U << 20;
};

class Server : public testing::Test {
 protected:
  void serve(HttpServerSettings settings) {
    settings.listen = {"127.0.0.1", 0};
    settings.server_name = settings.thread_name = "test";
    auto started = HttpServer::start(settings, page_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    port_ = server_->local().port;
  }
  Page page_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
};

TEST_F(Server, AThousandSilentConnectionsKeepNobodyOut) {
  serve({.connections_max = 64});
  Client known(port_);
  known.send(kGetWithToken);
  ASSERT_THAT(known.read(), StartsWith("HTTP/1.1 200"));
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 1000; ++i) {
    silent.push_back(std::make_unique<Client>(port_));
    ASSERT_TRUE(silent.back()->connected()) << i;
    if (silent.size() > 200) silent.erase(silent.begin());
    if (i % 100 != 99) continue;
    Client newcomer(port_);
    newcomer.send(kGet);
    EXPECT_THAT(newcomer.read(), StartsWith("HTTP/1.1 200")) << i;
    known.send(kGetWithToken);
    EXPECT_THAT(known.read(), StartsWith("HTTP/1.1 200")) << "a client that has shown a token stays connected";
  }
  EXPECT_LE(server_->door().strangers(), 64U);
  EXPECT_GE(server_->door().counts().displaced, 100U);
}

TEST_F(Server, ASilentStrangerIsClosedSoonAndAClientWithATokenIsNot) {
  serve({.head_limit = 200ms, .idle_limit = 1h});
  Client known(port_);
  known.send(kGetWithToken);
  ASSERT_THAT(known.read(), StartsWith("HTTP/1.1 200"));
  const Client silent(port_);
  Client idle(port_);
  idle.send(kGet);
  ASSERT_THAT(idle.read(), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(idle.ends());
  known.send(kGetWithToken);
  EXPECT_THAT(known.read(), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, ARefusalIsJsonOfTheLengthThatItSays) {
  serve({.stranger_bytes_max = 1U << 20});
  Client deaf(port_);  // does not read its answer
  deaf.send("GET /long HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(deaf.hears()) << "the answer is under way";
  Client other(port_);
  other.send("GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = other.read(page_.long_bytes);
  ASSERT_THAT(answer, StartsWith("HTTP/1.1 503"));
  const std::size_t body = answer.find("\r\n\r\n") + 4;
  EXPECT_THAT(answer, HasSubstr("Content-Length: " + std::to_string(answer.size() - body) + "\r\n"));
  EXPECT_EQ(nlohmann::json::parse(answer.substr(body)).at("error").at("code"), "busy");
  Client known(port_);
  known.send("GET /long HTTP/1.1\r\nHost: x\r\nAuthorization: token\r\nConnection: close\r\n\r\n");
  EXPECT_GT(known.read(page_.long_bytes).size(), page_.long_bytes) << "clients with a token are not turned away";
}

TEST_F(Server, EndsWithConnectionsThatAreJustEnding) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_NO_FATAL_FAILURE(serve({}));
    std::vector<std::unique_ptr<Client>> clients;
    for (int c = 0; c < 8; ++c) {
      clients.push_back(std::make_unique<Client>(port_));
      clients.back()->send(kGet);
    }
    for (const auto& client : clients) ASSERT_THAT(client->read(), StartsWith("HTTP/1.1 200"));
    clients.clear();
    server_->stop(2s);
    server_.reset();
  }
}

}  // namespace
}  // namespace tributary::service
