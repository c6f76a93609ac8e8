#include "element.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <optional>

#include "numerics.h"

namespace tributary::torch {
namespace {

std::optional<tributary_dtype> reducible(at::ScalarType type) {
  switch (type) {
    case at::kChar:
      return TRIBUTARY_INT8;
    case at::kByte:
    case at::kBool:
      return TRIBUTARY_UINT8;
    case at::kShort:
      return TRIBUTARY_INT16;
    case at::kUInt16:
      return TRIBUTARY_UINT16;
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
    case c10d::ReduceOp::BAND:
      return TRIBUTARY_BAND;
    case c10d::ReduceOp::BOR:
      return TRIBUTARY_BOR;
    case c10d::ReduceOp::BXOR:
      return TRIBUTARY_BXOR;
    default:
      TORCH_CHECK(false, "tributary: ", what, " knows SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR and PREMUL_SUM");
  }
}

tributary_op boolean_operation(tributary_op op, const char* what) {
  TORCH_CHECK(op != TRIBUTARY_AVG, "tributary: ", what,
              " of torch.bool has no average; convert the tensor to a number type first");
  return op == TRIBUTARY_SUM ? TRIBUTARY_MAX : op == TRIBUTARY_PROD ? TRIBUTARY_MIN : op;
}

bool is_bitwise(tributary_op op) {
  return op == TRIBUTARY_BAND || op == TRIBUTARY_BOR || op == TRIBUTARY_BXOR;
}

at::Tensor factor_of(const c10d::ReduceOp& op) {
  if (op.op_ != c10d::ReduceOp::PREMUL_SUM) return {};
  const auto* supplement = dynamic_cast<const c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(supplement != nullptr,
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
    : dtype_(TRIBUTARY_UINT8), op_(operation_of(op.op_, what)), numerics_(numerics_of_calls()), factor_(factor_of(op)) {
  at::ScalarType type = example.scalar_type();
  TORCH_CHECK(!is_bitwise(op_) || at::isIntegralType(type, /*includeBool=*/true), "tributary: ", what, " of ",
              type_name(type), " cannot be bitwise; bitwise operations take integers and torch.bool");
  if (at::isComplexType(type)) {
    TORCH_CHECK(op_ == TRIBUTARY_SUM || op_ == TRIBUTARY_AVG, "tributary: ", what,
                " of complex tensors can only be a sum or an average");
    type = c10::toRealValueType(type);
  }
  const auto known = reducible(type);
  TORCH_CHECK(known.has_value(), "tributary: ", what, " of ", type_name(example.scalar_type()),
              " is not possible; it reduces integers of 8 to 64 bits, float16, bfloat16, float32, float64 and bool");
  dtype_ = *known;
  if (type == at::kBool) op_ = boolean_operation(op_, what);
}

at::Tensor Reduction::view(const at::Tensor& tensor) const {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

at::Tensor Reduction::source(const at::Tensor& tensor) const {
  const at::Tensor data = view(tensor);
  return factor_.defined() ? data.mul(factor_.to(data.device(), data.scalar_type())) : data;
}

at::Tensor Reduction::target(Staging& staging, const at::Tensor& tensor, bool apart) const {
  return apart ? staging.write_apart(view(tensor)) : staging.write(view(tensor));
}

at::Tensor Reduction::combine(const at::Tensor& a, const at::Tensor& b) const {
  switch (op_) {
    case TRIBUTARY_MIN:
      return at::minimum(a, b);
    case TRIBUTARY_MAX:
      return at::maximum(a, b);
    case TRIBUTARY_PROD:
      return a.mul(b);
    case TRIBUTARY_BAND:
      return a.bitwise_and(b);
    case TRIBUTARY_BOR:
      return a.bitwise_or(b);
    case TRIBUTARY_BXOR:
      return a.bitwise_xor(b);
    default:
      return a.add(b);
  }
}

}  // namespace tributary::torch
