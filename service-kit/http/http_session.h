#pragma once
// One connection of the HTTP server.
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <optional>

#include "service-kit/http/http_server.h"
#include "service-kit/http/http_stream.h"

namespace tributary::service {

class HttpSession final : public HttpConnection, public std::enable_shared_from_this<HttpSession> {
 public:
  using Tcp = boost::asio::ip::tcp;
  HttpSession(Tcp::socket socket, const HttpServerSettings& settings, HttpHandler& handler, HttpDoor& door);
  ~HttpSession() override;
  /// Closes the connection at once if the server is closing.
  void start();

  void make_room() override;
  void close_when_idle() override;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  void shake_hands();
  void wait_for_handshake();
  void on_handshake(boost::system::error_code error);
  void answer_plain_http();
  [[nodiscard]] bool still_believed() const;
  void read_head(std::chrono::milliseconds limit);
  void on_head(boost::system::error_code error);
  void read_body();
  void on_body(boost::system::error_code error);
  void answer(HttpReply reply, bool keep_alive);
  void begin_flow(HttpReply reply);
  void next_chunk();
  void send_chunk(std::optional<std::string> bytes);
  void on_error(boost::system::error_code error);
  void drain();
  void discard();
  void end();
  void give_back() noexcept;
  void forget_request();
  [[nodiscard]] bool may_send(std::uint64_t bytes);

  HttpStream stream_;
  const HttpServerSettings& settings_;
  HttpHandler& handler_;
  HttpDoor& door_;
  HttpDoor::Id id_ = 0;
  std::string remote_address_;
  Source source_;
  std::shared_ptr<const Certificate> certificate_;  // certificate of the other side; null: none
  std::chrono::steady_clock::time_point handshake_limit_;
  std::optional<boost::asio::steady_timer> pause_;  // the wait before a handshake, or for more bytes of a flow
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpHead head_;
  boost::beast::http::response<boost::beast::http::string_body> reply_;
  boost::beast::http::response<boost::beast::http::empty_body> go_on_, flow_head_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::empty_body>> flow_serializer_;
  std::shared_ptr<HttpFlow> flow_;
  std::string chunk_;
  std::array<char, 4096> discard_;
  std::size_t drained_ = 0;
  std::uint64_t taken_bytes_ = 0;  // bytes that the door has granted for the answer under way
  bool idle_ = true;
  bool proved_ = false;
};

}  // namespace tributary::service
