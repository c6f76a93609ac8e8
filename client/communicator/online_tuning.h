#pragma once
// Rank 0's corrections of the policy while trees are in use: what operations took goes to tuning::Adaptation, and its
// amendments to the coordinator.
#include <functional>
#include <optional>
#include <string>

#include "client/communicator/whole.h"
#include "client/operation/operation.h"
#include "client/tuning/adaptation.h"

namespace tributary::client {

class OnlineTuning {
 public:
  /// `amend` asks all ranks to agree on an amendment; false: not now.
  OnlineTuning(Shared& shared, std::function<bool(std::string)> amend) : shared_(shared), amend_(std::move(amend)) {}

  /// Trees are in use from now on, with this policy by these figures.
  void begin(const tuning::Figures& figures, const tuning::Policy& policy);
  /// The trees are lost.
  void end() { adaptation_.reset(); }
  /// An operation has ended well after it took this path.
  void ended(const Operation& operation, Operation::State way);
  /// The ranks take `amendment`, or nothing, from operation `first` on.
  void agreed(const std::optional<tuning::Amendment>& amendment, std::uint64_t first);

 private:
  [[nodiscard]] tuning::MeasuredOperation measured(const Operation& operation, Operation::State way);

  Shared& shared_;
  const std::function<bool(std::string)> amend_;
  std::optional<tuning::Adaptation> adaptation_;
  transport::TimePoint last_end_{};        // of the operations that have ended so far
  transport::TimePoint last_trees_end_{};  // of their trees' parts
};

}  // namespace tributary::client
