#pragma once
// One collective call with a known result: its input, its buffers, and the check of its result.
#include <cstdint>
#include <vector>

#include "client/cli/perf/collective.h"
#include "client/cli/perf/pattern.h"

namespace tributary::cli {

/// The facts of a collective on one rank, without its size.
struct CallShape {
  PerfCollective collective = PerfCollective::all_reduce;
  DType dtype = DType::float32;
  ReduceOp op = ReduceOp::sum;
  std::uint32_t root = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  bool exact = false;  // the contributions are those of exact_pattern.h; only for all_reduce, reduce, reduce_scatter
};

/// The buffers of one call.
struct CallPlace {
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
};
/// Returns the buffers of a call within two buffers of max(send, recv) elements each. A call in place, by the rules of
/// tributary.h, uses the second buffer.
[[nodiscard]] CallPlace place_call(const CallShape& shape, const PerfCounts& counts, bool in_place, std::byte* first,
                                   std::byte* second) noexcept;

/// A call with a check. It makes its tables once, and serves calls of every size. The input starts with the pattern's
/// element `begin`: use another element for each call, so that an old result is never right for the new call.
class CheckedCall {
 public:
  explicit CheckedCall(const CallShape& shape);

  [[nodiscard]] const CallShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(shape_.dtype); }
  [[nodiscard]] PerfCall at(const CallPlace& place, const PerfCounts& counts) const noexcept;
  /// Overwrites the result's place with a byte that no right result has, then writes the input.
  void fill_input(const CallPlace& place, const PerfCounts& counts, std::size_t begin) const;
  /// Returns the largest distance of an element of this rank's result from the right element, in units of the last
  /// place (exact_pattern.h). Only for shapes with `exact`.
  [[nodiscard]] std::uint64_t largest_error(const std::byte* recv, const PerfCounts& counts, std::size_t begin) const;
  /// Returns the number of wrong elements in this rank's result.
  [[nodiscard]] std::uint64_t wrong_elements(const std::byte* recv, const PerfCounts& counts, std::size_t begin) const;

 private:
  CallShape shape_;
  std::vector<std::byte> own_;                   // this rank's contribution
  std::vector<std::byte> reduced_;               // result of collectives that reduce
  std::vector<std::vector<std::byte>> of_rank_;  // contributions that this rank receives unreduced; else empty
};

}  // namespace tributary::cli
