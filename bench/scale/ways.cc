// Prints the ways of an allreduce over planned trees in the order of the client's cost model, the quickest first: path,
// algorithm between the ranks, the trees' share, seconds. bench/scale/run simulates the first way.
//
//   scale_ways RANKS BYTES LINKS TREES RING LANES LEVELS SEGMENT_BYTES [DOUBLING HALVING SPREAD]
//
// LINKS, TREES, RING, DOUBLING, HALVING and SPREAD are the plan's rates in bits per second. Like the simulation, the
// program leaves out processors.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "client/tuning/cost_model.h"

int main(int argc, char** argv) {
  using namespace tributary;
  if (argc != 9 && argc != 12) {
    std::fputs("usage: scale_ways RANKS BYTES LINKS TREES RING LANES LEVELS SEGMENT_BYTES [DOUBLING HALVING SPREAD]\n",
               stderr);
    return 64;
  }
  const auto number = [&](int at) { return at < argc ? std::strtoull(argv[at], nullptr, 10) : 0; };
  constexpr double kGigabit = 1e9;
  constexpr double kNoBound = 1e4;
  const tuning::Figures figures{.link_gbits = static_cast<double>(number(3)) / kGigabit,
                                .ring_gbits = static_cast<double>(number(5)) / kGigabit,
                                .doubling_gbits = static_cast<double>(number(9)) / kGigabit,
                                .halving_gbits = static_cast<double>(number(10)) / kGigabit,
                                .spread_gbits = static_cast<double>(number(11)) / kGigabit,
                                .trees_gbits = static_cast<double>(number(4)) / kGigabit,
                                .lanes = static_cast<std::uint32_t>(number(6)),
                                .levels = static_cast<std::uint32_t>(number(7)),
                                .core_gbytes = kNoBound,
                                .segment_bytes = static_cast<std::uint32_t>(number(8))};
  const tuning::Call call{
      .collective = Collective::all_reduce, .ranks = static_cast<std::uint32_t>(number(1)), .bytes = number(2)};
  constexpr double kMicro = 1e-6;
  for (const tuning::Estimate& it : tuning::estimates(figures, call)) {
    std::printf("%s %s %.6f %.9f\n", tuning::name(it.path), schedule::name(it.algorithm),
                static_cast<double>(it.tree_share) / tuning::kWholeShare, it.time_us() * kMicro);
  }
}
