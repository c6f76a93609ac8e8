// tributary-nccl-check loads libnccl-net-tributary.so, and compares every element and every byte.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/system/chaos/workshop.h"
#include "tests/system/nccl/check_ranks.h"

namespace tributary::nccl_test {
namespace {

using chaos::Workshop;
using std::chrono::seconds;

constexpr seconds kLimit{240};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(NcclPlugin, SumsInTheNetworkThroughTheTablesOfEveryVersion) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  for (int version = 6; version <= 12; ++version) {
    CheckRanks ranks(2, {"--newest", std::to_string(version), "--communicators", "1", "--connections", "1"},
                     workshop.folder(), cluster.get(), {{"TRIBUTARY_REQUIRE", "in-network"}});  // waits for the tree
    ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
    const std::string output = ranks.output();
    EXPECT_EQ(count(output, "Loaded net plugin tributary (v" + std::to_string(version) +
                                "), collnet plugin tributary (v" + std::to_string(version) + ")"),
              2U);
    EXPECT_EQ(count(output, "48 types and operators"), 2U);
    EXPECT_EQ(count(output, "sums in the network"), 2U) << output;
  }
}

TEST(NcclPlugin, HasASecondNameForRccl) {
  Workshop workshop;
  const std::filesystem::path plugin = TRIBUTARY_NCCL_PLUGIN;
  CheckRanks ranks(2, {"--without-collnet", "--connections", "1"}, workshop.folder(), nullptr, {}, {},
                   plugin.parent_path() / "librccl-net-tributary.so");
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "Loaded net plugin tributary (v12)"), 2U);
}

TEST(NcclPlugin, LeavesProductsOfFloatsToNcclWhereNumericsAreExactAndOnlyTreesMayCarryThem) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  CheckRanks ranks(2, {"--communicators", "1", "--connections", "1"}, workshop.folder(), cluster.get(),
                   {{"TRIBUTARY_NUMERICS", "exact"}, {"TRIBUTARY_PATH", "in-network"}});
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "42 types and operators"), 2U) << ranks.output();
}

TEST(NcclPlugin, HoldsSixtyFourRequestsOfEachOfSeveralCommunicators) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 3, .aggregators = 1, .levels = 1}, 1);
  CheckRanks ranks(3, {"--communicators", "4", "--depth", "64", "--channels", "64", "--connections", "8"},
                   workshop.folder(), cluster.get());
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "4 communicators"), 3U);
}

TEST(NcclPlugin, FinishesWhatWasUnderWayWhenAnAggregatorIsKilled) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 4, .aggregators = 3, .levels = 2}, 1);
  const std::string metrics = workshop.folder() + "/metrics-%p";
  CheckRanks ranks(4, {"--communicators", "2", "--seconds", "8", "--connections", "1"}, workshop.folder(),
                   cluster.get(), {{"TRIBUTARY_NCCL_METRICS", metrics}, {"TRIBUTARY_TIMEOUT", "120"}});
  ASSERT_TRUE(ranks.wait_for("sums in the network", kLimit)) << ranks.output();
  ASSERT_TRUE(ranks.wait_for("round 1\n", kLimit)) << ranks.output();
  cluster->kill(0);
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  const std::string output = ranks.output();
  EXPECT_GE(count(output, "lost its tree; the ranks have finished the calls under way without it"), 4U) << output;
  EXPECT_EQ(count(output, "all exact"), 8U) << "every rank reports on collectives and on messages";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(workshop.folder())) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("metrics-")) continue;
    ++files;
    const std::string counters = read_file(entry.path());
    const std::string series = "tributary_nccl_failovers_total{pid=\"" + name.substr(8) + "\"} ";
    EXPECT_NE(counters.find(series), std::string::npos) << counters;
    EXPECT_EQ(counters.find(series + "0\n"), std::string::npos) << counters;
  }
  EXPECT_EQ(files, 4U);
}

std::string lost_rank_timeout() {
  return std::to_string(chaos::number_from_environment("TRIBUTARY_LOST_RANK_TIMEOUT", 20));
}

// Only an error can tell NCCL of a lost node; without an error NCCL would wait for ever.
TEST(NcclPlugin, FailsWhatWaitsForANodeThatDied) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 3, .aggregators = 1, .levels = 1}, 1);
  CheckRanks ranks(3, {"--communicators", "2", "--rounds", "1000000", "--connections", "1"}, workshop.folder(),
                   cluster.get(), {{"TRIBUTARY_TIMEOUT", lost_rank_timeout()}});
  ASSERT_TRUE(ranks.wait_for("round 1\n", kLimit)) << ranks.output();
  ranks.kill_while_others_wait(2, seconds(2));
  for (const std::uint32_t rank : {0U, 1U}) {
    const auto end = ranks.end_of(rank, kLimit);
    ASSERT_TRUE(end) << "rank " << rank << " waits for ever\n" << ranks.output();
    EXPECT_EQ(end->code, 1) << ranks.output_of(rank);
    EXPECT_EQ(count(ranks.output_of(rank), "FAILED: test returned ncclRemoteError"), 1U) << ranks.output_of(rank);
    EXPECT_GE(count(ranks.output_of(rank), "a collective of rank"), 1U) << ranks.output_of(rank);
  }
}

TEST(NcclPlugin, FailsMessagesOfAPeerThatDied) {
  Workshop workshop;
  CheckRanks ranks(2, {"--without-collnet", "--message-rounds", "1000000"}, workshop.folder(), nullptr);
  ASSERT_TRUE(ranks.wait_for("rank 0: messages: the connections are open", kLimit)) << ranks.output();
  ASSERT_TRUE(ranks.wait_for("rank 1: messages: the connections are open", kLimit)) << ranks.output();
  std::this_thread::sleep_for(seconds(1));
  ranks.kill_while_others_wait(1, seconds(3));
  const auto end = ranks.end_of(0, seconds(60));
  ASSERT_TRUE(end) << "rank 0 waits for ever\n" << ranks.output();
  EXPECT_EQ(end->code, 1) << ranks.output_of(0);
  EXPECT_EQ(count(ranks.output_of(0), "FAILED: net test returned ncclRemoteError"), 1U) << ranks.output_of(0);
  EXPECT_GE(count(ranks.output_of(0), "did not come: ") + count(ranks.output_of(0), "was not sent: "), 1U)
      << ranks.output_of(0);
}

TEST(NcclPlugin, LeavesCollNetOffWhereNoManagerIsConfigured) {
  Workshop workshop;
  CheckRanks ranks(2, {"--without-collnet"}, workshop.folder(), nullptr);
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "CollNet stays off on all 2 ranks"), 2U);
  EXPECT_EQ(count(ranks.output(), "WARN"), 0U) << "nobody asked for a service: nothing is amiss";
}

TEST(NcclPlugin, FailsWithACodeOfItsOwnIfATreeIsRequiredAndNoByteWentByOne) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  const std::vector<std::string> small{"--communicators", "1", "--connections", "1"};
  const cli::Environment required{{"TRIBUTARY_REQUIRE", "in-network"}};
  const auto expect_69 = [](CheckRanks& ranks, const std::string& why) {
    for (const std::uint32_t rank : {0U, 1U}) {
      const auto end = ranks.end_of(rank, kLimit);
      ASSERT_TRUE(end) << ranks.output();
      EXPECT_EQ(end->code, 69) << ranks.output_of(rank);
      EXPECT_EQ(count(ranks.output_of(rank), why), 1U) << ranks.output_of(rank);
    }
  };
  CheckRanks without(2, small, workshop.folder(), nullptr, required);
  expect_69(without, "FAILED: --require in-network: CollNet is off");
  cli::Environment one_host = required;
  one_host["TRIBUTARY_HOST_ID"] = "one";
  CheckRanks local(2, small, workshop.folder(), cluster.get(), {}, {{0, one_host}, {1, one_host}});
  expect_69(local, "no byte went by a tree: all ranks are on one host");
  EXPECT_EQ(count(local.output(), "rank 0: bytes in-network 0 (0.0 %), between ranks 0, in shared memory "), 1U);
  EXPECT_EQ(count(local.output(), "rank 1: bytes in-network 0 (0.0 %), between ranks 0, in shared memory "), 1U);
  EXPECT_EQ(count(local.output(), "in shared memory 0\n"), 0U) << local.output();
  EXPECT_EQ(count(local.output(), "has no tree"), 0U) << "shared memory is no lack of a tree\n" << local.output();
}

// NCCL 2.30.3 and later end a job whose ranks report different numbers of CollNet devices; tributary-nccl-check does
// the same.
TEST(NcclPlugin, ReportsCollNetEverywhereWhereOneRankHasNoManager) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  const std::vector<std::string> small{"--communicators", "1", "--connections", "1"};
  for (const char* other : {"", "http://127.0.0.1:1"}) {
    // Only rank 0 asks the manager for the group and its trees: rank 1 takes part without a manager.
    CheckRanks on(2, small, workshop.folder(), cluster.get(), {}, {{1, {{"TRIBUTARY_MANAGER", other}}}});
    ASSERT_TRUE(on.all_good(kLimit)) << on.output();
    EXPECT_EQ(count(on.output(), "sums in the network"), 2U) << on.output();
    // Without a manager at rank 0 no rank uses CollNet: both ranks learn this in connect, and go on.
    CheckRanks off(2, {"--without-collnet", "--connections", "1"}, workshop.folder(), cluster.get(), {},
                   {{0, {{"TRIBUTARY_MANAGER", other}}}});
    ASSERT_TRUE(off.all_good(kLimit)) << off.output();
    EXPECT_EQ(count(off.output(), "CollNet stays off on all 2 ranks"), 2U) << off.output();
  }
}

TEST(NcclPlugin, WaitsTwoSecondsForAManagerThatAcceptsAndDoesNotAnswer) {
  Workshop workshop;
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  ASSERT_EQ(bind(silent, reinterpret_cast<const sockaddr*>(&at), bytes), 0);
  ASSERT_EQ(listen(silent, 16), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  CheckRanks ranks(2, {"--without-collnet", "--connections", "1"}, workshop.folder(), nullptr,
                   {{"TRIBUTARY_MANAGER", url}});
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  close(silent);
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::string output = ranks.output_of(rank);
    EXPECT_EQ(count(output, "within 2000 ms"), 1U) << output;
    const auto where = output.find("CollNet is off, which took ");
    ASSERT_NE(where, std::string::npos) << output;
    EXPECT_LT(std::stoi(output.substr(where + 27)), 4500) << "the library itself waits for five seconds\n" << output;
  }
}

TEST(NcclPlugin, LeavesCollNetOffAndSaysSoWhereTheManagerDoesNotAnswer) {
  Workshop workshop;
  CheckRanks ranks(2, {"--without-collnet"}, workshop.folder(), nullptr, {{"TRIBUTARY_MANAGER", "http://127.0.0.1:1"}});
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_GE(count(ranks.output(), "WARN"), 2U) << ranks.output();
}

}  // namespace
}  // namespace tributary::nccl_test
