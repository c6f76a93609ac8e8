#pragma once
// A small HTTP server for reading: GET and HEAD, one thread, everything bounded.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary::aggregator {

struct HttpAnswer {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpServerSettings {
  Endpoint listen;                                 // port 0 chooses one; "::" is every address of both families
  std::uint32_t connections_max = 32;              // more are closed at once
  std::chrono::milliseconds request_limit{5'000};  // from connecting, or from the last answer, to a whole request
  std::chrono::milliseconds answer_limit{10'000};  // for a reader to take an answer
  std::uint32_t header_bytes_max = 8U << 10;
  std::uint32_t body_bytes_max = 1U << 10;  // nothing here wants one
};

class HttpServer {
 public:
  /// Called on the server's thread, one request after the other. The path comes without the query.
  using Handler = std::function<HttpAnswer(std::string_view path)>;

  /// Errc::io names the address and the reason.
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> start(const HttpServerSettings& settings, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  [[nodiscard]] Endpoint local() const;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::aggregator
