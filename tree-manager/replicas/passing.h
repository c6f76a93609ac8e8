#pragma once
// Passes requests on to the manager that leads. A bounded number is under way at a time, so that a leader that hangs
// does not take all threads of this one.
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
  std::size_t requests_max = 8;  // under way at a time; half of them may be reads, which need no token
  std::chrono::milliseconds connect_limit{1000};
  std::chrono::milliseconds request_limit{10'000};
};

/// Names the address from which a request came first, under a seal that only managers with this signing key make.
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

/// Any thread.
class Passing {
 public:
  Passing(PassingSettings settings, Forwarder forwarder);
  ~Passing();
  /// Returns the leader's answer. `read`: strangers may ask this. nullopt: the leader cannot be reached, too many
  /// requests are under way, or cancel() was called meanwhile. Then nobody knows whether it has done what was asked.
  [[nodiscard]] std::optional<service::HttpReply> pass(const std::string& leader, const service::HttpHead& head,
                                                       const std::string& body, bool read);
  /// Gives up the requests that are under way: the manager to which they go leads no more.
  void cancel() noexcept;

 private:
  [[nodiscard]] std::shared_ptr<service::HttpClient> take(bool read);
  void complain(const service::HttpHead& head, const Error& error);
  void give_back(const std::shared_ptr<service::HttpClient>& client, bool read, bool usable);

  const PassingSettings settings_;
  const Forwarder forwarder_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<service::HttpClient>> idle_, busy_;
  std::size_t reads_ = 0;    // number of reads that busy clients run
  bool complained_ = false;  // about this leader, in the log
};

}  // namespace tributary::manager
