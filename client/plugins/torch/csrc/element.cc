#include "element.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/view_as_real.h>
#include <c10/util/Exception.h>

#include <optional>

namespace tributary_torch {
namespace {

std::optional<tributary_dtype> reducible(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return TRIBUTARY_INT8;
    case at::kByte:
    case at::kBool:
      return TRIBUTARY_UINT8;
    case at::kInt:
      return TRIBUTARY_INT32;
    case at::kUInt32:
      return TRIBUTARY_UINT32;
    case at::kLong:
      return TRIBUTARY_INT64;
    case at::kUInt64:
      return TRIBUTARY_UINT64;
    case at::kHalf:
      return TRIBUTARY_FLOAT16;
    case at::kBFloat16:
      return TRIBUTARY_BFLOAT16;
    case at::kFloat:
      return TRIBUTARY_FLOAT32;
    case at::kDouble:
      return TRIBUTARY_FLOAT64;
    case at::kFloat8_e4m3fn:
      return TRIBUTARY_FLOAT8_E4M3;
    case at::kFloat8_e5m2:
      return TRIBUTARY_FLOAT8_E5M2;
    default:
      return std::nullopt;
  }
}

tributary_op operation_of(c10d::ReduceOp::RedOpType op, const char* what) {
  switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::PREMUL_SUM:
      return TRIBUTARY_SUM;
    case c10d::ReduceOp::AVG:
      return TRIBUTARY_AVG;
    case c10d::ReduceOp::PRODUCT:
      return TRIBUTARY_PROD;
    case c10d::ReduceOp::MIN:
      return TRIBUTARY_MIN;
    case c10d::ReduceOp::MAX:
      return TRIBUTARY_MAX;
    default:
      TORCH_CHECK_VALUE(
          false, "tributary: ", what,
          " knows SUM, AVG, PRODUCT, MIN, MAX and PREMUL_SUM; for the bitwise operations use the gloo backend");
  }
}

tributary_op boolean_operation(tributary_op op, const char* what) {
  TORCH_CHECK_VALUE(op != TRIBUTARY_AVG, "tributary: ", what,
                    " of torch.bool has no average; convert the tensor to a number type first");
  return op == TRIBUTARY_SUM ? TRIBUTARY_MAX : op == TRIBUTARY_PROD ? TRIBUTARY_MIN : op;
}

at::Tensor factor_of(const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return {};
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK_VALUE(
      supplement != nullptr,
      "tributary: PREMUL_SUM comes without its factor; make it with torch.distributed._make_nccl_premul_sum");
  return supplement->tensor_factor.defined() ? supplement->tensor_factor
                                             : at::scalar_tensor(supplement->double_factor, at::kDouble);
}

}  // namespace

std::string type_name(at::ScalarType type) {
  return std::string("torch.").append(c10::getDtypeNames(type).first);
}

Element::Element(const at::Tensor& tensor) {
  const auto known = reducible(tensor.scalar_type());
  dtype = known.value_or(TRIBUTARY_UINT8);
  per_item = known ? 1 : tensor.itemsize();
}

Reduction::Reduction(const at::Tensor& example, const c10d::ReduceOp& op, const char* what)
    : dtype_(TRIBUTARY_UINT8), op_(operation_of(op.op_, what)), factor_(factor_of(op)) {
  at::ScalarType type = example.scalar_type();
  if (at::isComplexType(type)) {
    TORCH_CHECK_VALUE(op_ == TRIBUTARY_SUM || op_ == TRIBUTARY_AVG, "tributary: ", what,
                      " of complex tensors can be a sum or an average only");
    type = c10::toRealValueType(type);
  }
  const auto known = reducible(type);
  TORCH_CHECK_TYPE(
      known.has_value(), "tributary: ", what, " of ", type_name(example.scalar_type()),
      " is not possible; it reduces 8-, 32- and 64-bit integers, float16, bfloat16, float32, float64 and bool");
  dtype_ = *known;
  if (type == at::kBool) op_ = boolean_operation(op_, what);
}

at::Tensor Reduction::view(const at::Tensor& tensor) const {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

at::Tensor Reduction::source(const at::Tensor& tensor) const {
  const at::Tensor data = view(tensor);
  return scales() ? data.mul(factor_.to(data.device(), data.scalar_type())) : data;
}

}  // namespace tributary_torch
