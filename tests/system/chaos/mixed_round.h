#pragma once
// One round of mixed collectives on one communicator. All ranks draw it from the same seed, start its operations
// together, and check every element.
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "client/cli/perf/checked_call.h"
#include "tributary/protocol/error.h"

namespace tributary::chaos {

/// A number for the results that all ranks of a group share: equal bits give equal numbers.
using Digest = std::uint64_t;

struct GroupPlace {
  tributary_comm* comm = nullptr;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
};

/// The same object serves all rounds, because the tables and the buffers are expensive. One thread uses it.
class MixedRound {
 public:
  MixedRound(GroupPlace place, std::uint64_t seed, std::size_t bytes_max);
  MixedRound(MixedRound&&) = default;
  ~MixedRound();

  /// Queues one to three operations.
  [[nodiscard]] Status start(std::uint64_t round);
  /// Waits for each operation in turn and checks it; Errc::corrupt means a wrong result. Calls `ended` after each
  /// operation.
  template <class Ended>
  [[nodiscard]] Status finish(Ended ended) {
    for (std::size_t i = 0; i < calls_; ++i) {
      if (auto ok = finish_call(i); !ok) return ok;
      ended();
    }
    return {};
  }
  /// Returns the digest of all results so far.
  [[nodiscard]] Digest digest() const noexcept { return digest_; }
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

 private:
  static constexpr std::size_t kCallsMax = 3;
  // Bounds the number of tables that this object keeps: thousands are possible, but the soak test measures this
  // process's memory.
  static constexpr std::size_t kTablesMax = 128;
  struct Call {
    std::shared_ptr<cli::CheckedCall> exact;  // nullptr: a sum of floats that are rounded
    cli::PerfCounts counts;
    cli::CallPlace place;
    std::size_t begin = 0;
    std::uint64_t salt = 0;
    std::string text;
    std::vector<tributary_request*> requests;
    std::unique_ptr<std::byte[]> first, second;
  };

  void draw(Call& call, std::mt19937_64& random);
  void draw_rounded(Call& call, std::mt19937_64& random);
  [[nodiscard]] std::shared_ptr<cli::CheckedCall> checked(const cli::CallShape& shape);
  [[nodiscard]] Status finish_call(std::size_t index);
  [[nodiscard]] Status check(const Call& call);
  [[nodiscard]] Status check_rounded(const Call& call) const;
  void add_to_digest(const std::byte* data, std::size_t bytes);

  using ShapeKey = std::tuple<cli::PerfCollective, DType, ReduceOp, std::uint32_t>;
  GroupPlace place_;
  std::uint64_t seed_;
  std::size_t bytes_max_;
  std::map<ShapeKey, std::shared_ptr<cli::CheckedCall>> tables_;
  std::vector<Call> list_;
  std::size_t calls_ = 0;
  Digest digest_ = 0xCBF29CE484222325ULL;
  std::uint64_t operations_ = 0;
};

}  // namespace tributary::chaos
