#pragma once
// The way from rank 0 of a simulated group to the manager: each request takes a millisecond, and waits if the manager
// stands still.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/recovery/group_service.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::simulation {

class Cluster;

class SimGroupService final : public client::GroupService {
 public:
  SimGroupService(Cluster& cluster, std::uint32_t nranks)
      : cluster_(cluster), nranks_(nranks), alive_(std::make_shared<bool>(true)) {}
  SimGroupService(const SimGroupService&) = delete;
  SimGroupService& operator=(const SimGroupService&) = delete;
  ~SimGroupService() override { *alive_ = false; }

  void request(const client::GroupRequest& request, DescriptorAnswer answer) override;
  void rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed, bool in_use,
               DescriptorAnswer answer) override;
  void places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
              PageAnswer answer) override;
  void renew(std::uint64_t group, const client::GroupTraffic& traffic,
             std::function<void(Result<client::GroupLease>)> answer) override;
  void release(std::uint64_t group, const std::vector<std::string>& lost) override;

 private:
  void later(std::function<void()> call);
  /// Checks that the manager can be asked, and knows the group.
  [[nodiscard]] Status check(std::uint64_t group);
  void respond(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed,
               const DescriptorAnswer& answer);

  Cluster& cluster_;
  const std::uint32_t nranks_;
  std::uint32_t lanes_ = 1;
  std::uint32_t epoch_ = 0;  // epoch of the last trees
  std::uint64_t renewals_ = 0;
  GroupDescriptor whole_;  // the descriptor of a group that gets its places by pages
  std::shared_ptr<bool> alive_;
};

}  // namespace tributary::simulation
