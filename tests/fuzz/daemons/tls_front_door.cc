// The manager's front door under TLS: any bytes from a stranger, in two pieces, before a handshake or in its place. The
// server must go on to serve a client that speaks TLS. An input that begins with 'd' is a certificate in DER form,
// whose names must be texts that can be printed.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/x509.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "service-kit/http/http_client.h"
#include "service-kit/http/http_server.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tests/unit/service_kit/test_ca.h"

using namespace tributary;
using namespace tributary::service;

namespace {

constexpr int kInputsBetweenClients = 64;

void insist(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

class Greeting final : public HttpHandler {
 public:
  Admission admit(const HttpHead&) override { return {}; }
  HttpReply handle(const HttpHead&, const std::string&) override { return {.body = "hello", .headers = {}}; }
  HttpReply reject(unsigned status, const std::string& message) override {
    return {.status = status, .body = message, .headers = {}};
  }
};

class FrontDoor {
 public:
  FrontDoor() {
    spdlog::set_level(spdlog::level::off);
    TestCa ca(folder_.path(), "ca");
    const TlsFiles files = ca.issue("server");
    auto tls = TlsContext::open(TlsContext::Side::server, files);
    auto server = HttpServer::start({.listen = {"127.0.0.1", 0},
                                     .server_name = "fuzz",
                                     .thread_name = "fuzz",
                                     .connections_max = 16,
                                     .tls = tls.value(),
                                     .handshakes_per_second_max = 0},
                                    greeting_);
    server_ = std::move(server).value();
    client_ = std::make_unique<HttpClient>(
        HttpServerWords{.name = "the server", .advice = "", .kind = "URL", .default_port = "1"},
        TlsContext::open(TlsContext::Side::client, {.ca = files.ca}).value());
    url_ = *parse_url("https://localhost:" + std::to_string(server_->local().port),
                      {.name = "the server", .advice = "", .kind = "URL", .default_port = "1"});
  }

  /// Sends the bytes, and waits until the server ends the connection, or answers and waits for more.
  void take(std::string_view bytes, std::size_t cut) {
    const int socket = connected();
    cut = std::min(cut, bytes.size());
    for (const std::string_view part : {bytes.substr(0, cut), bytes.substr(cut)})
      (void)!::send(socket, part.data(), part.size(), MSG_NOSIGNAL);
    ::shutdown(socket, SHUT_WR);
    std::array<char, 4096> answer{};
    while (::recv(socket, answer.data(), answer.size(), 0) > 0) {
    }
    ::close(socket);
    if (++inputs_ % kInputsBetweenClients == 0) greet();
  }

 private:
  /// Returns a new connection. libFuzzer's clock interrupts a call about once a minute; the call is then made again.
  int connected() {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(server_->local().port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (;;) {
      const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return socket;
      insist(errno == EINTR, std::string("the server takes no connection: ") + std::strerror(errno));
      ::close(socket);
    }
  }
  void greet() {
    const auto answer = client_->run(url_, {.method = "GET",
                                            .target = "/",
                                            .authorization = "",
                                            .body = "",
                                            .connect_limit = std::chrono::seconds(20),
                                            .request_limit = std::chrono::seconds(20),
                                            .answer_bytes_max = 4096});
    insist(answer && answer->body == "hello", "a client that speaks TLS is not served any more");
  }

  const manager::TemporaryFolder folder_;
  Greeting greeting_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<HttpClient> client_;
  HttpUrl url_;
  int inputs_ = 0;
};

void read_certificate(const unsigned char* bytes, std::size_t size) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(d2i_X509(nullptr, &bytes, static_cast<long>(size)),
                                                                X509_free);
  if (!certificate) return;
  const Certificate found = describe_certificate(*certificate);
  insist(found.names.size() <= 64, "too many names");
  for (const std::string& name : found.names) {
    insist(std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f; }), "a name that cannot be printed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2 || size > 16384) return 0;
  if (data[0] == 'd') {
    read_certificate(data + 1, size - 1);
    return 0;
  }
  static FrontDoor door;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  door.take(bytes.substr(2), data[1]);
  return 0;
}
