#pragma once
// The choice of the leader in etcd.
#include <memory>
#include <string>

#include "tree-manager/store/election.h"
#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {

inline constexpr std::string_view kLeaderKey = "leader";
inline constexpr std::string_view kFenceBaseKey = "fence_base";

/// One thread calls it, except for cancel().
class EtcdElection final : public Election {
 public:
  /// `url`: the URL of this manager for other managers. Each candidate needs a `name` that no candidate had before.
  [[nodiscard]] static Result<std::unique_ptr<EtcdElection>> create(const EtcdSettings& settings,
                                                                    const std::string& url, const std::string& name,
                                                                    std::chrono::milliseconds call_limit);
  /// Changes the URL at which other managers reach this manager. Call it before the first stand().
  void reach_at(const std::string& url);
  [[nodiscard]] Result<LeaseId> make_lease(std::chrono::milliseconds life) override;
  [[nodiscard]] Result<std::optional<Term>> stand(LeaseId lease) override;
  [[nodiscard]] Result<bool> renew(LeaseId lease) override;
  void resign(LeaseId lease) override;
  [[nodiscard]] Result<std::optional<LeaderSeen>> look() override;
  /// Ends the call in progress, and all later calls. Any thread may call it.
  void cancel() noexcept { client_->cancel(); }

 private:
  EtcdElection(std::unique_ptr<EtcdClient> client, std::string name, std::chrono::milliseconds call_limit)
      : client_(std::move(client)), name_(std::move(name)), call_limit_(call_limit) {}
  [[nodiscard]] Result<Term> term_of(LeaseId lease, const nlohmann::json& leader, const nlohmann::json& base) const;

  std::unique_ptr<EtcdClient> client_;
  const std::string name_;
  std::string candidate_;  // value of the leader's key, as JSON
  const std::chrono::milliseconds call_limit_;
};

}  // namespace tributary::manager
