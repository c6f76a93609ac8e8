#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/tributary.h"

namespace tributary::tensorflow {

enum class Collective { all_reduce, broadcast, all_gather, all_to_all, reduce_scatter };

/// A call of one operator, without TensorFlow's objects.
struct Call {
  Collective collective;
  int type;                        // TF_DataType
  std::vector<std::int64_t> dims;  // the input's dimensions
  std::size_t bytes;               // the input's bytes
  std::int32_t argument;           // the reduction, or the root of a broadcast
};

/// The values that the library needs for the call, or the reason why it cannot make it.
struct Plan {
  std::vector<std::int64_t> dims;  // the output's dimensions
  std::size_t bytes = 0;           // the output's bytes
  tributary_dtype dtype = TRIBUTARY_UINT8;
  std::size_t count = 0;  // elements of dtype, as the library's call counts them
  std::string refusal;
};

/// A pure function. Calls that only move data move bytes, so every type has them.
[[nodiscard]] Plan plan_of(const Call& call, int ranks);

/// Starts the call. `argument` is that of the call.
tributary_status start(Collective collective, const Plan& plan, std::int32_t argument, const void* send, void* receive,
                       tributary_comm* comm, tributary_request** request);

}  // namespace tributary::tensorflow
