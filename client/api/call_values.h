#pragma once
// The values of one call: counts of its input, before any byte leaves this rank, and of its result.
#include <memory>
#include <optional>
#include <string>

#include "client/api/arguments.h"
#include "client/operation/flight_record.h"
#include "client/operation/value_numbers.h"

namespace tributary::client {

/// One thread at a time uses it.
class CallValues {
 public:
  /// Counts the input. `call` has buffers in host memory; `record` gets the counts for metrics.
  CallValues(const CheckedCall& call, std::uint32_t nranks, std::shared_ptr<FlightRecord> record);

  /// Counts the result. Call it once, when the operation has succeeded, before its caller knows.
  void see_result() noexcept;
  [[nodiscard]] const ValueNumbers& numbers() const noexcept { return numbers_; }
  /// Returns the bound of relative_error_bound() once the result is there.
  [[nodiscard]] std::optional<double> error_bound() const noexcept;
  /// Returns a sentence with the first NaN of the input; empty if it has none.
  [[nodiscard]] std::string nan_in_input(std::uint32_t rank) const;

 private:
  const CheckedCall call_;
  const std::uint32_t nranks_;
  const std::shared_ptr<FlightRecord> record_;
  ValueNumbers numbers_;
  bool has_result_ = false;
};

/// Returns a bound of the relative rounding error of each result that is finite, and not below the smallest normal
/// number. No value: the operation has no bound that holds for all inputs.
[[nodiscard]] std::optional<double> relative_error_bound(const Signature& signature, std::uint32_t nranks) noexcept;

}  // namespace tributary::client
