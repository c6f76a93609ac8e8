// The algorithms of each collective. client/tuning chooses the fastest of them.
#include "client/schedule/schedule.h"

namespace tributary::schedule {

const char* name(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::recursive_doubling:
      return "recursive-doubling";
    case Algorithm::halving_doubling:
      return "halving-doubling";
    case Algorithm::binomial:
      return "binomial";
    case Algorithm::scatter_all_gather:
      return "scatter-all-gather";
    case Algorithm::reduce_scatter_gather:
      return "reduce-scatter-gather";
    case Algorithm::direct:
      return "direct";
    case Algorithm::bruck:
      return "bruck";
    case Algorithm::dissemination:
      return "dissemination";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::linear:
      return "linear";
  }
  return "invalid";
}

std::span<const Algorithm> algorithms(Collective collective) noexcept {
  using enum Algorithm;
  static constexpr Algorithm kAllReduce[] = {ring, recursive_doubling, halving_doubling};
  static constexpr Algorithm kReduce[] = {binomial, reduce_scatter_gather};
  static constexpr Algorithm kBroadcast[] = {binomial, scatter_all_gather};
  static constexpr Algorithm kReduceScatter[] = {ring, direct};
  static constexpr Algorithm kAllGather[] = {ring, bruck};
  static constexpr Algorithm kBarrier[] = {dissemination};
  static constexpr Algorithm kAllToAll[] = {pairwise};
  static constexpr Algorithm kGatherAndScatter[] = {binomial, linear};
  switch (collective) {
    case Collective::all_reduce:
      return kAllReduce;
    case Collective::reduce:
      return kReduce;
    case Collective::broadcast:
      return kBroadcast;
    case Collective::reduce_scatter:
      return kReduceScatter;
    case Collective::all_gather:
      return kAllGather;
    case Collective::barrier:
      return kBarrier;
    case Collective::all_to_all:
      return kAllToAll;
    case Collective::gather:
    case Collective::scatter:
      return kGatherAndScatter;
  }
  return {};
}

}  // namespace tributary::schedule
