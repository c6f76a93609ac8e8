#include "element.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <optional>

#include "bits.h"
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
    case c10d::ReduceOp::BXOR:
      return TRIBUTARY_SUM;
    case c10d::ReduceOp::AVG:
      return TRIBUTARY_AVG;
    case c10d::ReduceOp::PRODUCT:
      return TRIBUTARY_PROD;
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
      return TRIBUTARY_MIN;
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
      return TRIBUTARY_MAX;
    default:
      TORCH_CHECK(false, "tributary: ", what, " knows SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR and PREMUL_SUM");
  }
}

tributary_op boolean_operation(tributary_op op, const char* what) {
  TORCH_CHECK(op != TRIBUTARY_AVG, "tributary: ", what,
              " of torch.bool has no average; convert the tensor to a number type first");
  return op == TRIBUTARY_SUM ? TRIBUTARY_MAX : op == TRIBUTARY_PROD ? TRIBUTARY_MIN : op;
}

bool is_bitwise(c10d::ReduceOp::RedOpType op) {
  return op == c10d::ReduceOp::BAND || op == c10d::ReduceOp::BOR || op == c10d::ReduceOp::BXOR;
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
    : type_(example.scalar_type()),
      bitwise_(is_bitwise(op.op_)),
      dtype_(TRIBUTARY_UINT8),
      op_(operation_of(op.op_, what)),
      numerics_(numerics_of_calls()),
      factor_(factor_of(op)) {
  at::ScalarType type = type_;
  if (bitwise_) {
    TORCH_CHECK(at::isIntegralType(type, /*includeBool=*/true), "tributary: ", what, " of ", type_name(type),
                " cannot be bitwise; bitwise operations take integers and torch.bool");
    return;
  }
  if (at::isComplexType(type)) {
    TORCH_CHECK(op_ == TRIBUTARY_SUM || op_ == TRIBUTARY_AVG, "tributary: ", what,
                " of complex tensors can only be a sum or an average");
    type = c10::toRealValueType(type);
  }
  const auto known = reducible(type);
  TORCH_CHECK(known.has_value(), "tributary: ", what, " of ", type_name(example.scalar_type()),
              " is not possible; it reduces 8-, 32- and 64-bit integers, float16, bfloat16, float32, float64 and bool");
  dtype_ = *known;
  if (type == at::kBool) op_ = boolean_operation(op_, what);
}

at::Tensor Reduction::view(const at::Tensor& tensor) const {
  return tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor;
}

at::Tensor Reduction::source(const at::Tensor& tensor) const {
  if (bitwise_) return spread_bits(tensor);
  const at::Tensor data = view(tensor);
  return factor_.defined() ? data.mul(factor_.to(data.device(), data.scalar_type())) : data;
}

at::Tensor Reduction::target(Staging& staging, const at::Tensor& tensor, bool apart) const {
  if (bitwise_) {
    return staging.write_bytes(tensor, tensor.numel() * bits_of(type_),
                               [type = type_, sizes = tensor.sizes().vec()](const at::Tensor& bits) {
                                 return join_bits(bits, type).view(sizes);
                               });
  }
  return apart ? staging.write_apart(view(tensor)) : staging.write(view(tensor));
}

at::Tensor Reduction::combine(const at::Tensor& a, const at::Tensor& b) const {
  switch (op_) {
    case TRIBUTARY_MIN:
      return bitwise_ ? a.bitwise_and(b) : at::minimum(a, b);
    case TRIBUTARY_MAX:
      return bitwise_ ? a.bitwise_or(b) : at::maximum(a, b);
    case TRIBUTARY_PROD:
      return a.mul(b);
    default:
      return bitwise_ ? a.bitwise_xor(b) : a.add(b);
  }
}

}  // namespace tributary::torch
