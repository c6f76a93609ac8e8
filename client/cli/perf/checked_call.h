#pragma once
// One collective call whose result is known: its input, its buffers, and a check of its result.
#include <cstdint>
#include <vector>

#include "client/cli/perf/collective.h"
#include "client/cli/perf/pattern.h"

namespace tributary::cli {

/// One rank's view of a collective, without its size.
struct CallShape {
  PerfCollective collective = PerfCollective::all_reduce;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t root = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
};

/// The buffers of one call.
struct CallPlace {
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
};
/// Places the call in two buffers of max(send, recv) elements each; in place, by the rules in tributary.h, in the
/// second one.
[[nodiscard]] CallPlace place_call(const CallShape& shape, const PerfCounts& counts, bool in_place, std::byte* first,
                                   std::byte* second) noexcept;

/// Makes its tables once and serves calls of every size. The input starts with the pattern's element `begin`: with
/// another one for each call, an old result is never taken for the new one.
class CheckedCall {
 public:
  explicit CheckedCall(const CallShape& shape);

  [[nodiscard]] const CallShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(shape_.dtype); }
  [[nodiscard]] PerfCall at(const CallPlace& place, const PerfCounts& counts) const noexcept;
  /// Overwrites the result's place with a byte that is no result, then writes the input.
  void fill_input(const CallPlace& place, const PerfCounts& counts, std::size_t begin) const;
  /// Counts the wrong elements of this rank's result.
  [[nodiscard]] std::uint64_t wrong_elements(const std::byte* recv, const PerfCounts& counts, std::size_t begin) const;

 private:
  CallShape shape_;
  std::vector<std::byte> own_;                   // this rank's contribution
  std::vector<std::byte> reduced_;               // result of collectives that reduce
  std::vector<std::vector<std::byte>> of_rank_;  // contributions that this rank receives unreduced; else empty
};

}  // namespace tributary::cli
