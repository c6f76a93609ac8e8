// The commands that ask the manager, with a real manager.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cli/cluster/guardian.h"
#include "client/cli/cluster/local_cluster.h"
#include "client/cli/cluster/machine.h"
#include "client/cli/free_port/free_port.h"
#include "tests/system/cli/command.h"
#include "tributary/manager_client/manager_client.h"

namespace tributary::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// A cluster for all tests of this file, with one group of four ranks.
class Listings : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new std::string(cli::make_private_folder().value());
    guardian_ = new cli::Guardian(cli::Guardian::start(*folder_).value());
    auto cluster =
        cli::LocalCluster::start({.shape = {.ranks = 4, .aggregators = 3, .levels = 2}, .folder = *folder_}, guardian_);
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = cluster->release();
    std::string token = read_file(cluster_->job_token_file());
    token.erase(token.find_last_not_of('\n') + 1);
    auto client = manager_client::ManagerClient::create({.url = cluster_->manager_url(), .token = token});
    ASSERT_TRUE(client);
    auto group = client->request_group(
        {.job = "listed", .user = "ada", .processes = 8, .hosts = cluster_->layout().host_of_rank, .lanes = 0});
    ASSERT_TRUE(group) << group.error().message;
    group_ = group->descriptor.group;
    const auto told = client->renew_group(
        group_, false,
        manager_client::GroupTraffic{.operations = 3, .bytes_in_network = 4096, .bytes_between_ranks = 4096});
    ASSERT_TRUE(told) << told.error().message;
  }
  static void TearDownTestSuite() {
    delete cluster_;
    delete guardian_;
    delete folder_;
  }

  void SetUp() override {
    ASSERT_NE(cluster_, nullptr);
    work_.variables["TRIBUTARY_MANAGER"] = cluster_->manager_url();
  }

  Outcome good(const std::vector<std::string>& arguments) {
    Outcome outcome = work_.tributary(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return outcome;
  }
  json json_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--output", "json"});
    return json::parse(good(arguments).output, nullptr, false);
  }

  static std::string* folder_;
  static cli::Guardian* guardian_;
  static cli::LocalCluster* cluster_;
  static std::uint64_t group_;
  Workplace work_;
};
std::string* Listings::folder_ = nullptr;
cli::Guardian* Listings::guardian_ = nullptr;
cli::LocalCluster* Listings::cluster_ = nullptr;
std::uint64_t Listings::group_ = 0;

TEST_F(Listings, StatusShowsTheSums) {
  EXPECT_THAT(good({"status"}).output, HasSubstr("3 active, 0 draining, 0 suspected, 0 expired"));
  EXPECT_THAT(good({"status"}).output,
              testing::ContainsRegex("bytes +4 KiB \\(50.0 %\\) in-network, 4 KiB between ranks"));
  EXPECT_THAT(good({"status"}).output, testing::ContainsRegex("; 8 ranks, 1 lane\n")) << "one lane is no lanes";
  const json status = json_of({"status"});
  EXPECT_EQ(status.at("manager"), cluster_->manager_url());
  EXPECT_EQ(status.at("aggregators").at("active"), 3);
  EXPECT_EQ(status.at("groups").at("in_network"), 1);
  EXPECT_EQ(status.at("groups").at("ranks"), 8) << "the leaders of hosts stand for eight ranks";
  EXPECT_EQ(status.at("groups").at("bytes_in_network"), 4096);
  EXPECT_EQ(status.at("topology").at("fabric"), "fat-tree");
}

TEST_F(Listings, AllAggregatorsOrOneAreListed) {
  EXPECT_THAT(good({"aggregators"}).output, testing::ContainsRegex("NAME +STATE +HOST"));
  EXPECT_THAT(good({"aggregators"}).output, testing::ContainsRegex("aggregator-2 +active +beside-aggregator-2"));
  // The aggregators of this cluster know no rate of their links.
  EXPECT_THAT(good({"aggregators", "-o", "wide"}).output,
              testing::ContainsRegex("aggregator-2 .* s +- +64 +127.0.0.1"));
  EXPECT_EQ(json_of({"aggregators"}).at("aggregators").size(), 3U);
  EXPECT_EQ(json_of({"aggregators", "aggregator-1"}).at("name"), "aggregator-1");
  EXPECT_EQ(lines_of(good({"aggregators", "aggregator-1"}).output).size(), 2U);
  const Outcome unknown = work_.tributary({"aggregators", "nobody"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.error, HasSubstr("nobody"));
}

TEST_F(Listings, AllGroupsOrOneAreListed) {
  const std::string number = std::to_string(group_);
  EXPECT_THAT(good({"groups"}).output,
              testing::ContainsRegex(number + " +listed +ada +[0-9]+s +8 +4 +in-network +1/auto +2 +4 KiB"));
  EXPECT_THAT(good({"groups", "-o", "wide"}).output, HasSubstr("BETWEEN RANKS"));
  EXPECT_THAT(good({"groups", "--output", "yaml"}).output, HasSubstr("groups:\n  - adopted_at: 0\n"));
  EXPECT_EQ(work_.tributary({"groups", "-o", "xml"}).code, 64);
  EXPECT_THAT(good({"groups", number}).output, HasSubstr("ranks 2-3 on worker-2 ... worker-3"));
  EXPECT_EQ(json_of({"groups"}).at("groups").size(), 1U);
  EXPECT_EQ(json_of({"groups", number}).at("hosts").size(), 4U);
  EXPECT_EQ(work_.tributary({"groups", "12345"}).code, 1);
}

TEST_F(Listings, GroupsAreFoundByJobAndUser) {
  EXPECT_EQ(json_of({"groups", "listed"}).at("groups").size(), 1U);
  EXPECT_EQ(json_of({"groups", "--job", "listed", "--user", "ada"}).at("groups").size(), 1U);
  EXPECT_EQ(json_of({"groups", "other"}).at("groups").size(), 0U);
  EXPECT_EQ(json_of({"groups", "--user", "eve"}).at("groups").size(), 0U);
  EXPECT_EQ(json_of({"trees", "--job", "listed"}).at("trees").size(), 1U);
  EXPECT_EQ(json_of({"trees", "--job", "other"}).at("trees").size(), 0U);
}

TEST_F(Listings, AreShownAgainAndAgainWhileWatched) {
  const std::string out = work_.path("watched");
  auto watching =
      work_.start({"run", "--ranks", "1", "--aggregators", "0", "--", "sh", "-c",
                   "exec " TRIBUTARY_PROGRAM " groups --manager " + cluster_->manager_url() + " --watch 0.1 > " + out});
  const auto tables = [&] {
    std::size_t count = 0;
    for (const std::string& line : lines_of(read_file(out))) count += line.starts_with("GROUP") ? 1U : 0U;
    return count;
  };
  EXPECT_TRUE(eventually([&] { return tables() >= 3; })) << read_file(out);
  watching.signal(SIGINT);
  static_cast<void>(work_.finish(std::move(watching)));
}

TEST_F(Listings, TreesAreDrawn) {
  const std::string drawing = good({"trees", "--group", std::to_string(group_)}).output;
  EXPECT_THAT(drawing, HasSubstr("job listed, epoch 1, lane 0: 2 levels, 3 aggregators"));
  EXPECT_THAT(drawing, HasSubstr("└─ ranks 0-1 on worker-0 ... worker-1"));
  EXPECT_EQ(json_of({"trees"}).at("trees").size(), 1U);
}

TEST_F(Listings, TopologyIsDrawn) {
  const std::string drawn = good({"topology"}).output;
  EXPECT_THAT(drawn, HasSubstr("fabric fat-tree, the topology in use, from file: "));
  EXPECT_THAT(drawn, HasSubstr("worker-[2-3] at 100 Gbit/s"));
  EXPECT_EQ(good({"topology", "show"}).output, drawn);
  EXPECT_EQ(json_of({"topology"}).at("switches").size(), 3U);
}

TEST_F(Listings, TopologyInUseIsComparedWithAFile) {
  const std::string file = work_.path("topology.yaml");
  std::string yaml = good({"topology", "show", "-o", "yaml"}).output;
  std::ofstream(file) << yaml;
  const Outcome same = work_.tributary({"topology", "diff", file});
  EXPECT_EQ(same.code, 0) << same.error;
  EXPECT_EQ(same.output, "");
  yaml.replace(yaml.find("100Gbit/s"), 9, "40Gbit/s");
  std::ofstream(work_.path("other.yaml")) << yaml;
  const Outcome other = work_.tributary({"topology", "diff", work_.path("other.yaml")});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.output, HasSubstr("--- the topology in use, from file\n+++ "));
  EXPECT_THAT(other.output, HasSubstr(", 40Gbit/s\n"));
  EXPECT_EQ(work_.tributary({"topology", "diff", file, work_.path("other.yaml")}).code, 1);
  EXPECT_EQ(work_.tributary({"topology", "diff", work_.path("none.yaml")}).code, 78);
}

TEST_F(Listings, AnImportSaysWhatItLeavesOut) {
  std::ofstream(work_.path("topology.conf")) << "SwitchName=s Nodes=n[1-4] LinkSpeed=9\n";
  const std::string out = work_.path("imported.yaml");
  const Outcome imported = work_.tributary({"topology", "import", work_.path("topology.conf"), "-O", out});
  EXPECT_EQ(imported.code, 0) << imported.error;
  EXPECT_EQ(imported.output, "");
  EXPECT_THAT(lines_of(imported.error), testing::SizeIs(2));
  EXPECT_THAT(imported.error, HasSubstr("tributary: warning: 4 links have no rate in their source"));
  EXPECT_THAT(good({"topology", "show", out}).output, HasSubstr("n[1-4] at 100 Gbit/s"));
  const Outcome wrong = work_.tributary({"topology", "import", "--format", "lldp", work_.path("topology.conf")});
  EXPECT_EQ(wrong.code, 78);
  EXPECT_THAT(wrong.error, HasSubstr("topology.conf:1: "));
}

TEST_F(Listings, PlanChangesNothing) {
  const std::vector<std::string> plan{"plan", "worker-[0-1]", "worker-2", "--token-file", cluster_->job_token_file()};
  EXPECT_THAT(good(plan).output, HasSubstr("rank 2 on worker-2"));
  EXPECT_EQ(json_of(plan).at("trees").size(), 1U);
  std::vector<std::string> crowded = plan;
  crowded.insert(crowded.end(), {"--ranks-per-host", "4"});
  EXPECT_THAT(good(crowded).output,
              testing::AllOf(HasSubstr("The 4 ranks of each host reduce in shared memory"),
                             HasSubstr("rank 2 on worker-2"), testing::Not(HasSubstr("ranks 8-11"))));
  work_.variables["TRIBUTARY_LOCAL"] = "off";
  EXPECT_THAT(good(crowded).output,
              testing::AllOf(HasSubstr("ranks 8-11 on worker-2"), testing::Not(HasSubstr("shared memory"))));
  std::vector<std::string> in_two_lanes = plan;
  in_two_lanes.insert(in_two_lanes.end(), {"--lanes", "2"});
  EXPECT_EQ(json_of(in_two_lanes).at("trees").size(), 2U);
  EXPECT_THAT(good({"plan", "elsewhere", "worker-0", "--token-file", cluster_->job_token_file()}).output,
              HasSubstr("would run on the fallback"));
  EXPECT_EQ(json_of({"groups"}).at("groups").size(), 1U);
  const Outcome refused = work_.tributary({"plan", "worker-[0-1]"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error, HasSubstr("token"));
}

TEST_F(Listings, DrainNeedsTheAggregatorTokenAndCanBeUndone) {
  const std::string token = cluster_->aggregator_token_file();
  EXPECT_THAT(good({"drain", "aggregator-0", "--token-file", token}).output, HasSubstr("no new trees"));
  EXPECT_EQ(json_of({"aggregators", "aggregator-0"}).at("state"), "draining");
  const Outcome waited = work_.tributary({"drain", "aggregator-0", "--wait", "0.3", "--token-file", token});
  EXPECT_EQ(waited.code, 1) << waited.output;
  EXPECT_THAT(waited.error, HasSubstr("aggregator-0 still has 0 lanes, and ")) << "the listed group holds it";
  EXPECT_THAT(good({"drain", "aggregator-0", "--undo", "--token-file", token}).output, HasSubstr("again"));
  EXPECT_EQ(json_of({"aggregators", "aggregator-0"}).at("state"), "active") << "as the command has said";
  const Outcome wrong = work_.tributary({"drain", "aggregator-0", "--token-file", cluster_->job_token_file()});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.error, HasSubstr("the role tenant may not POST"));
  EXPECT_EQ(work_.tributary({"drain", "nobody", "--token-file", token}).code, 1);
}

class Unreachable : public testing::Test {
 protected:
  Workplace work_;
};

TEST_F(Unreachable, EveryCommandSaysSoAndGivesAdvice) {
  const std::string url = "http://127.0.0.1:" + std::to_string(cli::free_port().value());
  work_.variables["TRIBUTARY_MANAGER"] = url;
  const std::vector<std::vector<std::string>> commands{{"status"},   {"aggregators"}, {"groups"},        {"trees"},
                                                       {"topology"}, {"drain", "a"},  {"plan", "a", "b"}};
  for (const auto& command : commands) {
    const Outcome outcome = work_.tributary(command);
    EXPECT_EQ(outcome.code, 69) << command[0];
    EXPECT_EQ(outcome.output, "");
    EXPECT_THAT(outcome.error, HasSubstr(url)) << command[0];
    EXPECT_EQ(lines_of(outcome.error).size(), 1U);
  }
}

TEST_F(Unreachable, EveryCommandEndsWithinTheLimit) {
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = work_.tributary({"status", "--manager", "http://192.0.2.1:7470", "--time-limit", "0.5"});
  EXPECT_EQ(outcome.code, 69) << outcome.error;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(Unreachable, HasAnotherExitCodeThanABadConfiguration) {
  EXPECT_EQ(work_.tributary({"status"}).code, 78);
  EXPECT_THAT(work_.tributary({"status"}).error, HasSubstr("TRIBUTARY_MANAGER"));
  EXPECT_EQ(work_.tributary({"status", "--manager", "https://somewhere"}).code, 78);
  EXPECT_EQ(work_.tributary({"status", "--manager", "somewhere:7470"}).code, 78);
  const Outcome outcome =
      work_.tributary({"status", "--manager", "http://127.0.0.1:1", "--token-file", work_.path("nothing")});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_THAT(outcome.error, HasSubstr(work_.path("nothing")));
}

}  // namespace
}  // namespace tributary::cli_test
