#pragma once
// What befalls a cluster from outside its protocols: strangers at every listener, processes that stand still for a
// while, clocks that are set, connections that are refused. None of it may cost a group an error, but one: a rank that
// stands still for as long as the time-out is lost to the others, who name it.
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
  bool refusals = false;  // ranks do not try again yet
};

class Misfortunes {
 public:
  /// `say`: told what happens, when it does.
  Misfortunes(Cluster& cluster, std::uint64_t seed, const MisfortuneKinds& kinds,
              std::function<void(const std::string&)> say);

  /// Draws a few that begin between now and `horizon` later.
  void draw(transport::Duration horizon);
  /// Stops one rank for longer than the time-out.
  struct LongPause {
    std::uint32_t group = 0;
    std::uint32_t rank = 0;
  };
  [[nodiscard]] LongPause pause_for_long(transport::Duration horizon);
  [[nodiscard]] bool any() const { return kinds_.strangers || kinds_.pauses || kinds_.clocks || kinds_.refusals; }
  /// What must not be: a stranger who was served.
  [[nodiscard]] std::string judge() const;

 private:
  void strangers_come(transport::TimePoint at);
  void pause_a_rank(transport::TimePoint at);
  void pause_an_aggregator(transport::TimePoint at);
  void pause_the_manager(transport::TimePoint at);
  void set_a_clock(transport::TimePoint at);
  void refuse_connections(transport::TimePoint at);
  void forget_groups(transport::TimePoint at);
  void stop(const std::string& host, transport::TimePoint at, transport::Duration time);
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  [[nodiscard]] transport::Duration within(transport::Duration limit);

  Cluster& cluster_;
  std::mt19937_64 random_;
  const MisfortuneKinds kinds_;
  const std::function<void(const std::string&)> say_;
  std::map<std::uint32_t, transport::Duration> paused_;  // by group: for how long, all ranks of it together
  Strangers strangers_;
};

}  // namespace tributary::simulation
