#include "client/plugins/nccl/tuner/model.h"

#include <algorithm>
#include <array>
#include <limits>

#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/settings.h"
#include "client/tuning/cost_model.h"
#include "client/tuning/policy.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/link_rate.h"

namespace tributary::nccl {
namespace {

using tuning::Call;

constexpr std::array<std::uint64_t, 5> kRates{1'000'000'000, 10'000'000'000, 25'000'000'000, 100'000'000'000,
                                              400'000'000'000};
constexpr std::uint64_t kChunkBytes = 32 << 10;  // NCCL gives CollNet at least this many bytes
constexpr double kPays = 0.05;                   // least difference that counts: estimates are not more exact

/// The times of one allreduce at one rate of links.
struct Times {
  double between_us = 0;     // between the nodes, by the best algorithm
  double tree_us = 0;        // through one tree
  double least_tree_us = 0;  // through so many trees that only the links count
};

Times times_at(std::uint64_t link_rate, std::uint64_t bytes, std::uint32_t nodes) {
  // The number of cores may differ from rank to rank, so use the model's default number of cores.
  const tuning::Figures figures =
      tuning::default_figures({.ranks = nodes, .link_rate = link_rate}, tuning::Figures{}.cores);
  const Call call{.collective = Collective::all_reduce, .ranks = nodes, .bytes = bytes};
  Times times{.between_us = std::numeric_limits<double>::max()};
  for (const tuning::Algorithm algorithm : schedule::algorithms(call.collective))
    times.between_us = std::min(times.between_us, tuning::estimate_ranks(figures, call, algorithm).time_us());
  const Call chunks{call.collective, call.ranks, std::max(bytes, kChunkBytes)};
  const tuning::Estimate tree = tuning::estimate_tree(figures, chunks);
  times.tree_us = tree.time_us();
  times.least_tree_us = tree.latency_us + static_cast<double>(chunks.bytes) * 8e6 / static_cast<double>(link_rate);
  TRIBUTARY_ASSERT(times.least_tree_us <= times.tree_us,
                   "{} bytes of {} nodes take {} us through trees, and {} us through one", bytes, nodes,
                   times.least_tree_us, times.tree_us);
  return times;
}

/// Returns whether `holds` for the times at this rate or, if it is not known, at each common rate.
template <class Holds>
bool at_rate(std::uint64_t link_rate, abi::Function function, std::size_t bytes, std::size_t nodes, Holds holds) {
  if (function != abi::Function::all_reduce || nodes < 2 || nodes > kRanksMax) return false;
  const auto here = [&](std::uint64_t rate) { return holds(times_at(rate, bytes, static_cast<std::uint32_t>(nodes))); };
  return link_rate != 0 ? here(link_rate) : std::ranges::all_of(kRates, here);
}

}  // namespace

bool TunerModel::prefers_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const {
  return at_rate(link_rate_, function, bytes, nodes,
                 [](const Times& it) { return it.tree_us < it.between_us * (1 - kPays); });
}

bool TunerModel::avoids_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const {
  return at_rate(link_rate_, function, bytes, nodes,
                 [](const Times& it) { return it.least_tree_us > it.between_us * (1 + kPays); });
}

std::uint64_t link_rate_here() {
  if (settings().link_rate != 0) return settings().link_rate;
  if (devices().empty()) return 0;
  const NetDevice& device = devices().front();
  if (!device.rdma_device.empty()) return std::uint64_t{1'000'000} * static_cast<std::uint64_t>(device.speed_mbps);
  return transport::link_rate_of(device.address);
}

}  // namespace tributary::nccl
