#pragma once
// HTTP as handlers see it, without the types of any library.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tributary::service {

/// A request before its body has been read.
struct HttpHead {
  std::string method;
  std::string path;   // decoded, without the query
  std::string query;  // as it came, without '?'
  std::string authorization;
  std::string remote_address;
};

struct HttpReply {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// The handler's decision by the head alone: an answer at once, or how long the body may be.
struct Admission {
  std::optional<HttpReply> refusal;
  std::uint64_t body_bytes_max = 0;
  bool proved = false;  // the other side has shown a valid token: strangers cannot displace its connection
};

/// All threads of the server may call it at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  [[nodiscard]] virtual Admission admit(const HttpHead& head) = 0;
  /// Answers a request that admit() has let in. Must not throw.
  [[nodiscard]] virtual HttpReply handle(const HttpHead& head, const std::string& body) = 0;
  /// Returns the answer to bytes that are no HTTP, or to a head that is too long: no path is known.
  [[nodiscard]] virtual HttpReply reject(unsigned status, const std::string& message) = 0;
};

}  // namespace tributary::service
