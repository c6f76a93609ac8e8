#pragma once
// Chooses the way that each operation goes, and starts it there.
//
// The way is a pure function of the operation, of the policy in rank 0's welcome, and of trees that all ranks use from
// the same operation on. So every rank chooses the same way for the same operation.
#include "client/communicator/division.h"
#include "client/communicator/host_path.h"
#include "client/communicator/online_tuning.h"
#include "client/communicator/operation_memory.h"
#include "client/communicator/operation_queue.h"
#include "client/communicator/rank_traffic.h"
#include "client/communicator/stall_watch.h"
#include "client/communicator/tree_life.h"

namespace tributary::client {

class OperationRoutes final : public OperationWays, public TreeUser, public ProgressText {
 public:
  struct Parts {
    OperationQueue& operations;
    TreeLife& trees;
    HostPath& hosts;
    RankTraffic& traffic;
    OperationMemory& memory;
    std::function<void()> ended;                       // called after an operation has ended and its caller knows
    std::function<bool()> shares_all_memory;           // whether all ranks are on one host and reduce in its memory
    std::function<bool(std::string amendment)> amend;  // on rank 0: asks all ranks to agree on it; false: not now
  };
  OperationRoutes(Shared& shared, Parts parts)
      : shared_(shared), parts_(std::move(parts)), online_tuning_(shared, parts_.amend) {}

  /// Sets the whole group's policy. Call it before the first operation.
  void use(tuning::Policy policy) { policy_ = std::move(policy); }
  [[nodiscard]] const tuning::Policy& policy() const noexcept { return policy_; }
  /// On rank 0, whose trees are in use now by a policy of these figures: begins to correct it.
  void tune_online(const tuning::Figures& figures);
  /// Rank 0 is about to amend the policy of the trees in use, or has done so.
  void on_amendment(const ControlMessage& message);
  /// Makes a new operation's memory ready.
  void prepare_memory(Operation& operation);

  [[nodiscard]] Operation::State way_of(const Operation& operation) const override;
  void report_path(const std::string& reason, PathEvent event) override;
  [[nodiscard]] std::string waits_for(const Operation& operation) const override;
  [[nodiscard]] std::uint64_t steps(const Operation& operation) const override;
  [[nodiscard]] std::string troubles() const override { return parts_.traffic.troubles(); }

 private:
  /// Returns nothing, unless trees in use carry the operation, or lost trees would have carried it.
  [[nodiscard]] std::optional<Division> division_of(const Operation& operation) const;
  [[nodiscard]] bool may_begin() const override;
  void settle_memory(Operation& operation) override;
  void begin(Operation& operation) override;
  [[nodiscard]] std::optional<Cut> cut_of(const Operation& operation) const override;
  void run_share(Operation& operation) override;
  [[nodiscard]] bool shares_busy() const override { return parts_.traffic.shares_busy(); }
  void run_remainder(Operation& operation, std::vector<Piece> pieces) override;
  [[nodiscard]] bool fallback_busy() const override { return parts_.traffic.busy(); }
  void account(const Operation& operation, Operation::State way, bool success) override;
  void after_end() override { parts_.ended(); }
  void leave_direct(Operation& operation) override { parts_.memory.leave_direct(operation, {}); }

  Shared& shared_;
  const Parts parts_;
  tuning::Policy policy_;
  OnlineTuning online_tuning_;
};

}  // namespace tributary::client
