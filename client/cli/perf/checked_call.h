#pragma once
// One collective call whose result is known: what goes in, where it lies, and whether what came out is right.
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

/// Where the parts of one call lie.
struct CallPlace {
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
};
/// In two buffers of max(send, recv) elements each; in place, by the rules in tributary.h, in the second alone.
[[nodiscard]] CallPlace place_call(const CallShape& shape, const PerfCounts& counts, bool in_place, std::byte* first,
                                   std::byte* second) noexcept;

/// Makes its tables once and serves calls of every size. `begin` is the pattern's element that the input starts with:
/// with another one for each call, yesterday's result is not today's.
class CheckedCall {
 public:
  explicit CheckedCall(const CallShape& shape);

  [[nodiscard]] const CallShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(shape_.dtype); }
  [[nodiscard]] PerfCall at(const CallPlace& place, const PerfCounts& counts) const noexcept;
  /// Writes the input, after something that is no result where the result will be.
  void fill_input(const CallPlace& place, const PerfCounts& counts, std::size_t begin) const;
  /// Elements of this rank's result that are not what they must be.
  [[nodiscard]] std::uint64_t wrong_elements(const std::byte* recv, const PerfCounts& counts, std::size_t begin) const;

 private:
  CallShape shape_;
  std::vector<std::byte> own_;                   // this rank's contribution
  std::vector<std::byte> reduced_;               // of collectives that reduce
  std::vector<std::vector<std::byte>> of_rank_;  // what this rank gets to see unreduced; else empty
};

}  // namespace tributary::cli
