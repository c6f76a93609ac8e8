#include "aggregator/daemon/http_server.h"

#include <pthread.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <thread>

namespace tributary::aggregator {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

namespace {

constexpr auto kAcceptPause = std::chrono::milliseconds(100);

struct Shared {
  HttpServerSettings settings;
  HttpServer::Handler handler;
  std::uint32_t connections = 0;
};

/// One connection. Keeps itself alive by what it waits for.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) { ++shared_.connections; }
  ~Session() { --shared_.connections; }

  void read() {
    parser_.emplace();
    parser_->header_limit(shared_.settings.header_bytes_max);
    parser_->body_limit(shared_.settings.body_bytes_max);
    stream_.expires_after(shared_.settings.request_limit);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) { self->on_request(error); });
  }

 private:
  void on_request(error_code error) {
    if (error == http::error::header_limit) return answer(text(431, "the request's head is too long"), false);
    if (error == http::error::body_limit) return answer(text(413, "no body is wanted here"), false);
    if (error == http::error::end_of_stream || error == http::error::partial_message) return end();
    if (error && error.category() == make_error_code(http::error::bad_method).category()) {
      return answer(text(400, "this is no HTTP/1.1 request: " + error.message()), false);
    }
    if (error) return end();
    const auto& request = parser_->get();
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      return answer(text(405, "only GET and HEAD are served here"), request.keep_alive());
    }
    const std::string_view target(request.target().data(), request.target().size());
    answer(shared_.handler(target.substr(0, target.find('?'))), request.keep_alive());
  }

  static HttpAnswer text(unsigned status, std::string what) {
    return {.status = status, .body = std::move(what) + "\n"};
  }

  void answer(HttpAnswer made, bool keep_alive) {
    const bool head_only = parser_->get().method() == http::verb::head;
    reply_ = {static_cast<http::status>(made.status), 11};
    reply_.set(http::field::server, "tributary-aggregator");
    reply_.set(http::field::content_type, made.content_type);
    reply_.set(http::field::cache_control, "no-store");
    if (made.status == 405) reply_.set(http::field::allow, "GET, HEAD");
    reply_.keep_alive(keep_alive);
    const std::size_t bytes = made.body.size();
    if (!head_only) reply_.body() = std::move(made.body);
    reply_.prepare_payload();
    if (head_only) reply_.content_length(bytes);
    stream_.expires_after(shared_.settings.answer_limit);
    http::async_write(stream_, reply_, [self = shared_from_this(), keep_alive](error_code error, std::size_t) {
      if (error || !keep_alive) return self->end();
      self->read();
    });
  }

  void end() {
    error_code ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
    stream_.close();
  }

  beast::tcp_stream stream_;
  Shared& shared_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> reply_;
};

Status listen_at(Tcp::acceptor& acceptor, const Endpoint& at) {
  const auto wrong = [&](const error_code& error) {
    return fail(Errc::io, "cannot listen for HTTP on " + to_string(at) + ": " + error.message());
  };
  error_code error;
  Tcp::resolver resolver(acceptor.get_executor());
  const auto found = resolver.resolve(at.host, std::to_string(at.port), Tcp::resolver::passive, error);
  if (error || found.empty()) return wrong(error);
  const Tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (error) return wrong(error);
  acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (endpoint.protocol() == Tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  acceptor.bind(endpoint, error);
  if (error) return wrong(error);
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return wrong(error);
  return {};
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(const HttpServerSettings& settings, Handler handler) : shared{settings, std::move(handler)} {}
  ~Impl() {
    io.stop();
    if (thread.joinable()) thread.join();
  }

  void accept() {
    acceptor.async_accept([this](error_code error, Tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return pause();  // no descriptor left, most likely: at once again would spin
      if (shared.connections < shared.settings.connections_max)
        std::make_shared<Session>(std::move(socket), shared)->read();
      accept();
    });
  }
  void pause() {
    timer.expires_after(kAcceptPause);
    timer.async_wait([this](error_code error) {
      if (!error) accept();
    });
  }
  void run() {
    ::pthread_setname_np(::pthread_self(), "http");
    io.run();
  }

  Shared shared;
  asio::io_context io{1};
  Tcp::acceptor acceptor{io};
  asio::steady_timer timer{io};
  std::jthread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerSettings& settings, Handler handler) {
  auto impl = std::make_unique<Impl>(settings, std::move(handler));
  if (auto ok = listen_at(impl->acceptor, settings.listen); !ok) return std::unexpected(ok.error());
  impl->accept();
  impl->thread = std::jthread([&served = *impl] { served.run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

Endpoint HttpServer::local() const {
  error_code error;
  const Tcp::endpoint at = impl_->acceptor.local_endpoint(error);
  if (error) return impl_->shared.settings.listen;
  return {at.address().to_string(), at.port()};
}

}  // namespace tributary::aggregator
