#include "client/plugins/tensorflow/collective.h"

#include <optional>

#include "client/plugins/tensorflow/api.h"

namespace tributary::tensorflow {
namespace {

struct Element {
  tributary_dtype dtype;
  std::size_t bytes;     // bytes of one element of dtype
  bool complex = false;  // true: each number is two elements of dtype
};

std::optional<Element> element_of(int type) {
  switch (type) {
    case kFloat:
      return Element{TRIBUTARY_FLOAT32, 4};
    case kDouble:
      return Element{TRIBUTARY_FLOAT64, 8};
    case kHalf:
      return Element{TRIBUTARY_FLOAT16, 2};
    case kBfloat16:
      return Element{TRIBUTARY_BFLOAT16, 2};
    case kInt8:
      return Element{TRIBUTARY_INT8, 1};
    case kUint8:
      return Element{TRIBUTARY_UINT8, 1};
    case kInt16:
      return Element{TRIBUTARY_INT16, 2};
    case kUint16:
      return Element{TRIBUTARY_UINT16, 2};
    case kInt32:
      return Element{TRIBUTARY_INT32, 4};
    case kUint32:
      return Element{TRIBUTARY_UINT32, 4};
    case kInt64:
      return Element{TRIBUTARY_INT64, 8};
    case kUint64:
      return Element{TRIBUTARY_UINT64, 8};
    case kComplex64:
      return Element{TRIBUTARY_FLOAT32, 4, true};
    case kComplex128:
      return Element{TRIBUTARY_FLOAT64, 8, true};
    default:
      return std::nullopt;
  }
}

bool reduces(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter;
}

/// Returns "" if the first dimension fits the collective.
std::string first_dimension_refusal(const Call& call, int ranks) {
  if (call.collective == Collective::all_reduce || call.collective == Collective::broadcast) return "";
  if (call.dims.empty()) return "a scalar has no first dimension to cut";
  if (call.collective != Collective::all_gather && call.dims[0] % ranks != 0) {
    return "the first dimension, " + std::to_string(call.dims[0]) + ", is not a multiple of the number of ranks, " +
           std::to_string(ranks);
  }
  return "";
}

}  // namespace

Plan plan_of(const Call& call, int ranks) {
  Plan plan{.dims = call.dims, .bytes = call.bytes, .refusal = first_dimension_refusal(call, ranks)};
  if (!plan.refusal.empty()) return plan;
  const auto parts = static_cast<std::size_t>(ranks);
  std::size_t element_bytes = 1;
  if (reduces(call.collective)) {
    const auto element = element_of(call.type);
    const bool adds = call.argument == TRIBUTARY_SUM || call.argument == TRIBUTARY_AVG;
    if (!element || (element->complex && !adds)) {
      plan.refusal = element ? "complex numbers have only sums and averages"
                             : "TensorFlow's type " + std::to_string(call.type) + " cannot be reduced";
      return plan;
    }
    plan.dtype = element->dtype;
    element_bytes = element->bytes;
  }
  plan.count = call.bytes / element_bytes;
  if (call.collective == Collective::all_gather) {
    plan.dims[0] *= ranks;
    plan.bytes *= parts;
  } else if (call.collective == Collective::reduce_scatter) {
    plan.dims[0] /= ranks;
    plan.bytes /= parts;
    plan.count /= parts;
  } else if (call.collective == Collective::all_to_all) {
    plan.count /= parts;
  }
  return plan;
}

tributary_status start(Collective collective, const Plan& plan, std::int32_t argument, const void* send, void* receive,
                       tributary_comm* comm, tributary_request** request) {
  const auto op = static_cast<tributary_op>(argument);
  switch (collective) {
    case Collective::all_reduce:
      return tributary_all_reduce(send, receive, plan.count, plan.dtype, op, comm, request);
    case Collective::reduce_scatter:
      return tributary_reduce_scatter(send, receive, plan.count, plan.dtype, op, comm, request);
    case Collective::broadcast:
      return tributary_broadcast(send, receive, plan.count, plan.dtype, argument, comm, request);
    case Collective::all_gather:
      return tributary_all_gather(send, receive, plan.count, plan.dtype, comm, request);
    case Collective::all_to_all:
      return tributary_all_to_all(send, receive, plan.count, plan.dtype, comm, request);
  }
  return TRIBUTARY_ERROR_INTERNAL;
}

}  // namespace tributary::tensorflow
