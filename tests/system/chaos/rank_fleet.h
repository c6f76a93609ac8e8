#pragma once
// The driver's view of all ranks of a chaos run: their reports, whether they agree, and how they end.
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/cluster/child_process.h"
#include "client/cli/cluster/local_cluster.h"
#include "client/operation/absences.h"

namespace tributary::chaos {

/// CLOCK_MONOTONIC, as the ranks report it.
[[nodiscard]] std::uint64_t now_us();

struct GroupReport {
  std::string name;
  bool in_network = false;
  std::uint32_t epoch = 0;
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
  std::uint64_t longest_pause_us = 0;
  std::uint64_t digest = 0;
};

struct RoundReport {
  std::uint64_t number = 0;
  std::uint64_t end_us = 0;
  std::uint64_t gap_us = 0;
  std::vector<GroupReport> groups;  // the group of all ranks is the first
};

struct RankState {
  std::unique_ptr<cli::ChildProcess> process;
  int output = -1;
  std::string pending;
  bool ready = false;
  std::uint64_t heard_us = 0;  // time when the last line came
  RoundReport last;
  std::string trouble;                                                     // its "error" or "wrong" line
  std::uint64_t operations = 0, bytes_in_network = 0, bytes_fallback = 0;  // from its "done" line
  bool done = false;
};

struct FleetSettings {
  std::uint32_t ranks = 8;
  std::vector<std::string> command;
  std::string folder;                          // logs go there
  const cli::LocalCluster* cluster = nullptr;  // nullptr: the ranks use only the fallback
  cli::Environment environment;                // added to this process's own
  std::vector<std::string> host_ids;           // hosts by rank, if the cluster does not set them
};

class RankFleet {
 public:
  /// Returns the errors of ChildProcess::spawn.
  [[nodiscard]] static Result<std::unique_ptr<RankFleet>> start(FleetSettings settings);
  ~RankFleet();

  /// Reads the ranks' output for `time`, or until `stop`, which it calls after every line, returns true.
  void listen(std::chrono::milliseconds time, const std::function<bool()>& stop = {});
  [[nodiscard]] RankState& rank(std::size_t index) noexcept { return ranks_[index]; }
  [[nodiscard]] const std::vector<RankState>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] bool all_ready() const;
  [[nodiscard]] bool all_ended();
  /// True if every rank last reported all its groups on their trees.
  [[nodiscard]] bool all_in_network() const;

  /// This object calls it for every round of every rank.
  std::function<void(std::size_t rank, const RoundReport&)> on_round;

  /// Returns the first error so far, with the logs that may explain it; empty while there is none. A rank that has been
  /// silent for `silence_max` counts as a rank that hangs.
  [[nodiscard]] std::string trouble(std::chrono::milliseconds silence_max);

 private:
  explicit RankFleet(FleetSettings settings) : settings_(std::move(settings)), ranks_(settings_.ranks) {}
  [[nodiscard]] Status start_rank(std::uint32_t index, std::uint16_t port);
  void read_from(std::size_t index);
  void take_line(std::size_t index, const std::string& line);
  void compare(std::size_t index, const RoundReport& report);
  [[nodiscard]] std::string log_of(std::size_t index) const;

  const FleetSettings settings_;
  client::Absences absences_;
  std::vector<RankState> ranks_;
  // Digests by group and round, from the rank that reported first.
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> digests_;
  std::string disagreement_;
};

}  // namespace tributary::chaos
