#pragma once
// Rank 0's corrections of the policy while trees are in use. The times of operations go to tuning::Adaptation, and its
// amendments go to the coordinator.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/communicator/whole.h"
#include "client/operation/operation.h"
#include "client/tuning/adaptation.h"

namespace tributary::client {

/// The ends of the operations before. Operations overlap, so a time starts there at the earliest: only from then on an
/// operation has the links to itself.
struct LastEnds {
  transport::TimePoint operation{};
  transport::TimePoint trees{};  // end of the last part that trees carried
};
/// Returns the times of an operation that ends now, without its count of other operations. The copies from and to a GPU
/// count: between the ranks they come before the operation's begin and after its end.
[[nodiscard]] tuning::MeasuredOperation times_of(const Operation& operation, Operation::State way, std::uint32_t nranks,
                                                 const LastEnds& last, transport::TimePoint now);

class OnlineTuning {
 public:
  /// `amend` asks all ranks to agree on an amendment; it returns false if they cannot agree on one now.
  OnlineTuning(Shared& shared, std::function<bool(std::string)> amend) : shared_(shared), amend_(std::move(amend)) {}

  /// Notes that trees are in use from now on, with this policy, which was made from these figures.
  void begin(const tuning::Figures& figures, const tuning::Policy& policy);
  /// Notes that the model has other choices for these trees from now on. Each class of sizes in use begins again with
  /// the model's choice for it; the ranks change to this choice by amendments.
  void begin_again(const tuning::Figures& figures, tuning::Policy policy) {
    if (adaptation_) adaptation_->begin_again(figures, std::move(policy));
  }
  /// Notes that the trees are lost.
  void end() { adaptation_.reset(); }
  /// Notes that an operation has begun.
  void begun() noexcept { ++under_way_; }
  /// Notes that an operation has ended, perhaps with an error.
  void left() noexcept {
    if (under_way_ > 0) --under_way_;  // an operation may end before it begins
  }
  /// Notes that an operation on this path has ended without an error.
  void ended(const Operation& operation, Operation::State way);
  /// Notes that the ranks use `amendment` (if there is one) from operation `first` on.
  void agreed(const std::optional<tuning::Amendment>& amendment, std::uint64_t first);

 private:
  void note_copies(const Operation& operation, Operation::State way);
  [[nodiscard]] bool has_its_price(const Operation& operation) const noexcept;
  [[nodiscard]] tuning::MeasuredOperation measured(const Operation& operation, Operation::State way);

  Shared& shared_;
  const std::function<bool(std::string)> amend_;
  std::optional<tuning::Adaptation> adaptation_;
  std::uint64_t under_way_ = 0;  // number of operations
  LastEnds last_;
  transport::TimePoint copies_noted_at_{};  // when the model last got another rate of copies
};

}  // namespace tributary::client
