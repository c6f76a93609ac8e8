#include "client/plugins/nccl/tuner/model.h"

#include <algorithm>
#include <array>
#include <limits>

#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/settings.h"
#include "client/tuning/cost_model.h"
#include "client/tuning/policy.h"
#include "tributary/transport/link_rate.h"

namespace tributary::nccl {
namespace {

using tuning::Call;

constexpr std::array<std::uint64_t, 5> kRates{1'000'000'000, 10'000'000'000, 25'000'000'000, 100'000'000'000,
                                              400'000'000'000};
constexpr std::uint64_t kChunkBytes = 32 << 10;  // NCCL gives CollNet at least this many bytes
constexpr double kPays = 0.05;                   // least part to save: estimates are not more exact

bool saves_time(std::uint64_t link_rate, std::uint64_t bytes, std::uint32_t nodes) {
  // The number of cores may differ from rank to rank, so use the model's default number of cores.
  const tuning::Figures figures =
      tuning::default_figures({.ranks = nodes, .link_rate = link_rate}, tuning::Figures{}.cores);
  const Call call{.collective = Collective::all_reduce, .ranks = nodes, .bytes = bytes};
  double between = std::numeric_limits<double>::max();
  for (const tuning::Algorithm algorithm : schedule::algorithms(call.collective))
    between = std::min(between, tuning::estimate_ranks(figures, call, algorithm).time_us());
  const Call chunks{call.collective, call.ranks, std::max(bytes, kChunkBytes)};
  return tuning::estimate_tree(figures, chunks).time_us() < between * (1 - kPays);
}

}  // namespace

bool TunerModel::prefers_collnet(abi::Function function, std::size_t bytes, std::size_t nodes) const {
  if (function != abi::Function::all_reduce || nodes < 2 || nodes > kRanksMax) return false;
  const auto saves = [&](std::uint64_t rate) { return saves_time(rate, bytes, static_cast<std::uint32_t>(nodes)); };
  return link_rate_ != 0 ? saves(link_rate_) : std::ranges::all_of(kRates, saves);
}

std::uint64_t link_rate_here() {
  if (settings().link_rate != 0) return settings().link_rate;
  if (devices().empty()) return 0;
  const NetDevice& device = devices().front();
  if (!device.rdma_device.empty()) return std::uint64_t{1'000'000} * static_cast<std::uint64_t>(device.speed_mbps);
  return transport::link_rate_of(device.address);
}

}  // namespace tributary::nccl
