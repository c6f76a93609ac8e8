#include "client/cli/fabric/culprits.h"

#include <array>

#include "tributary/protocol/assert.h"

namespace tributary::cli::fabric {
namespace {

constexpr std::uint32_t kBadPairsMin = 2;

/// The pairs of one host in one direction that no other host explains: their number, and the number of bad ones.
struct Side {
  std::uint32_t all = 0, bad = 0;
  [[nodiscard]] bool to_blame() const noexcept { return bad >= kBadPairsMin && 2 * bad > all; }
  /// Compares which part of each side's pairs is bad, then how many pairs are bad.
  [[nodiscard]] bool worse_than(const Side& other) const noexcept {
    const std::uint64_t mine = std::uint64_t{bad} * other.all, theirs = std::uint64_t{other.bad} * all;
    return mine != theirs ? mine > theirs : bad > other.bad;
  }
};

class Search {
 public:
  Search(const std::vector<Verdict>& verdicts, std::uint32_t hosts)
      : verdicts_(verdicts),
        explained_(verdicts.size(), false),
        sides_(std::size_t{2} * hosts),
        pairs_of_(sides_.size()) {
    for (std::uint32_t i = 0; i < verdicts.size(); ++i) {
      TRIBUTARY_ASSERT(verdicts[i].from < hosts && verdicts[i].to < hosts, "a pair of hosts {} and {}, of {}",
                       verdicts[i].from, verdicts[i].to, hosts);
      for (const std::uint32_t side : sides_of(i)) {
        ++sides_[side].all;
        sides_[side].bad += verdicts[i].bad ? 1U : 0U;
        pairs_of_[side].push_back(i);
      }
    }
  }

  Culprits run() {
    Culprits culprits;
    while (const Side* worst = worst_side()) {
      const auto side = static_cast<std::uint32_t>(worst - sides_.data());
      (side % 2 == 0 ? culprits.senders : culprits.receivers).push_back(side / 2);
      explain(side);
    }
    for (std::uint32_t i = 0; i < verdicts_.size(); ++i) {
      if (verdicts_[i].bad && !explained_[i]) culprits.pairs.push_back(i);
    }
    return culprits;
  }

 private:
  /// Returns the sides of a pair. A host has two sides: one for the pairs to which it sends, one to receive.
  [[nodiscard]] std::array<std::uint32_t, 2> sides_of(std::uint32_t pair) const {
    return {2 * verdicts_[pair].from, 2 * verdicts_[pair].to + 1};
  }

  [[nodiscard]] const Side* worst_side() const {
    const Side* worst = nullptr;
    for (const Side& side : sides_) {
      if (side.to_blame() && (worst == nullptr || side.worse_than(*worst))) worst = &side;
    }
    return worst;
  }

  void explain(std::uint32_t blamed) {
    for (const std::uint32_t pair : pairs_of_[blamed]) {
      if (explained_[pair]) continue;
      explained_[pair] = true;
      for (const std::uint32_t side : sides_of(pair)) {
        --sides_[side].all;
        sides_[side].bad -= verdicts_[pair].bad ? 1U : 0U;
      }
    }
  }

  const std::vector<Verdict>& verdicts_;
  std::vector<bool> explained_;
  std::vector<Side> sides_;
  std::vector<std::vector<std::uint32_t>> pairs_of_;
};

}  // namespace

Culprits find_culprits(const std::vector<Verdict>& verdicts, std::uint32_t hosts) {
  return Search(verdicts, hosts).run();
}

}  // namespace tributary::cli::fabric
