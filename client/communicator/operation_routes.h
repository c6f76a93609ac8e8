#pragma once
// Chooses the path of each operation, and starts the operation on it.
//
// The path is a pure function of the operation, of the policy in rank 0's welcome, and of trees that all ranks use from
// the same operation on. So every rank chooses the same path for the same operation.
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
    std::function<void()> ended;                       // called after an operation has ended and its caller was told
    std::function<bool()> shares_all_memory;           // whether all ranks are on one host and reduce in its memory
    std::function<bool(std::string amendment)> amend;  // on rank 0: asks all ranks to agree; false: they cannot now
  };
  OperationRoutes(Shared& shared, Parts parts)
      : shared_(shared), parts_(std::move(parts)), online_tuning_(shared, parts_.amend) {}

  /// Sets the whole group's policy. Call it before the first operation.
  void use(tuning::Policy policy) { policy_ = std::move(policy); }
  [[nodiscard]] const tuning::Policy& policy() const noexcept { return policy_; }
  /// On rank 0, when trees are in use: begins to correct their policy, which was made from these figures.
  void tune_online(const tuning::Figures& figures);
  /// On rank 0: takes the model's policy for the trees in use, whose rates have changed. The ranks keep their present
  /// policy until they have agreed on amendments.
  void tune_again(const tuning::Figures& figures, tuning::Policy policy) {
    online_tuning_.begin_again(figures, std::move(policy));
  }
  /// Takes rank 0's message that it will amend, or has amended, the policy of the trees in use.
  void on_amendment(const ControlMessage& message);
  /// Prepares the memory of a new operation.
  void prepare_memory(Operation& operation);

  void report_path(const std::string& reason, PathEvent event) override;
  [[nodiscard]] std::string waits_for(const Operation& operation) const override;
  [[nodiscard]] std::uint64_t steps(const Operation& operation) const override;
  [[nodiscard]] std::string troubles() const override { return parts_.traffic.troubles(); }

 private:
  /// Returns the division if trees in use carry the operation, or if lost trees would have carried it; else nullopt.
  [[nodiscard]] std::optional<Division> division_of(const Operation& operation) const;
  /// Returns why no trees carry an operation that must go by trees.
  [[nodiscard]] std::string why_not_by_trees(const Operation& operation) const;
  [[nodiscard]] bool may_begin() const override;
  [[nodiscard]] Route route_of(const Operation& operation) const override;
  void settle_memory(Operation& operation) override;
  void begin(Operation& operation, const Route& route) override;
  void run_share(Operation& operation) override;
  [[nodiscard]] bool shares_busy() const override { return parts_.traffic.shares_busy(); }
  void run_remainder(Operation& operation, std::span<const Piece> pieces) override;
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
