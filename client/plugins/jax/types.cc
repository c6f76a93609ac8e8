#include "client/plugins/jax/types.h"

namespace tributary::jax {

std::optional<Element> element_of(Datatype type) {
  switch (type) {
    case kByte:
    case kUint8:
      return Element{TRIBUTARY_UINT8, 1, 1};
    case kInt8:
      return Element{TRIBUTARY_INT8, 1, 1};
    case kInt16:
      return Element{TRIBUTARY_INT16, 1, 2};
    case kUint16:
      return Element{TRIBUTARY_UINT16, 1, 2};
    case kInt32:
      return Element{TRIBUTARY_INT32, 1, 4};
    case kUint32:
      return Element{TRIBUTARY_UINT32, 1, 4};
    case kInt64:
      return Element{TRIBUTARY_INT64, 1, 8};
    case kUint64:
      return Element{TRIBUTARY_UINT64, 1, 8};
    case kFloat:
      return Element{TRIBUTARY_FLOAT32, 1, 4};
    case kDouble:
      return Element{TRIBUTARY_FLOAT64, 1, 8};
    case kComplex:
      return Element{TRIBUTARY_FLOAT32, 2, 8};
    case kDoubleComplex:
      return Element{TRIBUTARY_FLOAT64, 2, 16};
    default:
      return std::nullopt;
  }
}

std::optional<tributary_op> operation_of(Op op) {
  switch (op) {
    case kSum:
      return TRIBUTARY_SUM;
    case kProd:
      return TRIBUTARY_PROD;
    case kMin:
      return TRIBUTARY_MIN;
    case kMax:
      return TRIBUTARY_MAX;
    default:
      return std::nullopt;
  }
}

}  // namespace tributary::jax
