// The HTTP server and client with TLS between them, over real sockets in one process.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "service-kit/http/http_client.h"
#include "service-kit/http/http_server.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tests/unit/service_kit/test_ca.h"

namespace tributary::service {
namespace {

using namespace std::chrono_literals;
using manager::TemporaryFolder;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr HttpServerWords kWords{
    .name = "the server", .advice = "start it", .kind = "server URL", .default_port = "7470"};

/// Answers with the subject of the caller's certificate.
class Mirror final : public HttpHandler {
 public:
  Admission admit(const HttpHead& head) override { return {.proved = head.certificate != nullptr}; }
  HttpReply handle(const HttpHead& head, const std::string&) override {
    return {.body = head.certificate ? head.certificate->subject : "nobody", .headers = {}};
  }
  HttpReply reject(unsigned status, const std::string& message) override {
    return {.status = status, .body = message, .headers = {}};
  }
};

/// A TCP connection that speaks no TLS.
class Raw {
 public:
  explicit Raw(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  ~Raw() { ::close(socket_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  void send(std::string_view text) const { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// Shakes hands as a client of OpenSSL that speaks one version of TLS with one cipher. Returns the cipher; empty if
  /// the server refuses.
  [[nodiscard]] std::string shake_hands(int version, const char* cipher) const {
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
    SSL_CTX_set_security_level(context.get(), 0);
    EXPECT_EQ(SSL_CTX_set_min_proto_version(context.get(), version), 1);
    EXPECT_EQ(SSL_CTX_set_max_proto_version(context.get(), version), 1);
    EXPECT_TRUE(version != TLS1_3_VERSION || SSL_CTX_set_ciphersuites(context.get(), cipher) == 1);
    const std::unique_ptr<SSL, void (*)(SSL*)> end(SSL_new(context.get()), SSL_free);
    EXPECT_EQ(SSL_set_fd(end.get(), socket_), 1);
    return SSL_connect(end.get()) == 1 ? SSL_get_cipher_name(end.get()) : "";
  }
  /// Reads until the server ends the connection, or for 20 s.
  [[nodiscard]] std::string read_all() const {
    std::string all;
    std::array<char, 4096> bytes{};
    pollfd waits{socket_, POLLIN, 0};
    while (::poll(&waits, 1, 20'000) == 1) {
      const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
      if (got <= 0) return all;
      all.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return all + " (not ended)";
  }

 private:
  const int socket_;
};

class Https : public testing::Test {
 protected:
  std::shared_ptr<TlsContext> open(TlsContext::Side side, TlsFiles files) {
    auto context = TlsContext::open(side, std::move(files));
    EXPECT_TRUE(context) << context.error().message;
    return context.value_or(nullptr);
  }
  void serve(const TlsFiles& files, HttpServerSettings settings = {}) {
    settings.tls = tls_ = open(TlsContext::Side::server, files);
    serve_with(settings);
  }
  void serve_with(HttpServerSettings settings) {
    settings.listen = {"127.0.0.1", 0};
    settings.server_name = settings.thread_name = "test";
    auto started = HttpServer::start(settings, mirror_);
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
  }
  [[nodiscard]] std::string url(const std::string& host = "localhost", const char* scheme = "https") const {
    return std::string(scheme) + "://" + host + ":" + std::to_string(server_->local().port);
  }
  static std::string body_of(const Result<HttpAnswer>& answer) {
    return answer ? answer->body : answer.error().message;
  }
  static Result<HttpAnswer> get(HttpClient& client, const std::string& at, bool keep_alive = false) {
    const auto url = parse_url(at, kWords);
    if (!url) return std::unexpected(url.error());
    return client.run(*url, {.method = "GET",
                             .target = "/",
                             .authorization = "",
                             .body = "",
                             .connect_limit = 10s,
                             .request_limit = 20s,
                             .answer_bytes_max = 4096,
                             .keep_alive = keep_alive});
  }
  /// Returns the answer's body, or the error's sentence.
  std::string ask(const TlsFiles& files, const std::string& at) {
    HttpClient client(kWords, open(TlsContext::Side::client, files));
    return body_of(get(client, at));
  }
  std::string ask(const TlsFiles& files) { return ask(files, url()); }

  TemporaryFolder folder_;
  TestCa ca_{folder_.path(), "ca"};
  TestCa foreign_{folder_.path(), "foreign"};
  Mirror mirror_;
  std::shared_ptr<TlsContext> tls_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Https, ServesByNameAndByAddressAndKnowsTheCaller) {
  serve(ca_.issue("server"));
  EXPECT_EQ(ask({.ca = ca_.path()}), "nobody");
  EXPECT_EQ(ask({.ca = ca_.path()}, url("127.0.0.1")), "nobody");
  EXPECT_EQ(ask(ca_.issue("caller", {.common_name = "leaf-a"})), "CN=leaf-a");
}

TEST_F(Https, AServersWrongCertificateIsAnErrorThatSaysWhatIsWrongAndWhatToDo) {
  struct Case {
    TlsFiles server;
    const char* words;
  };
  for (const Case& wrong : {
           Case{ca_.issue("future", {.from_seconds = 3000}), "is not valid before 20"},
           Case{ca_.issue("other", {.names = "DNS:other,IP:10.0.0.1"}),
                "is for DNS:other, IP:10.0.0.1, and not for 'localhost'; use a name of the certificate in the URL"},
           Case{ca_.issue("nameless", {.common_name = "localhost", .names = ""}), "is for no host at all"},
           Case{foreign_.issue("stranger"), "comes from 'CN=foreign', which is no CA in"},
           Case{ca_.issue("client", {.usage = "clientAuth"}), "is not for this use"},
       }) {
    serve({.cert = wrong.server.cert, .key = wrong.server.key});
    EXPECT_THAT(ask({.ca = ca_.path()}), AllOf(HasSubstr("cannot be reached by TLS"), HasSubstr(wrong.words)));
    EXPECT_GE(server_->door().counts().accepted, 1U);
  }
}

TEST_F(Https, AServersRevokedCertificateIsRefused) {
  const TlsFiles files = ca_.issue("server");
  serve(files);
  EXPECT_EQ(ask({.ca = ca_.path(), .crl = ca_.revoke("none", {})}), "nobody");
  EXPECT_THAT(ask({.ca = ca_.path(), .crl = ca_.revoke("list", {"server"})}), HasSubstr("was revoked, says"));
  EXPECT_THAT(ask({.ca = ca_.path(), .crl = ca_.revoke("old", {}, -10)}),
              HasSubstr("has expired; put the CA's newest"));
  EXPECT_THAT(ask({.ca = ca_.path(), .crl = foreign_.revoke("theirs", {})}), HasSubstr("has no revocation list of"));
}

TEST_F(Https, ACallersWrongCertificateIsRefusedAndTheCallerLearnsWhy) {
  TlsFiles files = ca_.issue("server");
  const TlsFiles revoked = ca_.issue("revoked", {.common_name = "revoked"});
  files.crl = ca_.revoke("list", {"revoked"});
  serve(files);
  EXPECT_THAT(ask(revoked), AllOf(HasSubstr("the other side refuses the certificate in"), HasSubstr("it was revoked")));
  TlsFiles stranger = foreign_.issue("stranger");
  stranger.ca = ca_.path();
  EXPECT_THAT(ask(stranger), HasSubstr("a CA that the other side does not believe"));
  EXPECT_THAT(ask(ca_.issue("early", {.from_seconds = 3000})), HasSubstr("it is not valid yet"));
  EXPECT_THAT(ask(ca_.issue("no-client", {.usage = "serverAuth"})), HasSubstr("the other side refuses"));
  EXPECT_GE(server_->door().counts().handshakes_failed, 3U) << "the last may not be counted yet";
}

TEST_F(Https, FilesThatAreWrongAreErrorsThatNameThem) {
  const TlsFiles good = ca_.issue("good");
  const TlsFiles other = ca_.issue("other");
  const auto error = [](TlsContext::Side side, const TlsFiles& files) {
    const auto context = TlsContext::open(side, files);
    return context ? "no error" : context.error().message;
  };
  using enum TlsContext::Side;
  EXPECT_THAT(error(client, {}), HasSubstr("TRIBUTARY_TLS_CA"));
  EXPECT_THAT(error(client, {.ca = "/nowhere"}), HasSubstr("/nowhere: the file cannot be read: No such file"));
  EXPECT_THAT(error(client, {.ca = folder_.path()}), HasSubstr("it is no file"));
  EXPECT_THAT(error(client, {.ca = good.key}), HasSubstr("it holds no certificate of a CA in PEM form"));
  EXPECT_THAT(error(client, {.ca = good.ca, .crl = good.ca}), HasSubstr("it holds no revocation list"));
  EXPECT_THAT(error(server, {}), HasSubstr("a server needs a certificate"));
  EXPECT_THAT(error(server, {.cert = good.cert}), HasSubstr("the certificate has no key"));
  EXPECT_THAT(error(client, {.ca = good.ca, .key = good.key}), HasSubstr("the key has no certificate"));
  EXPECT_THAT(error(server, {.cert = good.cert, .key = other.key}),
              AllOf(HasSubstr(other.key + ": the key does not belong to the certificate in " + good.cert)));
  EXPECT_THAT(error(server, {.cert = good.key, .key = good.key}), HasSubstr("it holds no certificate in PEM form"));
  std::filesystem::permissions(good.cert, std::filesystem::perms(0600));
  EXPECT_THAT(error(server, {.cert = good.cert, .key = good.cert}), HasSubstr("it holds no private key"));
  EXPECT_THAT(error(server, {.cert = good.cert, .key = good.key, .crl = good.ca}),
              HasSubstr("name its file in tls_ca"));
  const TlsFiles old = ca_.issue("old", {.until_seconds = -10});
  EXPECT_THAT(error(server, {.cert = old.cert, .key = old.key}),
              HasSubstr("the certificate 'CN=server' has expired on"));
  std::filesystem::permissions(good.key, std::filesystem::perms(0644));
  EXPECT_THAT(error(server, {.cert = good.cert, .key = good.key}), HasSubstr("everybody on this host may read"));
}

TEST_F(Https, PlainHttpGetsAnErrorWithAdvice) {
  serve(ca_.issue("server"));
  const Raw plain(server_->local().port);
  plain.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(plain.read_all(), AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("takes only HTTPS: write https://")));
  HttpClient without(kWords);
  EXPECT_THAT(body_of(get(without, url())), HasSubstr("TRIBUTARY_TLS_CA"));
  serve_with({});
  EXPECT_THAT(ask({.ca = ca_.path()}), HasSubstr("the other side speaks no TLS; write http://"));
}

TEST_F(Https, SpeaksOnlyTls13AndItsThreeCiphers) {
  serve(ca_.issue("server"));
  const auto shake_hands = [&](int version, const char* cipher) {
    return Raw(server_->local().port).shake_hands(version, cipher);
  };
  for (const char* cipher : {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"})
    EXPECT_EQ(shake_hands(TLS1_3_VERSION, cipher), cipher);
  EXPECT_EQ(shake_hands(TLS1_3_VERSION, "TLS_AES_128_CCM_SHA256"), "");
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION}) EXPECT_EQ(shake_hands(version, ""), "");
}

TEST_F(Https, FilesChangeUnderConnectionsThatGoOn) {
  serve(ca_.issue("server"));
  const auto believed = open(TlsContext::Side::client, {.ca = ca_.path()});
  HttpClient kept(kWords, believed);
  ASSERT_EQ(body_of(get(kept, url(), true)), "nobody");
  (void)ca_.issue("server", {.common_name = "second", .names = "DNS:second"});
  ASSERT_EQ(*tls_->refresh(), true);
  EXPECT_EQ(*tls_->refresh(), false) << "nothing has changed since";
  EXPECT_EQ(body_of(get(kept, url(), true)), "nobody") << "the connection goes on";
  EXPECT_EQ(server_->door().counts().accepted, 1U);
  HttpClient fresh(kWords, believed);
  EXPECT_THAT(body_of(get(fresh, url())), HasSubstr("is for DNS:second, and not for 'localhost'"));
}

TEST_F(Https, HalfWrittenFilesLeaveTheOldOnesInUse) {
  const TlsFiles files = ca_.issue("server");
  serve(files);
  const std::string key = folder_.path() + "/kept.key";
  std::filesystem::rename(files.key, key);
  EXPECT_THAT(tls_->refresh().error().message, HasSubstr("the file cannot be read"));
  EXPECT_EQ(*tls_->refresh(), false) << "a mistake is told once";
  EXPECT_EQ(ask({.ca = ca_.path()}), "nobody");
  std::filesystem::rename(key, files.key);
  EXPECT_EQ(*tls_->refresh(), true);
}

TEST_F(Https, AKeyIsReadAgainOnceItsModeIsMended) {
  const TlsFiles files = ca_.issue("server");
  serve(files);
  constexpr auto kTickOfFileSystem = 20ms;
  using std::filesystem::perms;
  std::this_thread::sleep_for(kTickOfFileSystem);
  std::filesystem::permissions(files.key, perms::owner_read | perms::others_read);
  ASSERT_FALSE(tls_->refresh()) << "others may read the key";
  std::this_thread::sleep_for(kTickOfFileSystem);
  std::filesystem::permissions(files.key, perms::owner_read);
  EXPECT_EQ(*tls_->refresh(), true);
}

TEST_F(Https, ARevokedCallerLosesItsConnection) {
  TlsFiles files = ca_.issue("server");
  files.crl = ca_.revoke("list", {});
  serve(files);
  HttpClient caller(kWords, open(TlsContext::Side::client, ca_.issue("caller", {.common_name = "caller"})));
  HttpClient other(kWords, open(TlsContext::Side::client, ca_.issue("other", {.common_name = "other"})));
  ASSERT_EQ(body_of(get(caller, url(), true)), "CN=caller");
  ASSERT_EQ(body_of(get(other, url(), true)), "CN=other");
  (void)ca_.revoke("list", {"caller"});
  ASSERT_EQ(*tls_->refresh(), true);
  EXPECT_THAT(body_of(get(caller, url(), true)), HasSubstr("it was revoked"));
  EXPECT_EQ(body_of(get(other, url(), true)), "CN=other");
  EXPECT_EQ(server_->door().counts().accepted, 3U) << "the other's connection goes on";
}

TEST_F(Https, SilentStrangersKeepNobodyOutAndAreClosedSoon) {
  serve(ca_.issue("server"), {.connections_max = 32, .head_limit = 300ms});
  HttpClient known(kWords, open(TlsContext::Side::client, ca_.issue("caller", {.common_name = "caller"})));
  ASSERT_EQ(body_of(get(known, url(), true)), "CN=caller");
  std::vector<std::unique_ptr<Raw>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(std::make_unique<Raw>(server_->local().port));
    if (i % 2 == 0) silent.back()->send("\x16\x03\x01");  // begins a hello, and never ends it
  }
  EXPECT_EQ(ask({.ca = ca_.path()}), "nobody");
  EXPECT_EQ(body_of(get(known, url(), true)), "CN=caller");
  EXPECT_LE(server_->door().strangers(), 32U);
  EXPECT_EQ(silent.back()->read_all(), "") << "its time is over";
}

TEST_F(Https, AFloodOfHandshakesWaitsAndIsServedInTheEnd) {
  serve(ca_.issue("server"), {.handshakes_per_second_max = 20});
  const TlsFiles files{.ca = ca_.path()};
  std::vector<std::thread> callers;
  std::atomic<int> served = 0;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      for (int n = 0; n < 7; ++n) served += ask(files) == "nobody" ? 1 : 0;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(served, 56);
  EXPECT_GE(server_->door().counts().handshakes_delayed, 1U);
}

TEST_F(Https, TheNextHandshakeWithAServerTakesTheSessionOfTheLast) {
  serve(ca_.issue("server"));
  HttpClient client(kWords, open(TlsContext::Side::client, ca_.issue("caller", {.common_name = "caller"})));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(body_of(get(client, url())), "CN=caller") << i;
  EXPECT_EQ(server_->door().counts().accepted, 3U);
  EXPECT_EQ(server_->door().counts().handshakes_resumed, 2U);
}

}  // namespace
}  // namespace tributary::service
