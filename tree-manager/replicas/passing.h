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
#include "tree-manager/replicas/live_key.h"
#include "tree-manager/service/clock.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::manager {

struct PassingSettings {
  std::size_t requests_max = 8;  // most requests under way; at most half of them are reads, which need no token
  std::chrono::milliseconds connect_limit{1000};
  std::chrono::milliseconds request_limit{10'000};
  std::shared_ptr<service::TlsContext> tls{};  // for a leader over HTTPS; nullptr: asks no such leader
};

/// The first sender of a request that a manager has passed on.
struct FirstSender {
  std::string address;
  std::shared_ptr<const service::Certificate> certificate{};  // it proved the request there; null: none did
  std::string body_seal{};                                    // the seal of the request's body, in hexadecimal
};

/// Makes and reads the header that says who first sent a request. Only managers with this signing key can seal it. A
/// certificate is stated only for one request and its body, and counts for half a minute.
class Forwarder {
 public:
  /// Key and clock must outlive this object.
  Forwarder(const LiveKey& key, const Clock& clock) : key_(key), clock_(clock) {}
  /// Returns the header's text for a request that came from `head.remote_address`. nullopt: its certificate has too
  /// many names to be stated.
  [[nodiscard]] std::optional<std::string> header_for(const service::HttpHead& head, const std::string& body) const;
  /// Reads `head.passed_on`; nullopt: no manager with this key has passed this request on just now.
  [[nodiscard]] std::optional<FirstSender> first_sender(const service::HttpHead& head) const;
  /// Returns whether this is the body of the request for which the certificate was stated.
  [[nodiscard]] bool is_body_of(const FirstSender& sender, const std::string& body) const;

 private:
  [[nodiscard]] std::string seal(std::string_view text) const;
  [[nodiscard]] std::string seal_of(const std::string& words, const service::HttpHead& head) const;
  const LiveKey& key_;
  const Clock& clock_;
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
