#pragma once
// One connection of the HTTP server.
#include <array>
#include <atomic>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "tree-manager/api/http_server.h"

namespace tributary::manager {

class HttpSession;

/// The connections that there are. Any thread.
class HttpSessions {
 public:
  void add(const std::shared_ptr<HttpSession>& session);
  void remove(HttpSession* session);
  [[nodiscard]] std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool closing() const noexcept { return closing_.load(std::memory_order_relaxed); }
  /// Idle ones end now, the others after their answer.
  void close_all();

 private:
  std::mutex mutex_;
  std::set<HttpSession*> sessions_;  // each removes itself in its destructor
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> closing_{false};
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Tcp = boost::asio::ip::tcp;
  HttpSession(Tcp::socket socket, const HttpServerSettings& settings, HttpHandler& handler, HttpSessions& sessions);
  ~HttpSession();
  void start();
  /// On the session's strand: ends it if it waits for a request.
  void close_if_idle();
  [[nodiscard]] boost::asio::any_io_executor executor() { return stream_.get_executor(); }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void read_head(std::chrono::milliseconds limit);
  void on_head(boost::system::error_code error);
  void read_body();
  void on_body(boost::system::error_code error);
  void answer(HttpReply reply, bool keep_alive);
  void on_error(boost::system::error_code error);
  void drain();
  void end();

  boost::beast::tcp_stream stream_;
  const HttpServerSettings& settings_;
  HttpHandler& handler_;
  HttpSessions& sessions_;
  std::string remote_address_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpHead head_;
  boost::beast::http::response<boost::beast::http::string_body> reply_;
  boost::beast::http::response<boost::beast::http::empty_body> go_on_;
  std::array<char, 4096> discard_;
  std::size_t drained_ = 0;
  bool idle_ = true;
};

}  // namespace tributary::manager
