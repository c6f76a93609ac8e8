#pragma once
// Passes requests on to the leader. The number of requests under way is bounded, so that a leader that hangs does not
// take all threads of this manager.
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "service-kit/http/http_client.h"
#include "service-kit/http/http_message.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::manager {

struct PassingSettings {
  std::size_t requests_max = 8;  // most requests under way; at most half of them are reads, which need no token
  std::chrono::milliseconds connect_limit{1000};
  std::chrono::milliseconds request_limit{10'000};
  std::shared_ptr<service::TlsContext> tls{};  // for a leader over HTTPS; nullptr: asks no such leader
};

/// Makes and reads the header with the address of a request's first sender. Only managers with this signing key can
/// seal it.
class Forwarder {
 public:
  explicit Forwarder(const SigningKey& key);
  /// Returns the header's text for a request that came from `head.remote_address`.
  [[nodiscard]] std::string header_for(const service::HttpHead& head) const;
  /// Returns the address in `head.passed_on`; nullopt: no manager with this key has passed the request on.
  [[nodiscard]] std::optional<std::string> first_address(const service::HttpHead& head) const;

 private:
  [[nodiscard]] std::string seal_of(const std::string& address, const service::HttpHead& head) const;
  const Digest key_;
};

/// Any thread may call it.
class Passing {
 public:
  Passing(PassingSettings settings, Forwarder forwarder);
  ~Passing();
  /// Returns the leader's answer. `read`: strangers may send the request. nullopt: the leader is not reached, too many
  /// requests are under way, or cancel() was called meanwhile. Then the leader may or may not have done the request.
  [[nodiscard]] std::optional<service::HttpReply> pass(const std::string& leader, const service::HttpHead& head,
                                                       const std::string& body, bool read);
  /// Gives up the requests under way, because the manager that gets them does not lead any more.
  void cancel() noexcept;

 private:
  [[nodiscard]] std::shared_ptr<service::HttpClient> take(bool read);
  void complain(const service::HttpHead& head, const Error& error);
  void give_back(const std::shared_ptr<service::HttpClient>& client, bool read, bool usable);

  const PassingSettings settings_;
  const Forwarder forwarder_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::shared_ptr<service::HttpClient>> idle_, busy_;
  std::size_t reads_ = 0;    // number of reads that busy clients run
  bool complained_ = false;  // the log has a complaint about this leader
};

}  // namespace tributary::manager
