#pragma once
// One call on one path, and the comparison of its result with the right one.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/verify/bit_inputs.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"
#include "tributary/tributary.h"

namespace tributary::cli {

struct BitCase {
  Collective collective = Collective::all_reduce;  // all_reduce, reduce or reduce_scatter
  ReduceOp op = ReduceOp::sum;                     // sum, avg or prod
  DType dtype = DType::float32;
  BitFamily family = BitFamily::gaussian;
  std::uint64_t count = 0;  // the call's argument
  std::uint64_t seed = 0;
};
[[nodiscard]] std::string to_string(const BitCase& of);

/// The results of several calls.
struct BitTally {
  std::uint64_t calls = 0, elements = 0, wrong = 0;
  std::uint64_t digest = 14695981039346656037ULL;  // of all bits that every rank must have
  std::string first_wrong;                         // describes this rank's first wrong element
  void count(const std::vector<std::byte>& bytes) noexcept;
};

/// The inputs and the right result of one case, for all paths.
class BitCheck {
 public:
  BitCheck(const BitCase& of, std::uint32_t rank, std::uint32_t ranks);
  /// Makes the call, and adds the comparison of its result to `tally`.
  [[nodiscard]] Status run(tributary_comm* comm, BitTally& tally) const;

 private:
  /// Return the bits of the result for a place in the ranks' inputs.
  [[nodiscard]] std::uint64_t sum(std::uint64_t place) const noexcept;
  [[nodiscard]] std::uint64_t product(std::uint64_t place) const noexcept;
  [[nodiscard]] bool has_result() const noexcept;
  [[nodiscard]] tributary_status call(tributary_comm* comm, std::vector<std::byte>& out) const;

  BitCase case_;
  std::uint32_t rank_, ranks_;
  std::uint32_t root_;
  std::vector<std::byte> input_, exact_;
};

}  // namespace tributary::cli
