#include "client/plugins/jax/types.h"

namespace tributary::jax {

std::optional<Element> element_of(Datatype type) {
  switch (type) {
    case kByte:
    case kUint8:
      return Element{TRIBUTARY_UINT8, 1, 1, false};
    case kInt8:
      return Element{TRIBUTARY_INT8, 1, 1, false};
    case kInt16:
      return Element{TRIBUTARY_INT32, 1, 2, true};
    case kUint16:
      return Element{TRIBUTARY_UINT32, 1, 2, true};
    case kInt32:
      return Element{TRIBUTARY_INT32, 1, 4, false};
    case kUint32:
      return Element{TRIBUTARY_UINT32, 1, 4, false};
    case kInt64:
      return Element{TRIBUTARY_INT64, 1, 8, false};
    case kUint64:
      return Element{TRIBUTARY_UINT64, 1, 8, false};
    case kFloat:
      return Element{TRIBUTARY_FLOAT32, 1, 4, false};
    case kDouble:
      return Element{TRIBUTARY_FLOAT64, 1, 8, false};
    case kComplex:
      return Element{TRIBUTARY_FLOAT32, 2, 8, false};
    case kDoubleComplex:
      return Element{TRIBUTARY_FLOAT64, 2, 16, false};
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
