// Programs in MPI over libtributary-mpi: the same results, and the report says which way the calls went.
#include <regex>

#include "tests/system/mpi/job.h"

namespace tributary::mpi_test {
namespace {

TEST(Mpi, EveryKindOfCallHasTheResultThatMpiGives) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 3, .levels = 2}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " all");
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  EXPECT_EQ(count(output, "all right on 4 ranks"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Allreduce: by Tributary 69 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Reduce_scatter: by Tributary 3 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Barrier: by Tributary 0 calls"), 1U) << output;
  EXPECT_GT(reported_bytes(output, "in-network "), 10'000'000U) << output;
  EXPECT_EQ(reported_bytes(output, "in memory "), 0U) << output;
}

TEST(Mpi, IntegersOfEveryWidthBitsTruthValuesAndSmallPairsGoByTributary) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " types");
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  EXPECT_TRUE(output.contains("MPI_Allreduce: by Tributary 96 calls with ")) << output;
  EXPECT_TRUE(std::regex_search(output, std::regex("MPI_Allreduce: .*, by MPI 2 calls"))) << output;
  EXPECT_EQ(count(output, "MPI_Reduce: by Tributary 4 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Reduce_scatter: by Tributary 2 calls"), 1U) << output;
}

TEST(Mpi, CollectivesThatGiveEachRankAPartGoByTributary) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " parts");
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  EXPECT_EQ(count(output, "MPI_Gather: by Tributary 9 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Scatter: by Tributary 9 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Alltoall: by Tributary 3 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Reduce_scatter: by Tributary 2 calls"), 1U) << output;
  EXPECT_EQ(count(output, "MPI_Allgather: by Tributary 4 calls"), 1U) << output;
  EXPECT_TRUE(output.contains("MPI_Alltoallv: by Tributary 4 calls")) << output;
}

TEST(Mpi, PartsOfUnequalSizesGoByTributaryUnlessOneIsMuchLargerThanTheOthers) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " 'unequal counts'");
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  for (const char* calls : {"MPI_Reduce_scatter of unequal counts: by Tributary 9 calls.*, by MPI 3 calls",
                            "MPI_Allgatherv of unequal counts: by Tributary 7 calls.*, by MPI 2 calls"}) {
    EXPECT_TRUE(std::regex_search(output, std::regex(calls))) << output;
  }
  EXPECT_GT(reported_bytes(output, "in-network "), 500'000U) << output;
}

// The program's ranks start their requests in different orders, and mix them with MPI's own.
TEST(Mpi, PersistentCollectivesGoByTributary) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " persistent");
  ASSERT_TRUE(job.good()) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Allreduce: by Tributary 128 calls"), 1U) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Bcast: by Tributary 42 calls"), 1U) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Allgather: by Tributary 42 calls"), 1U) << job.output();
}

TEST(Mpi, AnInfoKeyChoosesTheNumericsOfACommunicator) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " numerics");
  ASSERT_TRUE(job.good()) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Allreduce: by Tributary 8 calls"), 1U) << job.output();
  EXPECT_EQ(count(job.output(), "info key tributary_numerics: the value has no meaning"), 1U) << job.output();
  EXPECT_EQ(count(job.output(), "info key tributary_numerics: the ranks give different values"), 1U) << job.output();
}

TEST(Mpi, CallsWithLargeCountsGoByTributary) {
  if (Job::kOpenMpi) GTEST_SKIP() << "Open MPI 4 has no calls with large counts";
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " 'large counts'");
  ASSERT_TRUE(job.good()) << job.output();
  for (const char* calls :
       {"MPI_Allreduce: by Tributary 2 ", "MPI_Allgather: by Tributary 1 ", "MPI_Bcast: by Tributary 1 "}) {
    EXPECT_EQ(count(job.output(), calls), 1U) << job.output();
  }
}

TEST(Mpi, CallsOfNoBytesGoByTributaryIfTheLimitIsZero) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " all", {{"TRIBUTARY_MPI_MIN_BYTES", "0"}});
  ASSERT_TRUE(job.good()) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Barrier: by Tributary 2 calls"), 1U) << job.output();
}

TEST(Mpi, MeasurementsDecideAndAllRanksDecideAlike) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " many", {{"TRIBUTARY_MPI_MIN_BYTES", "auto"}});
  ASSERT_TRUE(job.good()) << job.output();
  // 200 calls of one size: either way may win, but the trials take 3 calls by MPI and 4 by Tributary.
  const std::string output = job.output();
  EXPECT_TRUE(output.contains("MPI_Allreduce: by Tributary 4 calls") ||
              output.contains("MPI_Allreduce: by Tributary 197 calls"))
      << output;
}

TEST(Mpi, EachClassOfSizesOfAlltoallvHasItsOwnTrials) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " exchanges", {{"TRIBUTARY_MPI_MIN_BYTES", "auto"}});
  ASSERT_TRUE(job.good()) << job.output();
  // 32 calls of each of two sizes. 15 calls of the second size count for the first one, because the ranks agree on sizes
  // only in each 16th call. 3 of the 47 and of the 17 calls go by MPI and 4 by Tributary, and the others either way.
  const std::string output = job.output();
  bool found = false;
  for (const int calls : {8, 18, 48, 58})
    found |= output.contains("MPI_Alltoallv: by Tributary " + std::to_string(calls) + " calls");
  EXPECT_TRUE(found) << output;
}

TEST(Mpi, AMessageUnderWayEndsWhileItsSenderIsInACollective) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  // Over TCP Open MPI's sender must take part in the message, as between hosts.
  Job job(workshop, cluster.get(), MPI_CHECK " message", {{"OMPI_MCA_pml", "ob1"}, {"OMPI_MCA_btl", "tcp,self"}});
  ASSERT_TRUE(job.good()) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Allreduce: by Tributary 2 calls"), 1U) << job.output();
}

TEST(Mpi, SeveralThreadsCallAtOnce) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " threads");
  ASSERT_TRUE(job.good()) << job.output();
  // On a busy machine the manager may answer too late; a communicator that does not reach it goes by MPI, and says so.
  const bool late = job.output().contains("another reason than their size: tributary_service_check: ");
  // 240 of three threads that only sum, and 4 in each of 64 rounds of the threads that mix calls.
  for (const auto& [call, calls] : {std::pair{"MPI_Allreduce", 496U}, std::pair{"MPI_Bcast", 64U}}) {
    std::smatch told;
    const std::string output = job.output();
    ASSERT_TRUE(std::regex_search(
        output, told,
        std::regex(std::string(call) + R"(: by Tributary (\d+) calls with \d+ bytes, by MPI (\d+) calls)")))
        << output;
    const auto by_tributary = std::stoul(told[1]), by_mpi = std::stoul(told[2]);
    // The starts of a persistent request that goes by MPI count once, together.
    EXPECT_TRUE(by_tributary + by_mpi == calls || (late && by_tributary + by_mpi < calls)) << output;
    EXPECT_GT(by_tributary, 0U) << output;
    EXPECT_TRUE(late || by_mpi == 0) << output;
  }
}

TEST(Mpi, WithoutAManagerEveryCallGoesByMpi) {
  Workshop workshop;
  Job job(workshop, nullptr, MPI_CHECK " all");
  ASSERT_TRUE(job.good()) << job.output();
  EXPECT_EQ(count(job.output(), "MPI_Allreduce: by Tributary 0 calls"), 1U) << job.output();
  EXPECT_EQ(count(job.output(), "another reason than their size: "), 1U) << job.output();
}

TEST(Mpi, CallsGoByTributaryOnceTheManagerIsBackAndAnAggregatorMayDie) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 2, .levels = 1}, 1);
  const std::string stop = workshop.folder() + "/stop";
  cluster->kill(cli::LocalCluster::kManager);
  Job job(workshop, cluster.get(), MPI_CHECK " until " + stop, {{"TRIBUTARY_LOG", "info"}});
  ASSERT_TRUE(job.wait_for("calls go by MPI until the manager answers")) << job.output();
  ASSERT_TRUE(job.wait_for("more rounds")) << job.output();
  ASSERT_TRUE(cluster->restart(cli::LocalCluster::kManager));
  ASSERT_TRUE(cluster->wait_until_serving());
  ASSERT_TRUE(job.wait_for("the manager answers\n")) << job.output();
  ASSERT_TRUE(job.wait_for("in-network reduction in use")) << job.output();
  ASSERT_TRUE(job.wait_for_more("more rounds")) << job.output();
  cluster->kill(0);
  ASSERT_TRUE(job.wait_for_more("more rounds")) << job.output();
  std::ofstream(stop).put('\n');
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  EXPECT_EQ(count(output, "all right on 4 ranks"), 1U) << output;
  EXPECT_GT(reported_bytes(output, "in-network "), 0U) << output;
  for (const char* calls : {"MPI_Allreduce", "MPI_Allgatherv of unequal counts"}) {
    const std::regex both(std::string(calls) + ": by Tributary [1-9].*, by MPI [1-9]");
    EXPECT_TRUE(std::regex_search(output, both)) << output;
  }
  EXPECT_EQ(count(output, "another reason than their size: tributary_service_check: "), 1U) << output;
}

TEST(Mpi, AKilledAggregatorCostsNoCall) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 3, .levels = 2}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " seconds 6");
  ASSERT_TRUE(job.wait_for("first round")) << job.output();
  cluster->kill(0);
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  EXPECT_EQ(count(output, "all right on 4 ranks"), 1U) << output;
  EXPECT_GT(reported_bytes(output, "in-network "), 0U) << output;
  EXPECT_GT(reported_bytes(output, "in memory "), 0U) << "no call went on between the ranks:\n" << output;
}

TEST(Mpi, ALostRankIsAnErrorOfMpiOnEveryOtherRank) {
  if (!Job::kOpenMpi) GTEST_SKIP() << "MPICH's mpirun kills all ranks when one has died";
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " lose", {{"TRIBUTARY_TIMEOUT", "60"}});
  EXPECT_TRUE(job.wait_for("rank 0 got: Tributary: a rank is gone: rank 1")) << job.output();
}

TEST(Mpi, ARankThatStaysAwayIsAnErrorOfMpiOnEveryOtherRank) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  Job job(workshop, cluster.get(), MPI_CHECK " miss", {{"TRIBUTARY_TIMEOUT", "6"}});
  for (const char* rank : {"rank 0", "rank 2", "rank 3"}) {
    ASSERT_TRUE(job.wait_for(std::string(rank) + " got: Tributary: timed out: ")) << job.output();
  }
}

TEST(Mpi, ProgramsInFortranGoByTributaryToo) {
  std::istringstream programs(MPI_CHECK_FORTRAN);
  std::string program;
  if (!std::getline(programs, program, ':'))
    GTEST_SKIP() << "mpif90." MPI_NAME " is not installed: scripts/setup --mpi";
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
  do {
    Job job(workshop, cluster.get(), program);
    ASSERT_TRUE(job.good()) << program << job.output();
    EXPECT_EQ(count(job.output(), "all right on 4 ranks"), 1U) << program << job.output();
    if (program.contains("persistent")) {
      EXPECT_EQ(count(job.output(), "MPI_Allreduce: by Tributary 5 calls"), 1U) << program << job.output();
      EXPECT_EQ(count(job.output(), "MPI_Bcast: by Tributary 5 calls"), 1U) << program << job.output();
      continue;
    }
    for (const char* name : {"MPI_Bcast", "MPI_Gather", "MPI_Scatter", "MPI_Alltoall", "MPI_Alltoallv", "MPI_Reduce",
                             "MPI_Reduce_scatter"}) {
      EXPECT_EQ(count(job.output(), std::string(name) + ": by Tributary 1 calls"), 1U) << program << job.output();
    }
    EXPECT_EQ(count(job.output(), "MPI_Allgather: by Tributary 2 calls"), 1U) << program << job.output();
    EXPECT_GT(reported_bytes(job.output(), "in-network "), 300'000U) << program << job.output();
  } while (std::getline(programs, program, ':'));
}

TEST(Mpi, AnUnreadableLimitIsNamedAndTheDefaultHolds) {
  Workshop workshop;
  Job job(workshop, nullptr, MPI_CHECK " all", {{"TRIBUTARY_MPI_MIN_BYTES", "many"}});
  ASSERT_TRUE(job.good()) << job.output();
  EXPECT_EQ(count(job.output(), "TRIBUTARY_MPI_MIN_BYTES: 'many': "), 1U) << job.output();
}

}  // namespace
}  // namespace tributary::mpi_test
