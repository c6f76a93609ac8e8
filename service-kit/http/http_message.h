#pragma once
// HTTP as handlers see it, free of any library's types.
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

/// The decision by the head alone: an answer at once, or how long the body may be.
struct Admission {
  std::optional<HttpReply> refusal;
  std::uint64_t body_bytes_max = 0;
  bool proved = false;  // the other side has shown a token of ours: strangers cannot displace its connection
};

/// Called from all threads of the server at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  [[nodiscard]] virtual Admission admit(const HttpHead& head) = 0;
  /// Only after admit() has let it in. Must not throw.
  [[nodiscard]] virtual HttpReply handle(const HttpHead& head, const std::string& body) = 0;
  /// For what never becomes a request that can be routed: bytes that are no HTTP, a head that is too long.
  [[nodiscard]] virtual HttpReply reject(unsigned status, const std::string& message) = 0;
};

}  // namespace tributary::service
