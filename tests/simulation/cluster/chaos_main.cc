// The simulator's random runs: each seed draws a cluster, its work and its faults, and every invariant is checked after
// every step.
//
//   simulation_chaos --seeds 2000          runs seeds 1 to 2000
//   simulation_chaos --first 77 --seeds 1  replays one; --verbose tells what happens
//
// The program checks every element of every result, and overwrites every buffer when the library gives it back. If
// all ranks of a group live, and their pauses together are shorter than about the time-out, the group must end without
// an error, whatever happens to aggregators and manager. If a rank dies, or the pauses are longer, the other ranks may
// end with an error that blames such a rank, and no other rank.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "tests/simulation/cluster/blame.h"
#include "tests/simulation/cluster/cluster.h"
#include "tests/simulation/cluster/misfortunes.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;
using transport::Duration;

/// The time that all pauses of one group's ranks together may take without an error; one second is left for all other
/// delays.
Duration harmless_pause(Duration timeout) {
  return timeout - 1s;
}

/// An error may not blame a rank for a shorter pause.
constexpr Duration kNoticed = 1s;

/// A process that sends frames that no peer should send: without a token, with every field wrong.
class Attacker final : public transport::ChannelHandler {
 public:
  Attacker(Cluster& cluster, std::string name) : cluster_(cluster), name_(std::move(name)) {}
  void attack(const Endpoint& target) {
    auto& channel = channels_.emplace_back(cluster_.network().transport(name_).connect(target, *this, 1s));
    const std::uint64_t frames = 1 + cluster_.below(6);
    for (std::uint64_t i = 0; i < frames; ++i) {
      FrameHeader h;
      constexpr FrameType kTypes[] = {
          FrameType::join,     FrameType::contribution, FrameType::result, FrameType::fault,     FrameType::leave,
          FrameType::hello,    FrameType::peer_hello,   FrameType::abort,  FrameType::peer_data, FrameType::recover,
          FrameType::finalize, FrameType::ask,          FrameType::alive,  FrameType::failed};
      h.type = kTypes[cluster_.below(std::size(kTypes))];
      h.group = cluster_.below(4);
      h.epoch = static_cast<std::uint32_t>(cluster_.below(4));
      h.sequence = cluster_.below(10);
      h.operation = cluster_.below(10);
      std::vector<std::byte> payload(cluster_.below(std::min<std::uint64_t>(payload_bytes_max(h.type), 2000) + 1));
      for (auto& b : payload) b = static_cast<std::byte>(cluster_.below(256));
      if (h.type == FrameType::hello || h.type == FrameType::peer_hello) {
        const std::string text =
            R"({"rank":1,"nranks":3,"class":"collective","proof":"00","host_id":"x","port":1,"address":""})";
        payload.assign(reinterpret_cast<const std::byte*>(text.data()),
                       reinterpret_cast<const std::byte*>(text.data()) + text.size());
      }
      channel->send_copy(h, payload);
    }
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& h) override {
    buffer_.resize(h.payload_bytes);
    return transport::Accept{buffer_};
  }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte>) override {}
  void on_closed(transport::Channel&, const Error&) override {}

 private:
  Cluster& cluster_;
  std::string name_;
  std::vector<std::byte> buffer_;
  std::vector<std::unique_ptr<transport::Channel>> channels_;
};

struct Choices {
  MisfortuneKinds kinds;
  bool exact = false;       // every group has exact numerics; else the groups of each third seed
  bool multiplied = false;  // every group has pre-multiplied sums; else the groups of each fourth seed
  bool verbose = false;
};

struct Life {
  Life(std::uint64_t seed_, const Choices& choices)
      : seed(seed_),
        kinds(choices.kinds),
        exact(choices.exact || seed_ % 3 == 0),
        multiplied(choices.multiplied || seed_ % 4 == 2),
        verbose(choices.verbose),
        random(seed_ * 0x9E3779B97F4A7C15ULL) {}
  const std::uint64_t seed;
  const MisfortuneKinds kinds;
  const bool exact;
  const bool multiplied;
  const bool verbose;
  std::mt19937_64 random;
  std::mt19937_64 amendments{seed * 0xA0761D6478BD642FULL + 3};
  std::unique_ptr<Cluster> cluster;
  std::unique_ptr<Attacker> attacker;
  std::unique_ptr<Misfortunes> misfortunes;
  std::uint32_t lost_group = UINT32_MAX;  // the group of the lost rank
  std::uint32_t lost_rank = UINT32_MAX;   // the rank that was killed, perhaps after it had stood still
  std::uint64_t failovers = 0, returns = 0, longest_pause_us = 0, errors = 0;

  std::uint64_t below(std::uint64_t bound) { return random() % bound; }
  Duration within(Duration limit) {
    return Duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(limit.count()))));
  }
  void say(const std::string& text) {
    if (verbose)
      std::printf("  %9.3f ms  %s\n",
                  std::chrono::duration<double, std::milli>(cluster->network().now().time_since_epoch()).count(),
                  text.c_str());
  }

  SimRank& some_rank() {
    auto& group = cluster->groups()[below(cluster->groups().size())];
    return *group[below(group.size())];
  }
  SimAggregator& some_aggregator() { return *cluster->aggregators()[below(cluster->aggregators().size())]; }

  tuning::Table some_table();
  std::optional<tuning::Amendment> some_amendment();
  void build();
  void lose_a_rank(Duration horizon);
  void misfortune(Duration horizon);
  std::string run();
  [[nodiscard]] std::string judge_error(std::uint32_t group, const std::string& message) const;
  std::string judge();
};

/// Random rules, by which operations of different sizes use trees or ranks, and different algorithms.
tuning::Table Life::some_table() {
  tuning::Table table;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const auto algorithms = schedule::algorithms(collective);
    std::uint64_t bytes_max = 0;
    for (std::uint64_t rules = below(6); rules > 0; --rules) {
      bytes_max += 1 + below(6000);
      auto path = in_network_capable(collective) && below(2) == 0 ? tuning::Path::tree : tuning::Path::ranks;
      if (tuning::can_split(collective) && below(2) == 0) path = tuning::Path::split;
      const bool split = path == tuning::Path::split;
      table.rules.push_back(
          {.collective = collective,
           .step = {.bytes_max = bytes_max,
                    .path = path,
                    .algorithm = algorithms[below(algorithms.size())],
                    .tree_share = split ? 1 + static_cast<std::uint32_t>(below(tuning::kWholeShare - 1)) : 0}});
    }
  }
  table.figures.hop_us = static_cast<double>(1 + below(30));  // figures for sizes that the rules do not cover
  return table;
}

/// A random step for random sizes. One in five operations of rank 0 asks for such an amendment, so that amendments,
/// losses of trees and moves to other trees happen at the same time.
std::optional<tuning::Amendment> Life::some_amendment() {
  if (amendments() % 5 != 0) return std::nullopt;
  constexpr Collective kCarried[] = {Collective::all_reduce,     Collective::reduce,     Collective::broadcast,
                                     Collective::reduce_scatter, Collective::all_gather, Collective::barrier};
  const Collective collective = kCarried[amendments() % std::size(kCarried)];
  const auto algorithms = schedule::algorithms(collective);
  tuning::Step step{.bytes_max = 1 + amendments() % 20'000,
                    .path = amendments() % 2 == 0 ? tuning::Path::tree : tuning::Path::ranks,
                    .algorithm = algorithms[amendments() % algorithms.size()]};
  if (tuning::can_split(collective) && amendments() % 2 == 0) {
    step.path = tuning::Path::split;
    step.tree_share = 1 + static_cast<std::uint32_t>(amendments() % (tuning::kWholeShare - 1));
  }
  return tuning::Amendment{collective, amendments() % step.bytes_max, step};
}

void Life::build() {
  ClusterSettings s;
  s.seed = seed;
  s.aggregators = static_cast<std::uint32_t>(1 + below(7));
  s.window = static_cast<std::uint32_t>(1 + below(8));
  s.segment_bytes = static_cast<std::uint32_t>(256 + 64 * below(8));
  s.network.link.latency = std::chrono::microseconds(1 + below(200));
  s.network.link.jitter = std::chrono::microseconds(below(100));
  s.network.split_percent = static_cast<std::uint32_t>(below(100));
  s.network.expected_places = seed % 8 < 5;
  if (below(2) == 0) s.tuning = some_table();
  if (below(2) == 0) {
    const std::uint64_t links = 1'000'000'000 * (1 + below(10));
    s.rates = {.links = links, .trees = links * (1 + below(16)) / 8, .ranks = links};
  }
  // In half of the runs lanes have different weights; some of these weights are far apart.
  constexpr std::uint32_t kWeightsMax[] = {1, 4, 1, kLaneWeightMax};
  s.weight_max = kWeightsMax[seed / 2 % std::size(kWeightsMax)];
  if (seed % 2 == 0) s.amendments = [this] { return some_amendment(); };
  s.automatic = seed % 4 == 1;  // trials of paths and shares, by the times in this run
  s.lease_seconds = 1;
  s.advice_percent = static_cast<std::uint32_t>(below(3) * 50);
  cluster = std::make_unique<Cluster>(s);
  const std::uint64_t groups = 1 + below(3);
  for (std::uint64_t g = 0; g < groups; ++g) {
    const auto nranks = static_cast<std::uint32_t>(g == 0 ? 1 + below(9) : 2 + below(4));
    cluster->add_group(nranks, static_cast<std::uint32_t>(1 + below(3)),
                       {.calls = static_cast<std::uint32_t>(10 + below(40)),
                        .count_max = 1 + below(4000),
                        .direct = below(2) == 0,
                        .exact = exact,
                        .multiplied = multiplied});
  }
  for (auto& ranks : cluster->groups()) {
    for (auto& r : ranks) {
      r->outstanding_max = static_cast<std::uint32_t>(1 + below(6));
      if (below(3) == 0) r->think_max = within(3ms);
      // Draw from the seed itself, so that the other random numbers of the run do not change.
      if ((seed + static_cast<std::uint64_t>(&r - ranks.data())) % 3 == 0) r->arriving_bytes_max = 1 + seed * 37 % 2000;
      if ((seed + static_cast<std::uint64_t>(&r - ranks.data())) % 3 == 1) r->use_distant_memory(seed % 11 == 0);
    }
  }
  attacker = std::make_unique<Attacker>(*cluster, "attacker");
  // The misfortunes also have random numbers of their own.
  misfortunes = std::make_unique<Misfortunes>(*cluster, seed, kinds, [this](const std::string& text) { say(text); });
}

void Life::misfortune(Duration horizon) {
  auto& net = cluster->network();
  const auto at = net.now() + within(horizon);
  switch (below(9)) {
    case 0:
    case 1: {
      auto& a = some_aggregator();
      net.call_at(at, [this, &a] {
        say("kill " + a.name());
        a.kill();
      });
      net.call_at(at + 1ms + within(300ms), [this, &a] {
        if (!a.alive()) {
          say("restart " + a.name());
          a.start();
        }
      });
      return;
    }
    case 2: {
      auto& a = some_aggregator();
      auto& r = some_rank();
      net.call_at(at, [this, &a, &r] {
        say("cut " + r.host() + " - " + a.name());
        cluster->network().cut(r.host(), a.name());
      });
      return;
    }
    case 3: {
      auto& a = some_aggregator();
      auto& b = some_aggregator();
      if (&a != &b)
        net.call_at(at, [this, &a, &b] {
          say("cut " + a.name() + " - " + b.name());
          cluster->network().cut(a.name(), b.name());
        });
      return;
    }
    case 4: {
      auto& r = some_rank();
      net.call_at(at, [this, &r] {
        say("slow " + r.host());
        cluster->network().slow_down(r.host(), 20us);
      });
      net.call_at(at + within(100ms), [this, &r] {
        if (cluster->network().alive(r.host())) cluster->network().slow_down(r.host(), Duration::zero());
      });
      return;
    }
    case 5: {
      auto& r = some_rank();
      misfortunes->stop(r.host(), at, within(1s));
      return;
    }
    case 6: {
      auto& a = some_aggregator();
      const auto back = at + 1ms + within(30s);  // it hangs for longer than any rank should wait
      net.call_at(at, [this, &a] {
        if (a.alive()) {
          say("hang " + a.name());
          cluster->network().pause(a.name());
        }
      });
      net.call_at(back, [this, &a] {
        if (a.alive()) cluster->network().resume(a.name());
      });
      return;
    }
    case 7:
      net.call_at(at, [this] {
        say("manager away");
        cluster->manager().reachable = false;
      });
      net.call_at(at + within(500ms), [this] {
        say("manager back");
        cluster->manager().reachable = true;
      });
      return;
    case 8: {
      const bool rank = below(2) == 0;
      const Endpoint target = rank ? Endpoint{"g0r0", 7000} : Endpoint{some_aggregator().name(), 7471};
      net.call_at(at, [this, target] { attacker->attack(target); });
      return;
    }
    default:
      return;
  }
}

/// Returns an empty text if the faults of the group explain this error.
std::string Life::judge_error(std::uint32_t group, const std::string& message) const {
  const bool lost = group == lost_group;
  if (!lost && misfortunes->stood(group) < harmless_pause(cluster->settings().timeout))
    return "though every rank was there";
  const auto named = blamed(message);
  if (!named || named->empty()) return "which blames nobody for being late";
  const auto& ranks = cluster->groups()[group];
  for (const std::uint32_t rank : *named) {
    if (lost && rank == lost_rank) continue;
    if (rank >= ranks.size() || misfortunes->stood(ranks[rank]->host()) < kNoticed)
      return "which blames rank " + std::to_string(rank) + ", which was there";
  }
  return "";
}

std::string Life::judge() {
  std::string bad;
  for (const auto& v : cluster->violations()) bad += "violation: " + v + "\n";
  for (std::uint32_t g = 0; g < cluster->groups().size(); ++g) {
    for (auto& r : cluster->groups()[g]) {
      if (!r->alive()) continue;
      if (!r->done()) bad += "not done: " + r->state() + "\n";
      const auto info = r->communicator().info();
      failovers += info.failovers;
      returns += info.returns;
      longest_pause_us = std::max(longest_pause_us, info.longest_pause_us);
      if (!r->failure()) continue;
      ++errors;
      if (const std::string why = judge_error(g, r->failure()->message); !why.empty())
        bad += "an error " + why + ": " + r->state() + "\n";
    }
  }
  bad += misfortunes->judge();
  // The manager must get back all that the groups held.
  for (auto& ranks : cluster->groups()) {
    for (auto& r : ranks) r->kill();
  }
  cluster->network().run_for(1s);  // the last requests may still arrive
  misfortunes->send_strangers_away();
  cluster->network().run_for(40s);
  for (auto& a : cluster->aggregators()) {
    if (a->alive() && a->budget().in_use() != 0)
      bad += a->name() + " still holds " + std::to_string(a->budget().in_use()) + " bytes\n";
  }
  return bad;
}

std::string Life::run() {
  build();
  const auto horizon = 1ms + within(200ms);
  const std::uint64_t count = below(4) == 0 ? 0 : below(10);
  for (std::uint64_t i = 0; i < count; ++i) misfortune(horizon);
  if (below(10) == 0) lose_a_rank(horizon);
  misfortunes->draw(horizon);
  const auto started = cluster->network().now();
  // The limit of each wait is the time-out or less, and does not count time in which the waiting process stood still.
  while (!cluster->run(60s)) {
    const auto over = cluster->network().now() - started;
    if (!cluster->violations().empty() || over > 60s + 2 * misfortunes->stood()) break;
  }
  return judge();
}

void Life::lose_a_rank(Duration horizon) {
  lost_group = static_cast<std::uint32_t>(below(cluster->groups().size()));
  auto& group = cluster->groups()[lost_group];
  if (group.size() > 1) {
    const auto rank = below(group.size());
    lost_rank = static_cast<std::uint32_t>(rank);
    const bool hangs = below(3) == 0;
    cluster->network().call_at(cluster->network().now() + within(horizon), [this, &group, rank, hangs] {
      say((hangs ? "hang for good " : "kill ") + group[rank]->host());
      if (hangs)
        cluster->network().pause(group[rank]->host());
      else
        group[rank]->kill();
    });
    // A rank that hangs for ever would block the end: kill it.
    if (hangs) cluster->network().call_at(cluster->network().now() + 25s, [&group, rank] { group[rank]->kill(); });
  } else {
    lost_group = UINT32_MAX;
  }
}

}  // namespace
}  // namespace tributary::simulation

int main(int argc, char** argv) {
  using namespace tributary::simulation;
  std::uint64_t first = 1, seeds = 100;
  Choices choices;
  CLI::App app("Runs simulated clusters, one per seed, and checks every invariant after every step");
  app.add_option("--first", first, "the first seed")->capture_default_str();
  app.add_option("--seeds", seeds, "how many")->capture_default_str();
  app.add_flag("--verbose", choices.verbose, "tell what happens");
  app.add_flag("--exact", choices.exact,
               "sums and products of floats have exact numerics with each seed, not each third");
  app.add_flag("--multiplied", choices.multiplied,
               "every second sum without exact numerics is pre-multiplied with each seed, not each fourth");
  MisfortuneKinds& kinds = choices.kinds;
  app.add_flag("--strangers,!--no-strangers", kinds.strangers, "strangers come to every listener");
  app.add_flag("--pauses,!--no-pauses", kinds.pauses, "every process may stand still for a while");
  app.add_flag("--clocks,!--no-clocks", kinds.clocks, "clocks are set, and the manager loses its store");
  app.add_flag("--refusals,!--no-refusals", kinds.refusals, "connections are refused, or break at once");
  CLI11_PARSE(app, argc, argv);
  std::uint64_t failed = 0, failovers = 0, returns = 0, events = 0, longest = 0, errors = 0;
  std::chrono::duration<double> stood{};
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    Life life(seed, choices);
    const std::string bad = life.run();
    failovers += life.failovers;
    returns += life.returns;
    errors += life.errors;
    stood += life.misfortunes->stood();
    longest = std::max(longest, life.longest_pause_us);
    events += life.cluster->network().statistics().events;
    if (bad.empty()) continue;
    ++failed;
    std::printf("seed %llu failed:\n%sreplay: %s --first %llu --seeds 1 --verbose%s\n",
                static_cast<unsigned long long>(seed), bad.c_str(), argv[0], static_cast<unsigned long long>(seed),
                (std::string(choices.exact ? " --exact" : "") + (choices.multiplied ? " --multiplied" : "")).c_str());
    std::fflush(stdout);
    if (failed >= 10) break;
  }
  std::printf("%llu events, %llu failovers seen by ranks, %llu returns to a tree, longest pause %.3f ms (virtual)\n",
              static_cast<unsigned long long>(events), static_cast<unsigned long long>(failovers),
              static_cast<unsigned long long>(returns), static_cast<double>(longest) / 1000);
  std::printf(
      "ranks stood still for %.0f s (virtual); %llu of them ended with an error that blames one that did, or died\n",
      stood.count(), static_cast<unsigned long long>(errors));
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(seeds - failed),
              static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}
