#include "service-kit/http/http_client.h"

#include <openssl/ssl.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>
#include <charconv>
#include <memory>

#include "service-kit/http/http_stream.h"
#include "service-kit/tls/tls_words.h"

namespace tributary::service {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view kScheme = "http://";
constexpr std::string_view kSecureScheme = "https://";

enum class Phase { resolving, connecting, securing, sending, waiting, done };

std::string_view doing(Phase phase) {
  switch (phase) {
    case Phase::resolving:
      return "looking up its name";
    case Phase::connecting:
      return "connecting";
    case Phase::securing:
      return "agreeing on TLS";
    case Phase::sending:
      return "sending the request";
    case Phase::waiting:
      return "waiting for the answer";
    case Phase::done:
      break;
  }
  return "finishing";
}

http::request<http::string_body> make_request(const HttpUrl& url, const HttpRequest& from) {
  http::request<http::string_body> message;
  message.version(11);
  message.method_string(from.method);
  message.target(url.path_prefix + from.target);
  message.set(http::field::host, url.text.substr((url.secure ? kSecureScheme : kScheme).size()));
  message.set(http::field::user_agent, "tributary");
  message.set(http::field::accept, "application/json");
  if (!from.authorization.empty()) message.set(http::field::authorization, from.authorization);
  for (const auto& [name, value] : from.headers) message.set(name, value);
  if (!from.body.empty()) message.set(http::field::content_type, "application/json");
  message.body() = from.body;
  message.keep_alive(from.keep_alive);
  message.prepare_payload();
  return message;
}

/// The session that a server's last connection has left: with it, the next handshake takes no signatures.
class KeptSession {
 public:
  /// Gives the session to a new connection of the same context.
  void use_for(SSL& connection) {
    if (session_ && context_ == SSL_get_SSL_CTX(&connection)) (void)SSL_set_session(&connection, session_.get());
  }
  void take_from(SSL& connection) {
    session_.reset(SSL_get1_session(&connection));
    context_ = SSL_get_SSL_CTX(&connection);
    if (session_ && SSL_SESSION_is_resumable(session_.get()) != 1) session_.reset();
  }
  void forget() noexcept { session_.reset(); }

 private:
  struct Free {
    void operator()(SSL_SESSION* session) const noexcept { SSL_SESSION_free(session); }
  };
  std::unique_ptr<SSL_SESSION, Free> session_;
  const SSL_CTX* context_ = nullptr;  // to compare, not to use
};

/// One request and its answer. It lives as long as a handler refers to it, so a stopped exchange leaves no dangling
/// reference.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(asio::io_context& io, const HttpUrl& url, const HttpRequest& request, const TlsContext* tls,
           KeptSession& session)
      : resolver_(io),
        stream_(std::make_unique<HttpStream>(io)),
        tls_(tls),
        session_(session),
        keep_alive_(request.keep_alive),
        url_(url),
        request_(make_request(url, request)),
        connect_limit_(std::min(request.connect_limit, request.request_limit)),
        deadline_(std::chrono::steady_clock::now() + request.request_limit) {
    parser_.body_limit(request.answer_bytes_max);
  }

  void start() {
    resolver_.async_resolve(url_.host, url_.port, [self = shared_from_this()](error_code error, const auto& endpoints) {
      if (error) return self->finish(error);
      self->connect(endpoints);
    });
  }

  /// Starts the exchange on a connection that an earlier exchange has left open.
  void start_on(std::unique_ptr<HttpStream> stream) {
    stream_ = std::move(stream);
    send();
  }

  /// Ends the exchange, because it has taken too long or was cancelled.
  void give_up() {
    resolver_.cancel();
    stream_->tcp().close();
  }
  /// Returns the connection if it can serve another exchange, else nullptr.
  [[nodiscard]] std::unique_ptr<HttpStream> take_stream() { return std::move(left_); }
  /// True if the server closed the connection before it answered a byte.
  [[nodiscard]] bool found_closed() const {
    return ended_ && phase_ >= Phase::sending && !parser_.got_some() &&
           (error_ == http::error::end_of_stream || error_ == asio::error::connection_reset ||
            error_ == asio::error::broken_pipe || error_ == asio::ssl::error::stream_truncated);
  }
  /// Says why TLS failed; empty if it did not.
  [[nodiscard]] std::string why_not_secure() const {
    if (!error_ || tls_ == nullptr || !stream_->secure()) return {};
    if (stream_->fault().code == 0 && error_.category() != asio::error::get_ssl_category()) return {};
    return failure_words(stream_->fault(), error_.value(), error_.message(), url_.host, tls_->files());
  }
  [[nodiscard]] Phase phase() const { return phase_; }
  [[nodiscard]] error_code error() const { return error_; }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] auto deadline() const { return deadline_; }
  HttpAnswer answer() {
    auto& message = parser_.get();
    return {.status = message.result_int(),
            .content_type = std::string(message[http::field::content_type]),
            .body = std::move(message.body())};
  }

 private:
  void connect(const tcp::resolver::results_type& endpoints) {
    phase_ = Phase::connecting;
    stream_->tcp().expires_after(connect_limit_);
    stream_->tcp().async_connect(endpoints, [self = shared_from_this()](error_code error, const tcp::endpoint&) {
      if (error) return self->finish(error);
      error_code ignored;
      self->stream_->tcp().socket().set_option(tcp::no_delay(true), ignored);
      self->url_.secure ? self->shake_hands() : self->send();
    });
  }

  void shake_hands() {
    phase_ = Phase::securing;
    stream_->tcp().expires_at(deadline_);
    if (!stream_->secure_as_client(*tls_, url_.host)) return finish(asio::error::no_memory);
    session_.use_for(*stream_->tls());
    stream_->async_handshake(asio::ssl::stream_base::client, [self = shared_from_this()](error_code error) {
      if (error) return self->finish(error);
      self->send();
    });
  }

  void send() {
    phase_ = Phase::sending;
    stream_->tcp().expires_at(deadline_);
    http::async_write(*stream_, request_, [self = shared_from_this()](error_code error, std::size_t) {
      // Read the answer even if the write failed: a server that refuses early may close before it has read the request.
      if (error && error != asio::error::broken_pipe && error != asio::error::connection_reset) {
        return self->finish(error);
      }
      self->receive();
    });
  }

  void receive() {
    phase_ = Phase::waiting;
    http::async_read(*stream_, buffer_, parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (!error) self->phase_ = Phase::done;
      self->finish(error);
    });
  }

  void finish(error_code error) {
    error_ = error;
    ended_ = true;
    if (stream_->secure()) error ? session_.forget() : session_.take_from(*stream_->tls());
    if (!error && keep_alive_ && parser_.get().keep_alive() && buffer_.size() == 0) {
      stream_->tcp().expires_never();
      left_ = std::move(stream_);
      return;
    }
    error_code ignored;
    stream_->tcp().socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_->tcp().close();
  }

  tcp::resolver resolver_;
  std::unique_ptr<HttpStream> stream_;
  std::unique_ptr<HttpStream> left_;
  const TlsContext* const tls_;  // null: the URL does not begin with https
  KeptSession& session_;
  const bool keep_alive_;
  beast::flat_buffer buffer_;
  HttpUrl url_;
  http::request<http::string_body> request_;
  http::response_parser<http::string_body> parser_;
  std::chrono::milliseconds connect_limit_;
  std::chrono::steady_clock::time_point deadline_;
  Phase phase_ = Phase::resolving;
  error_code error_;
  bool ended_ = false;
};

Error unreachable(const HttpServerWords& words, const HttpUrl& url, const Exchange& exchange,
                  std::chrono::milliseconds limit) {
  if (const std::string why = exchange.why_not_secure(); !why.empty()) {
    return {Errc::unreachable, std::string(words.name) + " at " + url.text + " cannot be reached by TLS: " + why};
  }
  const bool late = !exchange.ended() || exchange.error() == beast::error::timeout;
  std::string why = late ? "no end within " + std::to_string(limit.count()) + " ms" : exchange.error().message();
  return {Errc::unreachable, std::string(words.name) + " at " + url.text + " cannot be reached (" +
                                 std::string(doing(exchange.phase())) + ": " + why + "); " + std::string(words.advice)};
}

}  // namespace

class HttpClient::Running {
 public:
  Running(HttpClient& owner, asio::io_context& io) : owner_(owner) {
    const std::lock_guard lock(owner_.mutex_);
    if (owner_.cancelled_) io.stop();
    owner_.stop_ = [&io] { io.stop(); };
  }
  ~Running() {
    const std::lock_guard lock(owner_.mutex_);
    owner_.stop_ = nullptr;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  HttpClient& owner_;
};

struct HttpClient::Kept {
  asio::io_context io{1};
  std::unique_ptr<HttpStream> stream;
  std::string server;
  KeptSession session;
};

HttpClient::HttpClient(HttpServerWords words, std::shared_ptr<TlsContext> tls)
    : words_(words), tls_(std::move(tls)), kept_(std::make_unique<Kept>()) {}
HttpClient::~HttpClient() = default;

Status HttpClient::cancelled(const HttpUrl& url) {
  const std::lock_guard lock(mutex_);
  if (!cancelled_) return {};
  return fail(Errc::aborted, "the request to " + std::string(words_.name) + " at " + url.text + " was cancelled");
}

Result<HttpAnswer> HttpClient::run(const HttpUrl& url, const HttpRequest& request) {
  const std::lock_guard one_at_a_time(serial_);
  if (url.secure && !tls_) {
    return fail(Errc::bad_config, "no CA is known by which to believe " + std::string(words_.name) + " at " + url.text +
                                      "; name its file in TRIBUTARY_TLS_CA");
  }
  if (url.secure) find_new_files();
  if (kept_->server != url.text) kept_->session.forget();
  auto stream = kept_->server == url.text && request.keep_alive ? std::move(kept_->stream) : nullptr;
  kept_->stream.reset();
  kept_->server = url.text;
  bool sent_twice = false;
  while (true) {
    const bool reused = stream != nullptr;
    const auto exchange =
        std::make_shared<Exchange>(kept_->io, url, request, url.secure ? tls_.get() : nullptr, kept_->session);
    {
      kept_->io.restart();
      const Running running(*this, kept_->io);
      reused ? exchange->start_on(std::move(stream)) : exchange->start();
      kept_->io.run_until(exchange->deadline());
      if (!exchange->ended()) exchange->give_up();
    }
    if (auto ok = cancelled(url); !ok) return std::unexpected(ok.error());
    if (reused && exchange->found_closed()) {
      sent_twice = true;
      continue;
    }
    if (exchange->error() == http::error::body_limit) {
      return fail(Errc::corrupt, std::string(words_.name) + " at " + url.text + " sent an answer longer than " +
                                     std::to_string(request.answer_bytes_max) + " bytes");
    }
    if (!exchange->ended() || exchange->error()) {
      return std::unexpected(unreachable(words_, url, *exchange, request.request_limit));
    }
    kept_->stream = exchange->take_stream();
    HttpAnswer answer = exchange->answer();
    answer.sent_twice = sent_twice;
    return answer;
  }
}

/// If the files are wrong, perhaps because they are half written, the old files stay in use.
void HttpClient::find_new_files() {
  const auto changed = tls_->refresh();
  if (!changed || !*changed) return;
  kept_->stream.reset();
  kept_->session.forget();
}

bool HttpClient::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return cancelled_; });
}

void HttpClient::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (stop_) stop_();
  changed_.notify_all();
}

Result<HttpUrl> parse_url(std::string_view url, const HttpServerWords& words) {
  const auto bad = [&](std::string_view why) {
    return fail(Errc::bad_argument, "'" + std::string(url) + "' is no " + std::string(words.kind) + ": " +
                                        std::string(why) + "; write http://host:" + std::string(words.default_port) +
                                        ", or https://");
  };
  const bool secure = url.starts_with(kSecureScheme);
  const std::string_view scheme = secure ? kSecureScheme : kScheme;
  if (!url.starts_with(scheme)) return bad("it does not begin with http:// or https://");
  std::string_view rest = url.substr(scheme.size());
  for (const char c : rest) {
    if (c <= ' ' || c == '@' || c == '?' || c == '#' || c == 127)
      return bad("it holds a character that has no place there");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view prefix = rest.substr(slash);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  const std::string_view authority = rest.substr(0, slash);
  std::string_view host = authority;
  std::string_view port = words.default_port;
  const std::size_t colon = authority.rfind(':');
  const std::size_t bracket = authority.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) return bad("the host is missing");
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number == 0) {
    return bad("the port is not a number from 1 to 65535");
  }
  const bool v6 = host.contains(':');
  HttpUrl parsed{std::string(host), std::string(port), std::string(prefix), std::string(scheme), secure};
  parsed.text += (v6 ? "[" + parsed.host + "]" : parsed.host) + ":" + parsed.port;
  return parsed;
}

}  // namespace tributary::service
