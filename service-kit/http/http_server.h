#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "service-kit/http/http_door.h"
#include "service-kit/http/http_message.h"
#include "service-kit/tls/tls_context.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

struct HttpServerSettings {
  Endpoint listen;            // port 0: the system chooses one; "::" is every address of both families
  std::string server_name;    // name for the header of answers
  std::string thread_name;    // at most 15 bytes
  std::uint32_t threads = 2;  // number of threads, which read, handle and write
  /// The most strangers, and also the most connections that have shown a token: a further connection displaces another
  /// one (http_door.h).
  std::uint32_t connections_max = 1024;
  std::chrono::milliseconds request_limit{10'000};  // from the wait for a request's first byte to its last byte
  std::chrono::milliseconds head_limit{5'000};      // time for a request's head; also between a stranger's requests
  std::chrono::milliseconds write_limit{30'000};    // time for one answer
  std::chrono::milliseconds idle_limit{60'000};     // time between two requests of a connection with a token
  std::chrono::milliseconds flow_period{200};       // pause after which an answer that goes on is asked for more bytes
  std::uint32_t header_bytes_max = 16U << 10;
  std::uint64_t stranger_bytes_max = 64U << 20;  // the most bytes of answers to strangers under way
  std::shared_ptr<TlsContext> tls{};             // the server speaks only HTTPS; null: only HTTP
  std::uint64_t handshakes_per_second_max =
      500;  // the most handshakes a second from one address; further ones wait; 0: no limit
};

/// A server for HTTP/1.1 over TCP or TLS, with threads of its own. The handler must outlive the server.
class HttpServer {
 public:
  /// Starts to listen and to serve. Errc::io names the address and the reason: in use, no permission, no such address.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const HttpServerSettings& settings,
                                                                 HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] Endpoint local() const;
  [[nodiscard]] const HttpDoor& door() const noexcept;
  /// Runs `call` on one of the threads once in every `period`, until stop(); never two calls at once.
  void every(std::chrono::milliseconds period, std::function<void()> call);
  /// Reads the files of TLS again, and logs the outcome; the server does so by itself when a file has changed. Existing
  /// connections go on. Does nothing without TLS.
  void reload_tls();
  /// Accepts no more connections, answers the requests in progress within `limit`, and then closes all connections.
  void stop(std::chrono::milliseconds limit);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::service
