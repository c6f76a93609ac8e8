#include "client/api/call_values.h"

#include <limits>
#include <utility>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {
namespace {

ValueNumbers::Buffer counted(DType dtype, const std::byte* data, std::size_t bytes) noexcept {
  ValueNumbers::Buffer buffer{.elements = bytes / size_of(dtype)};
  kernels::count_values(dtype, data, buffer.elements, buffer.found);
  return buffer;
}

/// Returns half of the distance from 1 to the next value of the type: the relative error of one rounding to nearest.
double rounding_unit(DType dtype) noexcept {
  switch (dtype) {
    case DType::float64:
      return 0x1p-53;
    case DType::float32:
      return 0x1p-24;
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    case DType::float8_e4m3:
      return 0x1p-4;
    case DType::float8_e5m2:
      return 0x1p-3;
    default:
      return 0;
  }
}

}  // namespace

CallValues::CallValues(const CheckedCall& call, std::uint32_t nranks, std::shared_ptr<FlightRecord> record)
    : call_(call),
      nranks_(nranks),
      record_(std::move(record)),
      numbers_{.input = counted(call.signature.dtype, call.send, call.send_bytes), .result = {}} {
  if (record_) record_->saw_values({.input = numbers_.input, .result = {}});
}

void CallValues::see_result() noexcept {
  TRIBUTARY_ASSERT(!has_result_, "the result of {} is counted twice", to_string(call_.signature));
  has_result_ = true;
  numbers_.result = counted(call_.signature.dtype, call_.recv, call_.recv_bytes);
  if (record_) record_->saw_values({.input = {}, .result = numbers_.result});
}

std::optional<double> CallValues::error_bound() const noexcept {
  // The products of floats are rounded, too, and their sums may cancel.
  if (!has_result_ || (call_.multiplied && is_float(call_.signature.dtype))) return std::nullopt;
  return relative_error_bound(call_.signature, nranks_);
}

std::string CallValues::nan_in_input(std::uint32_t rank) const {
  const std::uint64_t nans = numbers_.input.found.nans;
  if (nans == 0) return {};
  const std::size_t first = kernels::first_nan(call_.signature.dtype, call_.send, numbers_.input.elements);
  return "the input of rank " + std::to_string(rank) + " to " + to_string(call_.signature) + " has " +
         std::to_string(nans) + " NaN, the first at element " + std::to_string(first) +
         " (TRIBUTARY_CHECK_VALUES=nan-fails)";
}

std::optional<double> relative_error_bound(const Signature& signature, std::uint32_t nranks) noexcept {
  const bool copies = !row_of(signature.collective).reduces || nranks == 1;
  const bool chooses = signature.op == ReduceOp::min || signature.op == ReduceOp::max;
  if (copies || chooses) return 0;
  if (is_exact(signature.op)) return rounding_unit(signature.dtype);
  if (!is_float(signature.dtype) && signature.op != ReduceOp::avg) return 0;  // a sum that wraps is not rounded
  return std::nullopt;
}

}  // namespace tributary::client
