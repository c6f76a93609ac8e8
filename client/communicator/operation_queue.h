#pragma once
// The collective calls of one rank in their order. The queue decides which operations may start, notes which have
// ended, and keeps the parts of operations that a lost tree did not finish.
//
// Rules of order:
//   - operations start in the order of their calls;
//   - an operation between the ranks (without a tree, or with nothing to reduce) starts when every earlier operation
//     has ended on this rank, and runs alone;
//   - in-network operations run together, after every earlier fallback operation has ended on this rank; operations by
//     hosts follow the same rule;
//   - the ranks' shares of in-network operations run one by one, in the order of calls, on connections of their own.
// By these rules both ends of a channel between two ranks agree on the order of its frames, whenever a tree is lost.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "client/collectives/fallback/runner.h"
#include "client/operation/operation.h"

namespace tributary::client {

/// The path of one operation; every rank gets the same.
struct Route {
  Operation::State way = Operation::State::fallback;  // in_network, by_hosts or fallback
  std::optional<Cut> cut{};                           // set if trees carry the first part and the ranks the rest
  // The algorithm between the ranks, if the policy of some trees leaves the whole operation to them.
  std::optional<schedule::Algorithm> algorithm{};
};

/// The paths that an operation may take, as the queue sees them.
class OperationWays {
 public:
  virtual ~OperationWays() = default;
  /// Returns whether operations may begin: all ranks are ready, and no agreement on trees is under way.
  [[nodiscard]] virtual bool may_begin() const = 0;
  [[nodiscard]] virtual Route route_of(const Operation& operation) const = 0;
  /// Called each time before the queue checks whether `operation` may start.
  virtual void settle_memory(Operation& operation) = 0;
  /// Starts the operation on this path, which its state names, too. The operation may end before begin() returns.
  virtual void begin(Operation& operation, const Route& route) = 0;
  /// Runs the ranks' share of a split operation, then calls share_ended().
  virtual void run_share(Operation& operation) = 0;
  [[nodiscard]] virtual bool shares_busy() const = 0;
  /// Runs the pieces that a lost tree did not finish, between the ranks, then calls fallback_ended().
  virtual void run_remainder(Operation& operation, std::span<const Piece> pieces) = 0;
  [[nodiscard]] virtual bool fallback_busy() const = 0;
  /// Counts an operation that has ended on path `way`; its caller is not told yet.
  virtual void account(const Operation& operation, Operation::State way, bool success) = 0;
  /// Called after an operation has ended and its caller was told.
  virtual void after_end() = 0;
};

class OperationQueue {
 public:
  /// `rank`: the rank that owns the operations; the queue copies this rank's own part of some collectives.
  OperationQueue(OperationWays& ways, std::uint32_t rank) : ways_(ways), rank_(rank) {}

  /// Returns the number of a new call, in the order of calls. A call gets a number even if it is too late to be queued.
  [[nodiscard]] std::uint64_t take_number() noexcept { return next_++; }
  /// Queues the operation with the last number, and starts the operations that may start.
  void add(std::unique_ptr<Operation> operation);
  /// Starts the operations that may start.
  void advance();
  /// Ends `operation`: tells its caller, and starts the operations that waited for it. Afterwards it may be destroyed.
  void finish(Operation& operation, const Status& status);

  /// Takes `operation` from a lost tree. After a call of run_remainders(), its pieces `rest` run between the ranks, in
  /// the order of the operations; `rest` may be empty.
  void leave_tree(Operation& operation, std::vector<Piece> rest);
  void run_remainders();
  /// Notes the end of `operation`, which ran between the ranks as a whole or with its remaining pieces.
  void fallback_ended(Operation& operation);
  /// Notes that the trees' part of `operation` has ended; this part may be the whole operation.
  void trees_part_ended(Operation& operation) { part_ended(operation); }
  /// Runs the ranks' shares of operations that have started, in order, up to the first whose input has not come.
  void run_shares();
  void share_ended(Operation& operation);

  using Ends = std::vector<std::pair<Operation::Done, Status>>;
  /// Ends all operations and returns their callbacks and the status of each, for the caller to call. `text_of`
  /// describes an operation. This object keeps the operations until its own end: channels may still use their memory.
  [[nodiscard]] Ends fail_all(const Error& error, const std::function<std::string(const Operation&)>& text_of);

  [[nodiscard]] bool empty() const noexcept { return operations_.empty(); }
  /// Returns the operation with this number; nullptr if it was not called yet, or has ended and left the queue.
  [[nodiscard]] Operation* find(std::uint64_t number) const;
  /// Returns the same as find(), but nullptr until the operation has started.
  [[nodiscard]] Operation* started(std::uint64_t number) const;
  /// Returns the first operation that has not ended; nullptr if all have ended.
  [[nodiscard]] Operation* first_unfinished() const;
  /// Returns the operations in their order. Operations that have ended leave the queue at the front.
  [[nodiscard]] const std::deque<std::unique_ptr<Operation>>& all() const noexcept { return operations_; }
  /// Returns the number below which all operations have ended.
  [[nodiscard]] std::uint64_t first_number() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t next_to_start() const noexcept { return next_to_start_; }
  /// Returns the number of the next call.
  [[nodiscard]] std::uint64_t next_number() const noexcept { return next_; }
  /// Returns the call with this number, also of an operation that has ended; nullptr if the call is too long ago, or
  /// was not made yet.
  [[nodiscard]] const Signature* recent(std::uint64_t number) const noexcept;
  /// Returns whether the queue copies this rank's own part when the operation starts: the tree does not return it.
  [[nodiscard]] bool copies_own_part(const Operation& operation) const noexcept;

  /// Notes that a part of an operation has arrived.
  void touch(transport::TimePoint now) noexcept { progress_at_ = std::max(progress_at_, now); }
  void touch_shares(transport::TimePoint now) noexcept { shares_progress_at_ = std::max(shares_progress_at_, now); }
  [[nodiscard]] transport::TimePoint progress_at() const noexcept {
    return std::max(progress_at_, shares_progress_at_);
  }
  /// Returns the time of the last progress of the part for which `operation` waits. Each part has its own time: shares
  /// of later operations go on while trees stand still, and trees go on while a share stands still.
  [[nodiscard]] transport::TimePoint progress_at(const Operation& operation) const noexcept {
    if (operation.in_trees()) return progress_at_;
    if (operation.state == Operation::State::in_network) return shares_progress_at_;
    return progress_at();
  }

 private:
  [[nodiscard]] bool may_start(const Operation& operation, Operation::State way) const;
  void start(Operation& operation, const Route& route);
  void part_ended(Operation& operation);
  void forget_finished();
  void check() const;

  OperationWays& ways_;
  const std::uint32_t rank_;
  std::deque<std::unique_ptr<Operation>> operations_;
  std::deque<std::unique_ptr<Operation>> graveyard_;  // operations of a failed communicator
  std::uint64_t first_ = 0;                           // number of operations_.front()
  std::uint64_t next_ = 0;
  std::uint64_t next_to_start_ = 0;
  bool advancing_ = false;
  bool running_remainders_ = false;
  std::uint32_t fallback_unfinished_ = 0;  // unfinished operations that started between the ranks
  std::uint32_t unfinished_ = 0;           // unfinished operations that started on any path
  struct Remainder {
    Operation* operation;
    std::vector<Piece> pieces;
  };
  std::deque<Remainder> remainders_;
  std::deque<Operation*> shares_;        // shares that have not begun
  std::array<Signature, 256> recent_{};  // by number: the last calls
  transport::TimePoint progress_at_{};
  transport::TimePoint shares_progress_at_{};
};

}  // namespace tributary::client
