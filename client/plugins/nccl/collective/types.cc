#include "client/plugins/nccl/collective/types.h"

#include "client/plugins/nccl/loader.h"

namespace tributary::nccl {

std::optional<tributary_dtype> to_dtype(abi::DataType type) noexcept {
  switch (type) {
    case abi::DataType::int8:
      return TRIBUTARY_INT8;
    case abi::DataType::uint8:
      return TRIBUTARY_UINT8;
    case abi::DataType::int32:
      return TRIBUTARY_INT32;
    case abi::DataType::uint32:
      return TRIBUTARY_UINT32;
    case abi::DataType::int64:
      return TRIBUTARY_INT64;
    case abi::DataType::uint64:
      return TRIBUTARY_UINT64;
    case abi::DataType::float16:
      return TRIBUTARY_FLOAT16;
    case abi::DataType::float32:
      return TRIBUTARY_FLOAT32;
    case abi::DataType::float64:
      return TRIBUTARY_FLOAT64;
    case abi::DataType::bfloat16:
      return TRIBUTARY_BFLOAT16;
    case abi::DataType::float8_e4m3:
      if (loaded_by_rccl()) return std::nullopt;
      return TRIBUTARY_FLOAT8_E4M3;
    case abi::DataType::float8_e5m2:
      if (loaded_by_rccl()) return std::nullopt;
      return TRIBUTARY_FLOAT8_E5M2;
  }
  return std::nullopt;
}

std::optional<tributary_op> to_op(abi::RedOp op) noexcept {
  switch (op) {
    case abi::RedOp::sum:
      return TRIBUTARY_SUM;
    case abi::RedOp::prod:
      return TRIBUTARY_PROD;
    case abi::RedOp::max:
      return TRIBUTARY_MAX;
    case abi::RedOp::min:
      return TRIBUTARY_MIN;
    case abi::RedOp::avg:
      return TRIBUTARY_AVG;
  }
  return std::nullopt;
}

std::size_t size_of(tributary_dtype dtype) noexcept {
  switch (dtype) {
    case TRIBUTARY_INT32:
    case TRIBUTARY_UINT32:
    case TRIBUTARY_FLOAT32:
      return 4;
    case TRIBUTARY_INT64:
    case TRIBUTARY_UINT64:
    case TRIBUTARY_FLOAT64:
      return 8;
    case TRIBUTARY_FLOAT16:
    case TRIBUTARY_BFLOAT16:
    case TRIBUTARY_INT16:
    case TRIBUTARY_UINT16:
      return 2;
    default:
      return 1;
  }
}

}  // namespace tributary::nccl
