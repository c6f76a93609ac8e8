#include "tests/simulation/cluster/misfortunes.h"

#include <algorithm>
#include <vector>

namespace tributary::simulation {

using namespace std::chrono_literals;
using transport::Duration;
using transport::TimePoint;

namespace {

std::string milliseconds(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

}  // namespace

Misfortunes::Misfortunes(Cluster& cluster, std::uint64_t seed, const MisfortuneKinds& kinds,
                         std::function<void(const std::string&)> say)
    : cluster_(cluster),
      random_(seed * 0xD1342543DE82EF95ULL + 1),
      kinds_(kinds),
      say_(std::move(say)),
      strangers_(cluster.network(), seed) {}

Duration Misfortunes::within(Duration limit) {
  return Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(limit.count()))));
}

void Misfortunes::draw(Duration horizon) {
  using Kind = void (Misfortunes::*)(TimePoint);
  std::vector<Kind> kinds;  // a kind that is twice in the list comes twice as often
  const auto add = [&kinds](Kind kind, int times) {
    for (int i = 0; i < times; ++i) kinds.push_back(kind);
  };
  if (kinds_.strangers) add(&Misfortunes::strangers_come, 2);
  if (kinds_.pauses) {
    add(&Misfortunes::pause_a_rank, 2);
    add(&Misfortunes::pause_an_aggregator, 1);
    add(&Misfortunes::pause_the_manager, 1);
  }
  if (kinds_.clocks) {
    add(&Misfortunes::set_a_clock, 1);
    add(&Misfortunes::forget_groups, 1);
  }
  if (kinds_.refusals) add(&Misfortunes::refuse_connections, 2);
  if (kinds.empty()) return;
  for (std::uint64_t count = below(6); count > 0; --count) {
    const Kind kind = kinds[below(kinds.size())];
    (this->*kind)(cluster_.network().now() + within(horizon));
  }
}

void Misfortunes::strangers_come(TimePoint at) {
  const Strangers::Kind kind = Strangers::kKinds[below(std::size(Strangers::kKinds))];
  const auto connections = static_cast<std::uint32_t>(below(12) == 0 ? 50 + below(700) : 1 + below(8));
  const std::uint64_t where = below(3), which = random_();
  cluster_.network().call_at(at, [this, kind, connections, where, which] {
    const auto& heard = strangers_.heard_of();
    const auto& group = which % cluster_.groups().size();
    const Endpoint target = where == 0
                                ? Endpoint{cluster_.aggregators()[which % cluster_.aggregators().size()]->name(), 7471}
                            : where == 1 || heard.empty() ? Endpoint{"g" + std::to_string(group) + "r0", 7000}
                                                          : heard[which % heard.size()];
    say_(std::to_string(connections) + " strangers " + to_string(kind) + " at " + tributary::to_string(target));
    strangers_.come(target, kind, connections);
  });
  if (below(2) == 0) cluster_.network().call_at(at + within(2s), [this] { strangers_.leave(); });
}

void Misfortunes::stop(const std::string& host, TimePoint at, Duration time) {
  auto& network = cluster_.network();
  network.call_at(at, [this, host, time] {
    if (!cluster_.network().alive(host)) return;
    say_("stop " + host + " for " + milliseconds(time));
    stood_[host] += time;
    cluster_.network().pause(host);
  });
  network.call_at(at + time, [this, host] {
    if (!cluster_.network().alive(host)) return;
    say_("continue " + host);
    cluster_.network().resume(host);
  });
}

Duration Misfortunes::stood(const std::string& host) const {
  const auto it = stood_.find(host);
  return it == stood_.end() ? Duration::zero() : it->second;
}

Duration Misfortunes::stood(std::uint32_t group) const {
  Duration sum{};
  for (const auto& rank : cluster_.groups()[group]) sum += stood(rank->host());
  return sum;
}

Duration Misfortunes::stood() const {
  Duration sum{};
  for (std::uint32_t group = 0; group < cluster_.groups().size(); ++group) sum += stood(group);
  return sum;
}

/// Begin most pauses at once, so that other misfortunes come at the same time. Begin the other pauses when the group
/// may be ending, or busy with the consequences of an earlier pause.
void Misfortunes::pause_a_rank(TimePoint at) {
  auto& ranks = cluster_.groups()[below(cluster_.groups().size())];
  const SimRank& rank = *ranks[below(3) == 0 ? 0 : below(ranks.size())];  // choose rank 0 more often
  const Duration timeout = cluster_.settings().timeout;
  const Duration longest[] = {2s, 2s, timeout, 2 * timeout};
  const Duration time = 1us + within(longest[below(std::size(longest))]);
  stop(rank.host(), below(4) == 0 ? at + within(30s) : at, time);
}

void Misfortunes::pause_an_aggregator(TimePoint at) {
  const std::string& name = cluster_.aggregators()[below(cluster_.aggregators().size())]->name();
  stop(name, at, 1us + within(below(2) == 0 ? 2s : 30s));
}

void Misfortunes::pause_the_manager(TimePoint at) {
  const Duration time = 1us + within(below(2) == 0 ? 1s : 15s);
  cluster_.network().call_at(at, [this, time] {
    say_("stop the manager for " + milliseconds(time));
    cluster_.manager().pause();
  });
  cluster_.network().call_at(at + time, [this] {
    say_("continue the manager");
    cluster_.manager().resume();
  });
}

void Misfortunes::set_a_clock(TimePoint at) {
  const std::string process =
      below(2) == 0 ? "manager" : cluster_.aggregators()[below(cluster_.aggregators().size())]->name();
  static constexpr std::chrono::seconds kSteps[] = {1s, 119s, 121s, 3600s, 3600s * 24 * 365};
  const auto by = kSteps[below(std::size(kSteps))] * (below(2) == 0 ? 1 : -1);
  const auto set = [this, process](std::chrono::seconds step) {
    say_("set the clock of " + process + " by " + std::to_string(step.count()) + " s");
    cluster_.step_clock(process, step);
  };
  cluster_.network().call_at(at, [set, by] { set(by); });
  if (below(2) == 0) cluster_.network().call_at(at + within(500ms), [set, by] { set(-by); });
}

void Misfortunes::forget_groups(TimePoint at) {
  cluster_.network().call_at(at, [this] {
    say_("the manager has lost its store");
    cluster_.manager().forget_groups();
  });
}

void Misfortunes::refuse_connections(TimePoint at) {
  const auto percent = static_cast<std::uint32_t>(10 + below(91));
  const TimePoint until = at + 1ms + within(below(4) == 0 ? 3s : 100ms);
  auto& network = cluster_.network();
  const std::uint64_t who = below(4);
  if (who == 0) {
    network.call_at(at, [this, percent] {
      say_("the manager refuses " + std::to_string(percent) + " of 100 requests");
      cluster_.manager().refuse_percent = percent;
    });
    network.call_at(until, [this] { cluster_.manager().refuse_percent = 0; });
    return;
  }
  const auto& ranks = cluster_.groups()[below(cluster_.groups().size())];
  const std::string host = who == 1   ? cluster_.aggregators()[below(cluster_.aggregators().size())]->name()
                           : who == 2 ? ranks[0]->host()
                                      : ranks[below(ranks.size())]->host();
  network.call_at(at, [this, host, percent] {
    say_(host + " refuses " + std::to_string(percent) + " of 100 connections");
    cluster_.network().refuse_connections(host, percent);
  });
  network.call_at(until, [this, host] { cluster_.network().refuse_connections(host, 0); });
}

std::string Misfortunes::judge() const {
  return strangers_.served() == 0
             ? ""
             : "strangers were served " + std::to_string(strangers_.served()) + " times by ranks\n";
}

}  // namespace tributary::simulation
