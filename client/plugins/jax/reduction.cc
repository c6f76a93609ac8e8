#include "client/plugins/jax/reduction.h"

#include "client/plugins/jax/errors.h"

namespace tributary::jax {

std::optional<Reduction> reduction_of(const char* call, int count, Datatype type, Op op, int& code) {
  const auto element = element_of(type);
  const auto operation = operation_of(op);
  if (!element) {
    code = fail(kErrorType, call, "the library does not know this type: it has only the types that JAX uses");
  } else if (!operation) {
    code = fail(kErrorOp, call, "the library has only the sum, the product, the least and the greatest value");
  } else if (element->parts == 2 && *operation != TRIBUTARY_SUM) {
    code = fail(kErrorOp, call, "the only reduction of complex numbers is the sum");
  } else if (count < 0) {
    code = fail(kErrorCount, call, "the count is negative, or was too large for MPI's 31 bits");
  } else {
    return Reduction{.element = *element, .op = *operation, .count = static_cast<std::size_t>(count)};
  }
  return std::nullopt;
}

tributary_status all_reduce(const Reduction& reduction, const void* send, void* receive, tributary_comm* comm) {
  const std::size_t count = reduction.count * reduction.element.parts;
  return tributary_all_reduce(send, receive, count, reduction.element.dtype, reduction.op, comm, nullptr);
}

tributary_status reduce_scatter(const Reduction& reduction, const void* send, void* receive, tributary_comm* comm) {
  const std::size_t count = reduction.count * reduction.element.parts;
  return tributary_reduce_scatter(send, receive, count, reduction.element.dtype, reduction.op, comm, nullptr);
}

}  // namespace tributary::jax
