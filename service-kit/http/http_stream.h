#pragma once
// A connection that carries HTTP: over TCP, or over TLS on TCP.
#include <openssl/ssl.h>

#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "service-kit/tls/tls_context.h"

namespace tributary::service {

/// Beast and Asio read and write it as any stream. One strand uses it.
class HttpStream {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;

  template <class Place>
    requires(!std::same_as<std::remove_cvref_t<Place>, HttpStream>)
  explicit HttpStream(Place&& place) : tcp_(std::forward<Place>(place)) {}
  /// OpenSSL would forget the session of a connection that ends without a close_notify message.
  ~HttpStream() {
    if (end_ != nullptr) SSL_set_shutdown(end_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  }
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  /// From now on bytes travel by TLS, once the handshake is done. Returns false if no memory is left.
  [[nodiscard]] bool secure_as_server(const TlsContext& files) {
    context_ = files.current();
    return take(TlsContext::accept_with(*context_, *fault_));
  }
  [[nodiscard]] bool secure_as_client(const TlsContext& files, const std::string& host) {
    context_ = files.current();
    return take(TlsContext::connect_with(*context_, *fault_, host));
  }
  template <class Handler>
  void async_handshake(boost::asio::ssl::stream_base::handshake_type side, Handler&& handler) {
    tls_->async_handshake(side, std::forward<Handler>(handler));
  }
  /// Says over TLS that no more bytes come.
  template <class Handler>
  void async_say_end(Handler&& handler) {
    tls_->async_shutdown(std::forward<Handler>(handler));
  }

  [[nodiscard]] bool secure() const noexcept { return tls_.has_value(); }
  [[nodiscard]] boost::beast::tcp_stream& tcp() noexcept { return tcp_; }
  /// Null over plain TCP.
  [[nodiscard]] ssl_st* tls() const noexcept { return end_; }
  [[nodiscard]] const TlsFault& fault() const noexcept { return *fault_; }
  /// The context with which the handshake was made; null over plain TCP.
  [[nodiscard]] const std::shared_ptr<ssl_ctx_st>& context() const noexcept { return context_; }

  executor_type get_executor() noexcept { return tcp_.get_executor(); }
  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    tcp_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    tcp_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  bool take(ssl_st* end) {
    if (end == nullptr) return false;
    end_ = end;
    tls_.emplace(tcp_, end);
    return true;
  }

  boost::beast::tcp_stream tcp_;
  std::unique_ptr<TlsFault> fault_ = std::make_unique<TlsFault>();
  std::shared_ptr<ssl_ctx_st> context_;
  ssl_st* end_ = nullptr;  // owned by tls_
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
};

}  // namespace tributary::service
