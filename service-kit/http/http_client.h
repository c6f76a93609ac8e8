#pragma once
// An HTTP/1.1 client: one request at a time, which blocks. All Asio and Beast types stay in the .cc.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::service {

struct HttpUrl {
  std::string host;
  std::string port;
  std::string path_prefix;  // without a trailing slash
  std::string text;         // "http://host:port", for messages
};
/// The words of messages about one kind of server.
struct HttpServerWords {
  std::string_view name;          // "the manager"
  std::string_view advice;        // to a person who cannot reach it: "check that ..."
  std::string_view kind;          // "manager URL"
  std::string_view default_port;  // "7470"
};
/// Reads "http://host[:port][/prefix]".
[[nodiscard]] Result<HttpUrl> parse_url(std::string_view url, const HttpServerWords& words);

struct HttpRequest {
  std::string method;
  std::string target;
  std::string authorization;  // value of the header; empty: none
  std::string body;           // JSON, or empty
  std::chrono::milliseconds connect_limit;
  std::chrono::milliseconds request_limit;
  std::uint64_t answer_bytes_max;
  /// Uses the connection of the request before, and leaves this one's for the next. If the server has closed that
  /// connection meanwhile, the request goes out a second time: it must do no harm twice.
  bool keep_alive = false;
  std::string extra_name{}, extra_value{};  // one more header; empty: none
};

struct HttpAnswer {
  unsigned status = 0;
  std::string content_type;
  std::string body;
};

/// Runs requests one at a time; any thread may cancel them for good. Errors: unreachable, corrupt (the answer is too
/// long), aborted (cancel was called).
class HttpClient {
 public:
  explicit HttpClient(HttpServerWords words);
  ~HttpClient();
  [[nodiscard]] Result<HttpAnswer> run(const HttpUrl& url, const HttpRequest& request);
  /// Waits, and returns false at once if the client is cancelled.
  [[nodiscard]] bool wait(std::chrono::milliseconds time);
  void cancel() noexcept;

 private:
  class Running;  // publishes the way to stop the exchange in progress
  struct Kept;    // the connection that the last request has left
  [[nodiscard]] Status cancelled(const HttpUrl& url);

  const HttpServerWords words_;
  std::mutex serial_;
  std::unique_ptr<Kept> kept_;  // guarded by serial_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> stop_;  // guarded by mutex_
  bool cancelled_ = false;      // guarded by mutex_
};

}  // namespace tributary::service
