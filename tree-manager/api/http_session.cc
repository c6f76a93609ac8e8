#include "tree-manager/api/http_session.h"

#include <boost/asio/dispatch.hpp>

namespace tributary::manager {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr std::chrono::milliseconds kDrainLimit{1000};
constexpr std::size_t kDrainBytesMax = 64U << 20;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Percent escapes undone; nullopt for a broken one.
std::optional<std::string> decode_path(std::string_view text) {
  std::string path;
  path.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      path += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    path += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return path;
}

}  // namespace

void HttpSessions::add(const std::shared_ptr<HttpSession>& session) {
  const std::lock_guard lock(mutex_);
  sessions_.insert(session.get());
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

void HttpSessions::remove(HttpSession* session) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(session);
  count_.store(sessions_.size(), std::memory_order_relaxed);
}

void HttpSessions::close_all() {
  closing_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  for (HttpSession* session : sessions_) {
    // One that is being destroyed waits for this lock in remove(); its weak pointer has expired.
    if (const auto alive = session->weak_from_this().lock()) {
      boost::asio::dispatch(alive->executor(), [alive] { alive->close_if_idle(); });
    }
  }
}

HttpSession::HttpSession(Tcp::socket socket, const HttpServerSettings& settings, HttpHandler& handler,
                         HttpSessions& sessions)
    : stream_(std::move(socket)), settings_(settings), handler_(handler), sessions_(sessions) {
  error_code error;
  const auto remote = stream_.socket().remote_endpoint(error);
  if (!error) remote_address_ = remote.address().to_string();
  stream_.socket().set_option(Tcp::no_delay(true), error);
}

HttpSession::~HttpSession() {
  sessions_.remove(this);
}

void HttpSession::start() {
  boost::asio::dispatch(stream_.get_executor(),
                        [self = shared_from_this()] { self->read_head(self->settings_.request_limit); });
}

void HttpSession::close_if_idle() {
  if (idle_) end();
}

void HttpSession::read_head(std::chrono::milliseconds limit) {
  idle_ = true;
  parser_.emplace();
  parser_->header_limit(settings_.header_bytes_max);
  parser_->body_limit(boost::none);  // the handler decides, once it has seen the head
  stream_.expires_after(limit);
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code error, std::size_t) { self->on_head(error); });
}

void HttpSession::on_head(error_code error) {
  idle_ = false;
  if (error) return on_error(error);
  const auto& message = parser_->get();
  const std::string_view target(message.target().data(), message.target().size());
  const std::size_t question = std::min(target.find('?'), target.size());
  const auto path = decode_path(target.substr(0, question));
  if (!path) return answer(handler_.reject(400, "the path holds a broken percent escape"), false);
  head_ = {.method = std::string(message.method_string()),
           .path = *path,
           .query = std::string(target.substr(std::min(question + 1, target.size()))),
           .authorization = std::string(message[http::field::authorization]),
           .remote_address = remote_address_};
  if (head_.method == "HEAD") head_.method = "GET";
  Admission admission = handler_.admit(head_);
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
  stream_.expires_after(settings_.request_limit);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, std::size_t) { self->on_body(error); });
}

void HttpSession::on_body(error_code error) {
  if (error) return on_error(error);
  const bool keep_alive = parser_->get().keep_alive();
  answer(handler_.handle(head_, parser_->get().body()), keep_alive);
}

void HttpSession::answer(HttpReply reply, bool keep_alive) {
  keep_alive = keep_alive && !sessions_.closing();
  const bool head_only = parser_ && parser_->get().method() == http::verb::head;
  reply_ = {static_cast<http::status>(reply.status), 11};
  reply_.set(http::field::server, "tributary-manager");
  reply_.set(http::field::content_type, reply.content_type);
  reply_.set(http::field::cache_control, "no-store");
  reply_.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : reply.headers) reply_.set(name, value);
  reply_.keep_alive(keep_alive);
  const std::size_t length = reply.body.size();
  if (!head_only) reply_.body() = std::move(reply.body);
  reply_.prepare_payload();
  if (head_only) reply_.content_length(length);
  stream_.expires_after(settings_.write_limit);
  http::async_write(stream_, reply_, [self = shared_from_this(), keep_alive](error_code error, std::size_t) {
    if (error) return self->end();
    if (!keep_alive) return self->drain();
    self->read_head(self->settings_.idle_limit);
  });
}

/// The other side's mistakes are answered where there is still somebody to read it.
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

/// Reads on for a while before closing: closing with bytes unread resets the connection, and the other side may lose
/// the answer that says what was wrong.
void HttpSession::drain() {
  error_code ignored;
  if (drained_ == 0) {
    stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kDrainLimit);
  }
  stream_.async_read_some(boost::asio::buffer(discard_),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            self->drained_ += bytes;
                            if (error || self->drained_ > kDrainBytesMax) return self->end();
                            self->drain();
                          });
}

void HttpSession::end() {
  error_code ignored;
  stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace tributary::manager
