#pragma once
// The trees of one rank: they form, are used, and are lost; the operations on lost trees go on between the ranks.
//
//   none --commit--> in_use --freeze--> frozen --recover--> repairing --all ranks have the same results--> none
//                       ^                                                   (the rest runs between the ranks)
//                       +-- commit: newer trees
//
// In every state the next trees may form: this rank joins them, and tells rank 0. Rank 0 proposes them once all ranks
// have joined; its commit says from which operation on the ranks use them. No operation starts between propose and
// commit, or between freeze and the end of the repair.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/in_network/lane_link.h"
#include "client/communicator/operation_queue.h"
#include "client/communicator/second_way_use.h"
#include "client/communicator/whole.h"
#include "client/control/link_secrets.h"
#include "client/recovery/repair.h"
#include "client/tuning/policy.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

/// The facts of one generation of trees that decide which operations it carries, and which part of them.
struct TreeTerms {
  std::uint64_t first_operation = kNever;  // kNever: no commit has come yet
  std::uint64_t end = kNever;              // set for lost trees: no rank has begun this operation or a later one
  std::uint32_t segment_bytes = 0;
  std::uint32_t lanes = 0;
  std::uint32_t cycle = 0;  // places in a cycle of the dealing (client/operation/dealing.h)
  bool one_level = false;   // one aggregator sums the inputs of all ranks
  struct PolicyFrom {
    std::uint64_t first_operation = 0;
    tuning::Policy policy;
  };
  std::vector<PolicyFrom> policies{};  // ascending; earlier operations use the welcome's policy

  /// Returns the bytes of a full segment of this call.
  [[nodiscard]] std::uint32_t segment_bytes_for(const Signature& signature) const noexcept {
    return segment_bytes_of(signature, segment_bytes, one_level);
  }
  /// Returns whether trees of these terms can carry the operation: a partial sum of an exact sum must fit in a segment.
  [[nodiscard]] bool can_carry(const Operation& operation) const noexcept {
    return segment_bytes_for(operation.signature) > 0;
  }
  /// Returns the policy of an operation; nullptr: the welcome's policy.
  [[nodiscard]] const tuning::Policy* policy_of(std::uint64_t operation) const noexcept;
  /// Changes the policy by `amendment` from operation `first` on; if these terms have no policy, it is `welcome`.
  /// `started`: all earlier operations have started, so no caller asks for their policy again.
  void amend(std::uint64_t first, const tuning::Amendment& amendment, const tuning::Policy& welcome,
             std::uint64_t started);
};

/// One generation of trees. Rank 0 counts generations over all groups.
struct Trees {
  std::uint32_t generation = 0;
  GroupDescriptor descriptor;
  std::vector<std::unique_ptr<LaneLink>> lanes;
  std::uint32_t ready = 0;  // number of lanes that are ready
  bool failed = false;
  TreeTerms terms;
  [[nodiscard]] std::vector<LaneLink*> links() const;
};

class TreeUser {
 public:
  virtual ~TreeUser() = default;
  /// Moves `operation` to host memory, because it leaves the tree.
  virtual void leave_direct(Operation& operation) = 0;
  /// Reports that operations take another path; `reason`: why they use no trees; empty if they use trees.
  virtual void report_path(const std::string& reason, PathEvent event) = 0;
};

class TreeLife final : private LaneUser {
 public:
  enum class State : std::uint8_t { none, in_use, frozen, repairing };

  TreeLife(Shared& shared, TreeUser& user, OperationQueue& operations, SecondWayUse& second_way)
      : shared_(shared),
        user_(user),
        operations_(operations),
        second_way_(second_way),
        secrets_(shared.settings.link_keys.get(), shared.settings.id.secret) {}

  /// Sets the mesh over which repairs go; called before rank 0's first message.
  void use(PeerMesh& mesh) noexcept { mesh_ = &mesh; }

  // Messages of rank 0.
  void on_descriptor(const ControlMessage& message);
  void on_propose(const ControlMessage& message);
  /// Uses the trees from message.operation on, or gives up the trees that were forming. Returns true if new trees are
  /// in use now.
  bool on_commit(const ControlMessage& message);
  /// Handles a message `amend`: tells rank 0 which operation is next, and starts no operation until `amended` comes.
  /// Handles a message `amended`: returns the amendment, which holds from message.operation on; none if the trees were
  /// lost meanwhile. `welcome`: the policy of trees without a policy of their own.
  std::optional<tuning::Amendment> on_amendment(const ControlMessage& message, const tuning::Policy& welcome);
  void on_freeze(const ControlMessage& message);
  void on_recover(const ControlMessage& message);

  /// Notes that input of operations has arrived in host memory.
  void input_arrived();
  void repair_received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload);
  void repair_sent();
  /// Checks whether the aggregators still answer.
  void look();
  void tick();
  /// Leaves the aggregators, because all ranks are done.
  void leave();
  /// Stops: from now on takes no result.
  void fail();

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] bool in_use() const noexcept { return state_ == State::in_use; }
  /// Returns true while no operation may start, because the ranks are about to change their trees or their policy.
  [[nodiscard]] bool holding() const noexcept {
    return proposed_ || amending_ || state_ == State::frozen || state_ == State::repairing;
  }
  /// Returns whether trees are in use that carry the operation: it is not earlier than their first operation.
  [[nodiscard]] bool serve(const Operation& operation) const noexcept {
    return in_use() && operation.number >= trees_->terms.first_operation && trees_->terms.can_carry(operation);
  }
  /// Returns the trees that are in use, frozen or under repair; else nullptr.
  [[nodiscard]] const Trees* trees() const noexcept { return trees_.get(); }
  /// Returns the terms of the trees in use, if they serve `operation`, or of lost trees on which some rank has begun
  /// it.
  [[nodiscard]] const TreeTerms* terms_for(const Operation& operation) const noexcept;
  /// Starts an operation on the trees in use: all its segments or, if it has a cut, the segments before the cut.
  void start(Operation& operation);
  /// Prepares the lanes for memory that the processor cannot reach. The error says why they cannot use it.
  [[nodiscard]] Status prepare(const DirectMemory& memory, const std::vector<std::span<const std::byte>>& ranges);
  /// Returns a text that names the first segment for which `operation` waits, such as "segment 3 (lane 0)".
  [[nodiscard]] std::string waits_for(const Operation& operation) const;

 private:
  [[nodiscard]] Status check_descriptor(const GroupDescriptor& descriptor) const;
  void form(std::uint32_t generation, GroupDescriptor descriptor, std::optional<tuning::Policy> policy);
  void pump();
  void take_over(std::unique_ptr<Trees> trees, std::uint64_t first_operation);
  void bring_down();
  [[nodiscard]] bool brought_down() const;
  void repaired();
  void leave_trees();
  void discard(std::unique_ptr<Trees> trees);

  Operation* started_operation(std::uint64_t number) override { return operations_.started(number); }
  std::uint64_t first_operation_kept() const override { return operations_.first_number(); }
  void lane_ready(std::uint32_t lane) override;
  void lane_failed(std::uint32_t lane, const std::string& reason) override;
  transport::TimePoint lane_progress(const Operation& operation) override {
    const transport::TimePoint now = shared_.transport.now();
    operations_.touch(now);
    shared_.part_came(operation.number, now);
    return now;
  }
  void lane_fault(const MismatchReport& report) override;
  void segments_finished(Operation& operation) override;

  Shared& shared_;
  TreeUser& user_;
  OperationQueue& operations_;
  SecondWayUse& second_way_;
  LinkSecrets secrets_;
  PeerMesh* mesh_ = nullptr;
  State state_ = State::none;
  bool proposed_ = false;  // `propose` has come, and no `commit` since then
  bool amending_ = false;  // `amend` has come, and no `amended` since then
  std::unique_ptr<Trees> forming_;
  std::unique_ptr<Trees> trees_;
  std::unique_ptr<Repair> repair_;
  std::vector<TreeTerms> lost_;  // terms of lost trees, until this rank has begun all operations that other
                                 // ranks began on them
  std::optional<ControlMessage> waiting_propose_;  // handled when the repair is done
  std::optional<ControlMessage> waiting_recover_;  // handled when retained data have come to host memory
  std::shared_ptr<std::atomic<std::size_t>> coming_down_ = std::make_shared<std::atomic<std::size_t>>(0);  // copies
  transport::TimePoint lost_at_{};
  std::vector<std::unique_ptr<Trees>> discarded_;  // trees whose channels may be in a callback until the next tick
  std::vector<std::unique_ptr<Repair>> discarded_repairs_;
};

[[nodiscard]] std::string_view to_string(TreeLife::State state) noexcept;

}  // namespace tributary::client
