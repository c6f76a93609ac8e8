#pragma once
// Settings of a simulated cluster, and the numbers that its processes share.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/communicator/communicator.h"
#include "tributary/transport/sim_network.h"

namespace tributary::simulation {

inline constexpr std::uint16_t kAggregatorPort = 7471;
inline constexpr std::uint16_t kRankPort = 7000;
/// The longest time between two turns of a process.
inline constexpr auto kTick = std::chrono::milliseconds(20);

struct ClusterSettings {
  std::uint64_t seed = 1;
  std::uint32_t aggregators = 4;
  std::uint32_t window = 4;
  std::uint32_t segment_bytes = 512;
  // Each lane draws a weight up to this. Lanes that may differ in weight also draw a window, up to `window`.
  std::uint32_t weight_max = 1;
  transport::Duration timeout = std::chrono::seconds(20);
  std::uint32_t lease_seconds = 15;
  std::uint32_t advice_percent = 0;  // percentage of renewals at which the manager advises better trees
  transport::SimSettings network;
  PathRates rates{};                    // rates that the manager gives with its trees
  std::optional<tuning::Table> tuning;  // for every rank 0; nullopt: use a tree whenever the group has a tree
  bool automatic =
      false;  // without a table, every rank 0 has the cost model's choice, and corrects it by measured times
  /// Every rank 0 asks this function for an amendment of the policy after each operation.
  std::function<std::optional<tuning::Amendment>()> amendments;
  bool devices = false;  // each rank has a device, and a second way
  client::PathMode path = client::PathMode::automatic;
  bool require_trees = false;
  /// Gets the transport of a host, and returns the transport that the host uses instead, for a host that breaks the
  /// protocol. If this function is empty, or returns null, the host uses its own transport.
  std::function<transport::Transport*(const std::string& host, transport::Transport& network)> in_between;
};

}  // namespace tributary::simulation
