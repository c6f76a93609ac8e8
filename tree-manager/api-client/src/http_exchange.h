#pragma once
// One HTTP request and its answer over one connection of its own. All Asio and Beast types stay in the .cc.
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::manager_client {

struct HttpUrl {
  std::string host;
  std::string port;
  std::string path_prefix;  // without a trailing slash
  std::string text;         // "http://host:port", for messages
};
/// Reads "http://host[:port][/prefix]"; the port is 7470 when left out.
[[nodiscard]] Result<HttpUrl> parse_url(std::string_view url);

struct HttpRequest {
  std::string method;
  std::string target;
  std::string token;  // sent as a bearer token unless empty
  std::string body;   // JSON, or empty
  std::chrono::milliseconds connect_limit;
  std::chrono::milliseconds request_limit;
  std::uint64_t answer_bytes_max;
};

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

/// Runs exchanges one at a time; any thread may cancel them for good.
class HttpExchanger {
 public:
  [[nodiscard]] Result<HttpAnswer> run(const HttpUrl& url, const HttpRequest& request);
  void cancel() noexcept;

 private:
  class Running;  // publishes the way to stop the exchange in progress
  std::mutex serial_;
  std::mutex mutex_;
  std::function<void()> stop_;  // guarded by mutex_
  bool cancelled_ = false;      // guarded by mutex_
};

}  // namespace tributary::manager_client
