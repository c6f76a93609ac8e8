#pragma once
// Misfortunes that befall a cluster from outside its protocols: strangers at every listener, processes that stand still
// for a while, clocks that are set, connections that are refused. None of it may cost a group an error, but one: ranks
// that stand still for about as long as the time-out, all in all, are lost to the others, who name them.
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "cluster.h"
#include "strangers.h"

namespace tributary::simulation {

/// Which of them there are.
struct MisfortuneKinds {
  bool strangers = true;
  bool pauses = true;
  bool clocks = true;
  bool refusals = true;
};

class Misfortunes {
 public:
  /// `say`: told what happens, when it does.
  Misfortunes(Cluster& cluster, std::uint64_t seed, const MisfortuneKinds& kinds,
              std::function<void(const std::string&)> say);

  /// Draws a few that begin between now and `horizon` later.
  void draw(transport::Duration horizon);
  /// Stops a process, if it is there then.
  void stop(const std::string& host, transport::TimePoint at, transport::Duration time);
  /// For how long it was stopped so far, while there was something for it to do.
  [[nodiscard]] transport::Duration stood(const std::string& host) const;
  /// All ranks of a group together, or of all groups.
  [[nodiscard]] transport::Duration stood(std::uint32_t group) const;
  [[nodiscard]] transport::Duration stood() const;
  /// The case that must not be: a stranger who was served.
  [[nodiscard]] std::string judge() const;
  /// Strangers that have repeated a credential may hold a place on an aggregator for as long as they stay.
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
  std::map<std::string, transport::Duration> stood_;  // by host
  Strangers strangers_;
};

}  // namespace tributary::simulation
