#include "service-kit/http/http_session.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include "service-kit/http/address_source.h"
#include "service-kit/http/percent.h"
#include "service-kit/tls/tls_words.h"
#include "tributary/protocol/assert.h"

namespace tributary::service {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::chrono::milliseconds kDrainLimit{1000};
constexpr std::size_t kDrainBytesMax = 64U << 20;
constexpr std::uint64_t kShortAnswer = 4096;
constexpr std::size_t kLongRequest = 1U << 20;
constexpr std::chrono::milliseconds kHandshakePause{100};
constexpr std::string_view kPlainAnswer =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 91\r\n\r\n"
    R"({"error":{"code":"bad_request","message":"this address takes only HTTPS: write https://"}})"
    "\n";
static_assert(kPlainAnswer.size() - kPlainAnswer.find("\r\n\r\n") - 4 == 91);

template <class Message>
void set_head(Message& message, const HttpReply& reply, const std::string& server) {
  message.set(http::field::server, server);
  message.set(http::field::content_type, reply.content_type);
  message.set(http::field::cache_control, "no-store");
  message.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : reply.headers) message.set(name, value);
}

}  // namespace

HttpSession::HttpSession(Tcp::socket socket, const HttpServerSettings& settings, HttpHandler& handler, HttpDoor& door)
    : stream_(std::move(socket)), settings_(settings), handler_(handler), door_(door) {
  error_code error;
  const auto remote = stream_.tcp().socket().remote_endpoint(error);
  if (!error) {
    remote_address_ = remote.address().to_string();
    source_ = source_of_address(remote_address_);
  }
  stream_.tcp().socket().set_option(Tcp::no_delay(true), error);
}

HttpSession::~HttpSession() {
  give_back();
  door_.leave(id_);
}

void HttpSession::start() {
  id_ = door_.enter(shared_from_this(), source_);
  if (id_ == 0) return;
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    if (!self->settings_.tls) return self->read_head(self->settings_.head_limit);
    self->handshake_limit_ = std::chrono::steady_clock::now() + self->settings_.head_limit;
    self->shake_hands();
  });
}

void HttpSession::shake_hands() {
  if (!door_.may_shake_hands(source_)) return wait_for_handshake();
  if (!stream_.secure_as_server(*settings_.tls)) return end();
  stream_.tcp().expires_at(handshake_limit_);
  stream_.async_handshake(asio::ssl::stream_base::server,
                          [self = shared_from_this()](error_code error) { self->on_handshake(error); });
}

void HttpSession::wait_for_handshake() {
  if (std::chrono::steady_clock::now() >= handshake_limit_) return end();
  if (!pause_) door_.count_delayed_handshake();
  pause_.emplace(stream_.get_executor(), kHandshakePause);
  pause_->async_wait([self = shared_from_this()](error_code stopped) {
    if (!stopped && self->stream_.tcp().socket().is_open()) self->shake_hands();
  });
}

void HttpSession::on_handshake(error_code error) {
  if (!error) {
    certificate_ = shown_certificate(*stream_.tls());
    if (SSL_session_reused(stream_.tls()) == 1) door_.count_resumed_handshake();
    return read_head(settings_.head_limit);
  }
  const bool of_tls = error.category() == asio::error::get_ssl_category();
  if (of_tls && is_plain_http(error.value())) return answer_plain_http();
  if (door_.count_failed_handshake() && of_tls) {
    spdlog::warn("no TLS with {}: {}", remote_address_,
                 failure_words(stream_.fault(), error.value(), error.message(), "", settings_.tls->files()));
  }
  discard();  // the other side may still be reading the reason
}

void HttpSession::answer_plain_http() {
  asio::async_write(stream_.tcp(), asio::buffer(kPlainAnswer),
                    [self = shared_from_this()](error_code, std::size_t) { self->discard(); });
}

/// A certificate may expire or be revoked while its connection lives.
bool HttpSession::still_believed() const {
  if (!certificate_) return true;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  if (std::chrono::duration_cast<std::chrono::seconds>(now).count() > certificate_->not_after) return false;
  return stream_.context() == settings_.tls->current() || settings_.tls->still_believes(*stream_.tls());
}

void HttpSession::make_room() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->end(); });
}

void HttpSession::close_when_idle() {
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    if (self->idle_) self->end();
  });
}

void HttpSession::give_back() noexcept {
  if (taken_bytes_ != 0) door_.give_back(std::exchange(taken_bytes_, 0));
}

/// Returns whether an answer may go out. Short answers always may. Longer answers to strangers share
/// stranger_bytes_max, because a stranger may never read its answer.
bool HttpSession::may_send(std::uint64_t bytes) {
  if (proved_ || bytes <= kShortAnswer) return true;
  TRIBUTARY_ASSERT(taken_bytes_ == 0, "an answer of {} bytes goes out before one of {}", bytes, taken_bytes_);
  if (!door_.take(bytes)) return false;
  taken_bytes_ = bytes;
  return true;
}

/// Frees a request's memory before the next request. After a long request, the system gets the memory back, too.
void HttpSession::forget_request() {
  const std::size_t bytes = (parser_ ? parser_->get().body().capacity() : 0) + reply_.body().capacity();
  parser_.reset();
  reply_ = {};
  buffer_.shrink_to_fit();
  give_back();
  if (bytes >= kLongRequest) ::malloc_trim(0);
}

void HttpSession::read_head(std::chrono::milliseconds limit) {
  idle_ = true;
  parser_.emplace();
  parser_->header_limit(settings_.header_bytes_max);
  parser_->body_limit(boost::none);  // the handler decides after the head
  stream_.tcp().expires_after(limit);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code error, std::size_t) { self->on_head(error); });
}

void HttpSession::on_head(error_code error) {
  idle_ = false;
  if (error) return on_error(error);
  if (!still_believed()) return end();
  const auto& message = parser_->get();
  const std::string_view target(message.target().data(), message.target().size());
  const std::size_t question = std::min(target.find('?'), target.size());
  const auto path = percent_decode(target.substr(0, question));
  if (!path) return answer(handler_.reject(400, "the path holds a broken percent escape"), false);
  head_ = {.method = std::string(message.method_string()),
           .path = *path,
           .query = std::string(target.substr(std::min(question + 1, target.size()))),
           .authorization = std::string(message[http::field::authorization]),
           .remote_address = remote_address_,
           .passed_on = std::string(message["Tributary-Passed-On"]),
           .certificate = certificate_,
           .accept = std::string(message[http::field::accept]),
           .if_none_match = std::string(message[http::field::if_none_match]),
           .last_event_id = std::string(message["Last-Event-ID"])};
  if (head_.method == "HEAD") head_.method = "GET";
  Admission admission = handler_.admit(head_);
  if (admission.proved && !proved_) {
    proved_ = true;
    door_.proved(id_);
  }
  if (admission.refusal) return answer(std::move(*admission.refusal), parser_->is_done() && message.keep_alive());
  const auto length = parser_->content_length();
  if (length && *length > admission.body_bytes_max) {
    return answer(handler_.reject(413, "the body has " + std::to_string(*length) + " bytes; at most " +
                                           std::to_string(admission.body_bytes_max) + " are accepted here"),
                  false);
  }
  parser_->body_limit(admission.body_bytes_max);
  if (message[http::field::expect] != "100-continue") return read_body();
  go_on_ = {http::status::continue_, message.version()};
  http::async_write(stream_, go_on_, [self = shared_from_this()](error_code failed, std::size_t) {
    if (failed) return self->on_error(failed);
    self->read_body();
  });
}

void HttpSession::read_body() {
  stream_.tcp().expires_after(settings_.request_limit);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, std::size_t) { self->on_body(error); });
}

void HttpSession::on_body(error_code error) {
  if (error) return on_error(error);
  const bool keep_alive = parser_->get().keep_alive();
  answer(handler_.handle(head_, parser_->get().body()), keep_alive);
}

void HttpSession::answer(HttpReply reply, bool keep_alive) {
  if (!may_send(reply.body.size())) {
    reply = handler_.reject(503, "too many answers to other callers are still being sent; try again, or show a token");
    reply.headers.emplace_back("Retry-After", "1");
  }
  keep_alive = keep_alive && !door_.closing();
  const bool head_only = parser_ && parser_->get().method() == http::verb::head;
  if (reply.flow && !head_only) return begin_flow(std::move(reply));
  reply_ = {static_cast<http::status>(reply.status), 11};
  set_head(reply_, reply, settings_.server_name);
  reply_.keep_alive(keep_alive);
  const std::size_t length = reply.body.size();
  if (!head_only) reply_.body() = std::move(reply.body);
  reply_.prepare_payload();
  if (head_only) reply_.content_length(length);
  stream_.tcp().expires_after(settings_.write_limit);
  http::async_write(stream_, reply_, [self = shared_from_this(), keep_alive](error_code error, std::size_t) {
    if (error) return self->end();
    if (!keep_alive) return self->drain();
    self->forget_request();
    const auto& settings = self->settings_;
    self->read_head(self->proved_ ? settings.idle_limit : std::min(settings.idle_limit, settings.head_limit));
  });
}

/// Sends an answer that goes on, in chunks. Its connection takes no further request.
void HttpSession::begin_flow(HttpReply reply) {
  flow_ = std::move(reply.flow);
  flow_head_ = {static_cast<http::status>(reply.status), 11};
  set_head(flow_head_, reply, settings_.server_name);
  flow_head_.keep_alive(false);
  flow_head_.chunked(true);
  flow_serializer_.emplace(flow_head_);
  stream_.tcp().expires_after(settings_.write_limit);
  http::async_write_header(stream_, *flow_serializer_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error) return self->end();
    self->next_chunk();
  });
}

/// Sends the next bytes of the flow, or waits for some. A slow reader gets no further bytes until it has taken the
/// last ones, and is closed after the limit of a write.
void HttpSession::next_chunk() {
  idle_ = true;
  if (!flow_ || door_.closing()) return end();
  auto bytes = flow_->next();
  // To check a certificate takes time: check it before bytes leave, and not at each look for some.
  if (bytes && !bytes->empty() && !still_believed()) return end();
  if (!bytes || !bytes->empty()) return send_chunk(std::move(bytes));
  stream_.tcp().expires_never();
  pause_.emplace(stream_.get_executor(), settings_.flow_period);
  pause_->async_wait([self = shared_from_this()](error_code stopped) {
    if (!stopped && self->stream_.tcp().socket().is_open()) self->next_chunk();
  });
}

/// nullopt: sends the end of the body, and closes the connection.
void HttpSession::send_chunk(std::optional<std::string> bytes) {
  const bool last = !bytes;
  if (last) flow_.reset();
  stream_.tcp().expires_after(settings_.write_limit);
  const auto sent = [self = shared_from_this(), last](error_code error, std::size_t) {
    if (error == beast::error::timeout && self->flow_) self->flow_->reader_is_slow();
    if (error) return self->end();
    if (last) return self->drain();
    self->next_chunk();
  };
  if (last) return asio::async_write(stream_, http::make_chunk_last(), sent);
  chunk_ = std::move(*bytes);
  asio::async_write(stream_, http::make_chunk(asio::buffer(chunk_)), sent);
}

/// Handles an error: answers the other side's mistakes, unless the other side is gone.
void HttpSession::on_error(error_code error) {
  if (error == http::error::header_limit) {
    return answer(handler_.reject(431, "the request's head is longer than " +
                                           std::to_string(settings_.header_bytes_max) + " bytes"),
                  false);
  }
  if (error == http::error::body_limit) return answer(handler_.reject(413, "the body is too long"), false);
  const bool silent = error == http::error::end_of_stream || error == beast::error::timeout ||
                      error == http::error::partial_message ||
                      error.category() != http::make_error_code(http::error::end_of_stream).category();
  if (silent) return end();
  answer(handler_.reject(400, "this is no HTTP/1.1 request: " + error.message()), false);
}

void HttpSession::drain() {
  if (!stream_.secure()) return discard();
  stream_.tcp().expires_after(kDrainLimit);
  stream_.async_say_end([self = shared_from_this()](error_code) { self->discard(); });
}

/// Reads on for a short time before it closes: a close with unread bytes would reset the connection, and the other side
/// could lose the answer that names its mistake.
void HttpSession::discard() {
  error_code ignored;
  if (drained_ == 0) {
    stream_.tcp().socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.tcp().expires_after(kDrainLimit);
  }
  stream_.tcp().async_read_some(asio::buffer(discard_),
                                [self = shared_from_this()](error_code error, std::size_t bytes) {
                                  self->drained_ += bytes;
                                  if (error || self->drained_ > kDrainBytesMax) return self->end();
                                  self->discard();
                                });
}

void HttpSession::end() {
  door_.leave(id_);
  flow_.reset();
  if (pause_) pause_->cancel();
  error_code ignored;
  stream_.tcp().socket().shutdown(Tcp::socket::shutdown_both, ignored);
  stream_.tcp().close();
}

}  // namespace tributary::service
