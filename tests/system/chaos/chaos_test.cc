// Kills a random aggregator at a random time, again and again, while ranks run mixed collectives in several groups;
// sometimes it also kills the manager. No rank may get an error, wait for ever, or get other bits than the other ranks.
//
// Most kills hit an aggregator of a tree that its ranks say they use. The next kill waits until these ranks have
// noticed, also on a slow network or machine. The other kills are random.
//
// Variables: TRIBUTARY_CHAOS_KILLS (100), TRIBUTARY_CHAOS_SECONDS (160: in this time the kills wait until all groups
// are back on trees; after that, one such group is enough), TRIBUTARY_CHAOS_SEED.
#include <algorithm>
#include <fstream>
#include <random>

#include "tests/system/chaos/faults_seen.h"
#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/trees_in_use.h"
#include "tests/system/chaos/workshop.h"

namespace tributary::chaos {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kRanks = 8;
constexpr std::uint32_t kAggregators = 5;
constexpr std::uint64_t kKillsPerManagerKill = 20;
constexpr milliseconds kSilenceMax{45'000};
constexpr milliseconds kReturnLimit{20'000};
// Time for the groups on a killed aggregator to lose their tree, and to report it.
constexpr milliseconds kNoticeLimit{20'000};
constexpr milliseconds kStrayLimit{200};  // after a kill that perhaps no group notices: longest wait for a group that
                                          // notices it

/// One run: the cluster, the ranks, and the observations.
class ChaosRun {
 public:
  /// Puts `ranks_per_host` ranks on each host.
  ChaosRun(std::uint64_t seed, std::uint64_t kills, std::uint64_t seconds, std::uint32_t ranks_per_host = 1)
      : random_(seed), kills_(kills), end_us_(now_us() + seconds * 1'000'000) {
    cluster_ = workshop_.start_cluster({.ranks = kRanks, .aggregators = kAggregators, .levels = 2}, 2);
    stop_file_ = workshop_.folder() + "/stop";
    std::vector<std::string> host_ids;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      host_ids.push_back(cluster_->layout().host_of_rank[rank / ranks_per_host * ranks_per_host]);
    auto fleet = RankFleet::start({.ranks = kRanks,
                                   .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--seed",
                                               std::to_string(seed), "--bytes-max", "262144"},
                                   .folder = workshop_.folder(),
                                   .cluster = cluster_.get(),
                                   .environment = {{"TRIBUTARY_TIMEOUT", "30"}, {"TRIBUTARY_LOG", "debug"}},
                                   .host_ids = std::move(host_ids)});
    if (!fleet) throw std::runtime_error(fleet.error().message);
    fleet_ = std::move(*fleet);
    fleet_->on_round = [this](std::size_t, const RoundReport& report) { note(report); };
  }

  void start() {
    fleet_->listen(milliseconds(30'000), [this] { return fleet_->all_ready() || troubled(); });
    ASSERT_TRUE(fleet_->all_ready()) << trouble_;
  }

  void kill_and_kill_again() {
    for (std::uint64_t number = 1; number <= kills_ || kills_noticed_ < needed(); ++number) {
      ASSERT_LE(number, 2 * kills_ + 5) << "the kills do not hit trees that ranks report to be in use";
      const bool manager_too = number % kKillsPerManagerKill == 0;
      wait_for_trees(number);
      pause(0, 200);
      kill_one(manager_too);
      ASSERT_FALSE(troubled()) << trouble_;
      if (testing::Test::HasFatalFailure()) return;
    }
  }

  void come_back() {
    const std::uint64_t begin = now_us();
    fleet_->listen(kReturnLimit, [this] { return fleet_->all_in_network() || troubled(); });
    ASSERT_FALSE(troubled()) << trouble_;
    EXPECT_TRUE(fleet_->all_in_network()) << "some group did not return to its trees";
    std::printf("after the last kill all groups were on trees within %.1f s\n",
                static_cast<double>(now_us() - begin) / 1e6);
  }

  void end() {
    fleet_->listen(kReturnLimit, [this] { return faults_not_seen(*cluster_).empty() || troubled(); });
    EXPECT_EQ(faults_not_seen(*cluster_), "");
    std::ofstream(stop_file_) << "stop\n";
    fleet_->listen(milliseconds(60'000), [this] { return fleet_->all_ended() || troubled(); });
    ASSERT_TRUE(fleet_->all_ended()) << fleet_->trouble(milliseconds(0));
    ASSERT_FALSE(troubled()) << trouble_;
    std::uint64_t operations = 0, in_network = 0, all = 0;
    for (const RankState& rank : fleet_->ranks()) {
      EXPECT_TRUE(rank.done);
      operations += rank.operations;
      in_network += rank.bytes_in_network;
      all += rank.bytes_in_network + rank.bytes_fallback;
    }
    std::printf(
        "%llu kills, %llu of them noticed by a group in whose tree it was; %llu operations on %u ranks, %.0f %% of "
        "their bytes in-network; longest pause %.1f ms (library: %.1f ms)\n",
        static_cast<unsigned long long>(kills_done_), static_cast<unsigned long long>(kills_noticed_),
        static_cast<unsigned long long>(operations), kRanks,
        100.0 * static_cast<double>(in_network) / static_cast<double>(std::max<std::uint64_t>(all, 1)),
        static_cast<double>(longest_pause_us_) / 1000, static_cast<double>(longest_library_pause_us_) / 1000);
    EXPECT_GT(in_network, 0U);
  }

 private:
  std::uint64_t draw(std::uint64_t below) { return random_() % below; }

  [[nodiscard]] bool troubled() {
    trouble_ = fleet_->trouble(kSilenceMax);
    return !trouble_.empty();
  }

  void pause(std::uint64_t from_ms, std::uint64_t to_ms) {
    fleet_->listen(milliseconds(from_ms + draw(to_ms - from_ms + 1)));
  }

  /// A run in which groups noticed fewer kills would prove little.
  [[nodiscard]] std::uint64_t needed() const noexcept { return (kills_ + 1) / 2; }

  /// Waits until all trees are in use, because a kill then tests most. The wait has a limit.
  void wait_for_trees(std::uint64_t number) {
    const std::uint64_t now = now_us();
    const std::uint64_t left = end_us_ > now && number <= kills_ ? (end_us_ - now) / 1000 / (kills_ - number + 1) : 0;
    fleet_->listen(milliseconds(std::min<std::uint64_t>(left, 5000)),
                   [this] { return fleet_->all_in_network() || troubled(); });
  }

  struct Target {
    std::size_t aggregator = 0;
    std::set<std::string> groups;  // the groups that use the aggregator; empty: unknown
  };

  /// Chooses an aggregator that carries a tree in use, because groups that have left an aggregator do not use it again.
  void aim(Target& target) {
    std::map<std::size_t, std::set<std::string>> choices;
    fleet_->listen(kReturnLimit, [&] {
      choices = trees_in_use(*cluster_, *fleet_);
      return !choices.empty() || troubled();
    });
    ASSERT_FALSE(choices.empty()) << "no group returns to its tree\n" << trouble_;
    auto choice = std::next(choices.begin(), static_cast<std::ptrdiff_t>(draw(choices.size())));
    target = {choice->first, std::move(choice->second)};
  }

  void kill_one(bool manager_too) {
    Target target{.aggregator = draw(cluster_->aggregators()), .groups = {}};
    if (draw(8) != 0) {
      ASSERT_NO_FATAL_FAILURE(aim(target));
    }
    const std::uint64_t failovers_before = failovers(target);
    killed_us_ = now_us();
    gap_us_ = 0;
    if (manager_too && draw(2) == 0) cluster_->kill(cli::LocalCluster::kManager);
    cluster_->kill(target.aggregator);
    pause(0, 100);
    restart(target.aggregator);
    if (manager_too) {
      cluster_->kill(cli::LocalCluster::kManager);
      pause(0, 500);
      restart(cli::LocalCluster::kManager);
    }
    wait_for_notice(target, failovers_before);
    const bool noticed = failovers(target) > failovers_before;
    note_kill(target, manager_too, noticed);
  }

  /// A group that got another tree immediately before the kill does not notice the kill. This is rare, and another kill
  /// replaces it.
  void wait_for_notice(const Target& target, std::uint64_t failovers_before) {
    fleet_->listen(target.groups.empty() ? kStrayLimit : kNoticeLimit,
                   [&] { return failovers(target) > failovers_before || troubled(); });
    fleet_->listen(milliseconds(100));  // the ranks report the round with the pause when it ends
  }

  void note_kill(const Target& target, bool manager_too, bool noticed) {
    ++kills_done_;
    kills_noticed_ += noticed ? 1 : 0;
    longest_pause_us_ = std::max(longest_pause_us_, gap_us_);
    std::string groups;
    for (const std::string& name : target.groups) groups += (groups.empty() ? "under " : ", ") + name;
    std::printf("kill %3llu: %s%s %s, %s; longest pause %.1f ms; now %s\n",
                static_cast<unsigned long long>(kills_done_), cluster_->name_of(target.aggregator).c_str(),
                manager_too ? " and the manager" : "", groups.empty() ? "at random" : groups.c_str(),
                noticed ? "a tree was lost" : "nobody noticed", static_cast<double>(gap_us_) / 1000, paths().c_str());
    std::fflush(stdout);
  }

  void restart(std::size_t which) {
    const auto ok = cluster_->restart(which);
    if (!ok) throw std::runtime_error(ok.error().message);
  }

  void note(const RoundReport& report) {
    if (report.end_us > killed_us_ && killed_us_ != 0) gap_us_ = std::max(gap_us_, report.gap_us);
    for (const GroupReport& group : report.groups)
      longest_library_pause_us_ = std::max(longest_library_pause_us_, group.longest_pause_us);
  }

  /// Counts the failovers of the groups that the kill hits; of all groups if these are unknown.
  [[nodiscard]] std::uint64_t failovers(const Target& target) const {
    static const std::set<std::string> kAll{"world", "lower", "upper", "odd", "even"};
    return failovers_of(target.groups.empty() ? kAll : target.groups, *fleet_);
  }

  [[nodiscard]] std::string paths() const {
    std::map<std::string, bool> by_group;
    for (const RankState& rank : fleet_->ranks()) {
      for (const GroupReport& group : rank.last.groups) by_group[group.name] = group.in_network;
    }
    std::string text;
    for (const auto& [name, in_network] : by_group)
      text += (text.empty() ? "" : ", ") + name + (in_network ? " in-network" : " fallback");
    return text;
  }

  Workshop workshop_;
  std::mt19937_64 random_;
  const std::uint64_t kills_;
  const std::uint64_t end_us_;
  std::string stop_file_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::unique_ptr<RankFleet> fleet_;
  std::string trouble_;
  std::uint64_t killed_us_ = 0, gap_us_ = 0, longest_pause_us_ = 0, longest_library_pause_us_ = 0;
  std::uint64_t kills_done_ = 0, kills_noticed_ = 0;
};

TEST(Chaos, KilledAggregatorsCostAPauseAndNothingElse) {
  const std::uint64_t seed = number_from_environment("TRIBUTARY_CHAOS_SEED", std::random_device{}());
  std::printf("seed %llu (TRIBUTARY_CHAOS_SEED)\n", static_cast<unsigned long long>(seed));
  ChaosRun run(seed, number_from_environment("TRIBUTARY_CHAOS_KILLS", 100),
               number_from_environment("TRIBUTARY_CHAOS_SECONDS", 160));
  run.start();
  if (!HasFatalFailure()) run.kill_and_kill_again();
  if (!HasFatalFailure()) run.come_back();
  if (!HasFatalFailure()) run.end();
}

// All ranks together are on four hosts of two ranks, each half on two of these hosts. In the groups of odd and of even
// ranks, each host has one rank.
TEST(Chaos, KilledAggregatorsUnderHostsOfTwoRanksCostNoMore) {
  const std::uint64_t seed = number_from_environment("TRIBUTARY_CHAOS_SEED", std::random_device{}());
  std::printf("seed %llu (TRIBUTARY_CHAOS_SEED)\n", static_cast<unsigned long long>(seed));
  ChaosRun run(seed, number_from_environment("TRIBUTARY_CHAOS_KILLS", 100) / 3,
               number_from_environment("TRIBUTARY_CHAOS_SECONDS", 160) / 3, 2);
  run.start();
  if (!HasFatalFailure()) run.kill_and_kill_again();
  if (!HasFatalFailure()) run.come_back();
  if (!HasFatalFailure()) run.end();
}

}  // namespace
}  // namespace tributary::chaos
