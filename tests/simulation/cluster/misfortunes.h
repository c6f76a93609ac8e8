#pragma once
// Misfortunes that come from outside a cluster's protocols: strangers at every listener, processes that stand still for
// some time, clocks that are set, connections that are refused. They may cause no error in a group, with one exception:
// if the pauses of ranks together take about the time-out, the other ranks may give these ranks up, with an error that
// names them.
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/strangers.h"

namespace tributary::simulation {

/// The kinds of misfortune to draw.
struct MisfortuneKinds {
  bool strangers = true;
  bool pauses = true;
  bool clocks = true;
  bool refusals = true;
};

class Misfortunes {
 public:
  /// Calls `say` with a line for each misfortune when it happens.
  Misfortunes(Cluster& cluster, std::uint64_t seed, const MisfortuneKinds& kinds,
              std::function<void(const std::string&)> say);

  /// Draws a few misfortunes that begin between now and `horizon` later.
  void draw(transport::Duration horizon);
  /// Stops a process, if it exists at that time.
  void stop(const std::string& host, transport::TimePoint at, transport::Duration time);
  /// Returns the time for which the process was stopped so far while it had work to do.
  [[nodiscard]] transport::Duration stood(const std::string& host) const;
  /// Returns the sum of these times over the ranks of a group, or of all groups.
  [[nodiscard]] transport::Duration stood(std::uint32_t group) const;
  [[nodiscard]] transport::Duration stood() const;
  /// Returns an empty text, or a text that says that a process has served a stranger, which must never happen.
  [[nodiscard]] std::string judge() const;
  /// Ends all strangers, because a stranger that has repeated a token may hold a place on an aggregator as long as it
  /// stays.
  void send_strangers_away() { strangers_.leave(); }

 private:
  void strangers_come(transport::TimePoint at);
  void pause_a_rank(transport::TimePoint at);
  void pause_an_aggregator(transport::TimePoint at);
  void pause_the_manager(transport::TimePoint at);
  void set_a_clock(transport::TimePoint at);
  void refuse_connections(transport::TimePoint at);
  void forget_groups(transport::TimePoint at);
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] transport::Duration within(transport::Duration limit);

  Cluster& cluster_;
  std::mt19937_64 random_;
  const MisfortuneKinds kinds_;
  const std::function<void(const std::string&)> say_;
  std::map<std::string, transport::Duration> stood_;  // by host: the time for which it stood still
  Strangers strangers_;
};

}  // namespace tributary::simulation
