#include "client/plugins/jax/reduction.h"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "client/plugins/jax/errors.h"

namespace tributary::jax {
namespace {

/// 16-bit integers travel as 32 bits: sums and products that are cut off afterwards are the same as if they had wrapped
/// before, and the least and the greatest value are exact.
template <class Narrow, class Wide, class Call>
tributary_status widened(const void* send, void* receive, std::size_t sent, std::size_t received, Call call) {
  const auto wide = std::make_unique_for_overwrite<Wide[]>(std::max(sent, received));
  std::copy_n(static_cast<const Narrow*>(send), sent, wide.get());
  const auto result = std::make_unique_for_overwrite<Wide[]>(received);
  const tributary_status status = call(wide.get(), result.get());
  if (status != TRIBUTARY_OK) return status;
  std::transform(result.get(), result.get() + received, static_cast<Narrow*>(receive),
                 [](Wide value) { return static_cast<Narrow>(value); });
  return status;
}

template <class Call>
tributary_status run(const Reduction& reduction, const void* send, void* receive, std::size_t sent,
                     std::size_t received, Call call) {
  if (!reduction.element.wide) return call(send, receive);
  if (reduction.element.dtype == TRIBUTARY_INT32) {
    return widened<std::int16_t, std::int32_t>(send, receive, sent, received, call);
  }
  return widened<std::uint16_t, std::uint32_t>(send, receive, sent, received, call);
}

}  // namespace

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
  return run(reduction, send, receive, count, count, [&](const void* from, void* to) {
    return tributary_all_reduce(from, to, count, reduction.element.dtype, reduction.op, comm, nullptr);
  });
}

tributary_status reduce_scatter(const Reduction& reduction, const void* send, void* receive, int ranks,
                                tributary_comm* comm) {
  const std::size_t count = reduction.count * reduction.element.parts;
  return run(reduction, send, receive, count * static_cast<std::size_t>(ranks), count, [&](const void* from, void* to) {
    return tributary_reduce_scatter(from, to, count, reduction.element.dtype, reduction.op, comm, nullptr);
  });
}

}  // namespace tributary::jax
