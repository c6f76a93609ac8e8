#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "tree-manager/api/http_message.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

struct HttpServerSettings {
  Endpoint listen;                                  // port 0 chooses one
  std::uint32_t threads = 2;                        // that read, handle and write
  std::uint32_t connections_max = 1024;             // more are answered 503 and closed
  std::chrono::milliseconds request_limit{10'000};  // from a request's first byte waited for to its last
  std::chrono::milliseconds write_limit{30'000};    // for one answer
  std::chrono::milliseconds idle_limit{60'000};     // between two requests of a connection
  std::uint32_t header_bytes_max = 16U << 10;
};

/// HTTP/1.1 over TCP on threads of its own. The handler must outlive the server.
class HttpServer {
 public:
  /// Listens and serves. Errc::io says which address and why: in use, no permission, no such address.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const HttpServerSettings& settings,
                                                                 HttpHandler& handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] Endpoint local() const;
  [[nodiscard]] std::uint64_t connections() const noexcept;
  /// Runs `call` on one of the threads every `period`, never twice at once, until stop().
  void every(std::chrono::milliseconds period, std::function<void()> call);
  /// No new connections; requests in progress get their answers, within `limit`. Then all is closed.
  void stop(std::chrono::milliseconds limit);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::manager
