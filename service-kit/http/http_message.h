#pragma once
// The types of HTTP messages for handlers, without types of any library.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "service-kit/tls/certificate.h"

namespace tributary::service {

/// The head of a request, before the server has read its body.
struct HttpHead {
  std::string method;
  std::string path;   // decoded path, without the query
  std::string query;  // undecoded query, without '?'
  std::string authorization;
  std::string remote_address;
  std::string passed_on{};  // the header Tributary-Passed-On: another manager has passed the request on; empty: none
  std::shared_ptr<const Certificate> certificate{};  // certificate of the other side, from a believed CA; null: none
  std::string accept{}, if_none_match{}, last_event_id{};  // the headers of these names; empty: none
};

/// The body of an answer that goes on, such as a stream of events. The server calls it from one thread at a time, and
/// again after a short time while no bytes are there.
class HttpFlow {
 public:
  virtual ~HttpFlow() = default;
  /// Returns the next bytes; empty: there are none yet; nullopt: the body has ended. Must not throw or block.
  [[nodiscard]] virtual std::optional<std::string> next() = 0;
  /// Called when the reader has not taken the last bytes within the limit of a write: then the body ends.
  virtual void reader_is_slow() noexcept {}
};

struct HttpReply {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<HttpFlow> flow{};  // sends this body, as long as it goes on, in place of `body`; null: sends `body`
};

/// The handler's decision after the head: an answer at once, or the most bytes of the body.
struct Admission {
  std::optional<HttpReply> refusal;
  std::uint64_t body_bytes_max = 0;
  bool proved = false;  // the other side has proved who it is: strangers cannot displace its connection
};

/// The handler of requests. All threads of the server may call it at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  [[nodiscard]] virtual Admission admit(const HttpHead& head) = 0;
  /// Answers a request that admit() has accepted. Must not throw.
  [[nodiscard]] virtual HttpReply handle(const HttpHead& head, const std::string& body) = 0;
  /// Returns the answer to bytes that are no HTTP, or to a head that is too long: the server does not know the path.
  [[nodiscard]] virtual HttpReply reject(unsigned status, const std::string& message) = 0;
};

}  // namespace tributary::service
