// Tests the server over real sockets in one process, with many strangers, and at its end.
#include "service-kit/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
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
  std::string read_bytes(std::size_t count) {
    std::string all(count, 0);
    const ssize_t got = ::recv(socket_, all.data(), count, MSG_WAITALL);
    all.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return all;
  }
  /// Reads to the end of the connection.
  std::string read_all() {
    std::string all;
    for (std::string more = read_bytes(1); !more.empty(); more = read_bytes(1)) all += more;
    return all;
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

/// Sends a numbered line whenever one is due, and ends after the last one.
class Lines final : public HttpFlow {
 public:
  Lines(std::atomic<int>& due, int count, std::size_t bytes, std::atomic<int>& living, std::atomic<int>& slow)
      : due_(due), count_(count), bytes_(bytes), living_(living), slow_(slow) {
    ++living_;
  }
  ~Lines() override { --living_; }
  std::optional<std::string> next() override {
    if (sent_ == count_) return std::nullopt;
    if (sent_ >= due_) return "";
    return "line " + std::to_string(sent_++) + std::string(bytes_, '.') + "\n";
  }
  void reader_is_slow() noexcept override { ++slow_; }

 private:
  std::atomic<int>& due_;
  const int count_;
  const std::size_t bytes_;
  std::atomic<int>&living_, &slow_;
  int sent_ = 0;
};

class Page final : public HttpHandler {
 public:
  Admission admit(const HttpHead& head) override { return {.proved = head.authorization == "token"}; }
  HttpReply handle(const HttpHead& head, const std::string&) override {
    if (head.path == "/lines")
      return {.headers = {}, .flow = std::make_shared<Lines>(lines_due, lines, line_bytes, living, slow)};
    return {.body = std::string(head.path == "/long" ? long_bytes : 2, '7'), .headers = {}};
  }
  HttpReply reject(unsigned status, const std::string& message) override {
    return {.status = status,
            .body = nlohmann::json{{"error", {{"code", "busy"}, {"message", message}}}}.dump(),
            .headers = {}};
  }
  std::size_t long_bytes = 32U << 20;
  int lines = 3;
  std::size_t line_bytes = 0;
  std::atomic<int> lines_due = 0, living = 0, slow = 0;
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

constexpr const char* kGetLines = "GET /lines HTTP/1.1\r\nHost: x\r\n\r\n";

TEST_F(Server, AnAnswerThatGoesOnComesInChunksAndEnds) {
  serve({.flow_period = 1ms});
  Client client(port_);
  client.send(kGetLines);
  EXPECT_THAT(client.read(0), HasSubstr("Transfer-Encoding: chunked")) << "the head comes before the first line";
  page_.lines_due = 1;
  EXPECT_EQ(client.read_bytes(12), "7\r\nline 0\n\r\n") << "a line comes when it is due";
  page_.lines_due = 3;
  EXPECT_EQ(client.read_all(), "7\r\nline 1\n\r\n7\r\nline 2\n\r\n0\r\n\r\n");
  EXPECT_EQ(page_.living, 0) << "the flow has ended with its last byte";
  EXPECT_EQ(page_.slow, 0);
}

TEST_F(Server, AReaderThatTakesNothingIsClosedAndOthersAreServed) {
  page_.lines = 1 << 20;
  page_.line_bytes = 1U << 20;
  page_.lines_due = page_.lines;
  serve({.write_limit = 300ms, .flow_period = 1ms});
  Client deaf(port_);
  deaf.send(kGetLines);
  ASSERT_TRUE(deaf.hears());
  Client other(port_);
  other.send(kGet);
  EXPECT_THAT(other.read(), StartsWith("HTTP/1.1 200"));
  for (int i = 0; i < 2'000 && page_.living != 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(page_.living, 0) << "the slow reader's stream is over";
  EXPECT_EQ(page_.slow, 1);
}

TEST_F(Server, AServerThatStopsWaitsForNoStream) {
  serve({.flow_period = 1ms});
  Client client(port_);
  client.send(kGetLines);
  ASSERT_TRUE(client.hears());
  const auto begin = std::chrono::steady_clock::now();
  server_->stop(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_EQ(page_.living, 0);
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
