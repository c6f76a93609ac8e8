#pragma once
// An HTTP/1.1 client, with or without TLS: it runs one request at a time, and blocks. Only the .cc file uses types of
// Asio and Beast.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service-kit/tls/tls_context.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

struct HttpUrl {
  std::string host;
  std::string port;
  std::string path_prefix;  // path without a slash at its end
  std::string text;         // "http://host:port" or "https://host:port", for messages
  bool secure = false;      // true: https
};
/// The words of messages about one kind of server.
struct HttpServerWords {
  std::string_view name;          // name such as "the manager"
  std::string_view advice;        // advice for a person, if the server cannot be reached: "check that ..."
  std::string_view kind;          // name of its URL, such as "manager URL"
  std::string_view default_port;  // port such as "7470"
};
/// Reads "http://host[:port][/prefix]", and the same with https.
[[nodiscard]] Result<HttpUrl> parse_url(std::string_view url, const HttpServerWords& words);

struct HttpRequest {
  std::string method;
  std::string target;
  std::string authorization;  // value of the header; empty: none
  std::string body;           // JSON, or empty
  std::chrono::milliseconds connect_limit;
  std::chrono::milliseconds request_limit;
  std::uint64_t answer_bytes_max;
  /// True: use the previous request's connection, and keep it open for the next request. If the server has closed this
  /// connection meanwhile, the client sends the request a second time: the server must be able to handle it twice.
  bool keep_alive = false;
  std::vector<std::pair<std::string, std::string>> headers{};  // additional headers
};

struct HttpAnswer {
  unsigned status = 0;
  std::string content_type;
  std::string body;
  bool sent_twice = false;  // the server may have handled the request twice; this is its second answer
};

/// The client. It runs one request at a time; any thread may cancel all present and future requests. Errors:
/// unreachable, corrupt (the answer is too long), aborted (cancel() was called).
class HttpClient {
 public:
  /// `tls`: the files that decide which servers of https:// URLs this client believes; null: none.
  explicit HttpClient(HttpServerWords words, std::shared_ptr<TlsContext> tls = nullptr);
  ~HttpClient();
  [[nodiscard]] Result<HttpAnswer> run(const HttpUrl& url, const HttpRequest& request);
  /// Waits for this time and returns true; returns false at once when the client is cancelled.
  [[nodiscard]] bool wait(std::chrono::milliseconds time);
  void cancel() noexcept;

 private:
  class Running;  // publishes the way to stop the exchange in progress
  struct Kept;    // the connection that the last request has left open
  [[nodiscard]] Status cancelled(const HttpUrl& url);
  void find_new_files();

  const HttpServerWords words_;
  const std::shared_ptr<TlsContext> tls_;
  std::mutex serial_;
  std::unique_ptr<Kept> kept_;  // guarded by serial_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> stop_;  // guarded by mutex_
  bool cancelled_ = false;      // guarded by mutex_
};

}  // namespace tributary::service
