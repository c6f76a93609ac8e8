#pragma once
// A REST interface without sockets over a cluster, with both secrets and a key of identity tokens.
#include <memory>
#include <string>

#include "tests/unit/manager/cluster_fixture.h"
#include "tree-manager/api/api.h"

namespace tributary::manager {

inline constexpr const char* kAggregatorToken = "aggregator-token-of-the-test";
inline constexpr const char* kJobToken = "job-token-of-the-test";

class ApiFixture : public ClusterFixture {
 protected:
  void SetUp() override {
    open();
    use({});
  }
  void use(ApiSettings settings) {
    settings.aggregator_token = kAggregatorToken;
    settings.job_token = kJobToken;
    settings.identity_keys = keys_;
    settings.events = settings_.events;
    settings.unix_seconds = [this] { return clock_.unix_seconds(); };
    api_ = std::make_unique<Api>(*cluster_, settings);
  }

  /// Makes the head of a request; the target may have a query.
  static HttpHead head_of(const std::string& method, const std::string& target, const std::string& token) {
    const auto question = target.find('?');
    return {.method = method,
            .path = target.substr(0, question),
            .query = question == std::string::npos ? "" : target.substr(question + 1),
            .authorization = token.empty() ? "" : "Bearer " + token,
            .remote_address = "192.0.2.7"};
  }

  const IdentityKeys keys_ = *IdentityKeys::parse("k " + std::string(64, '1'));
  std::unique_ptr<Api> api_;
};

}  // namespace tributary::manager
