// Aggregators die under a program in MPI, again and again: no call fails, and each has MPI's own result.
// TRIBUTARY_TEST_KILLS: how often, by default 100 times.
#include "tests/system/mpi/job.h"

namespace tributary::mpi_test {
namespace {

TEST(MpiKills, NoCallFailsAndEachHasTheResultThatMpiGives) {
  const auto kills = chaos::number_from_environment("TRIBUTARY_TEST_KILLS", 100);
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = kRanks, .aggregators = 2, .levels = 1}, 1, 1,
                                              "group_lease: 3s\nfailed_exclusion: 1s\n");
  const std::string stop = workshop.folder() + "/stop";
  Job job(workshop, cluster.get(), MPI_CHECK " until " + stop, {{"TRIBUTARY_TIMEOUT", "60"}});
  ASSERT_TRUE(job.wait_for("more rounds")) << job.output();
  for (std::uint64_t kill = 0; kill < kills; ++kill) {
    const std::size_t which = kill % 2;
    cluster->kill(which);
    ASSERT_TRUE(job.wait_for_more("more rounds")) << "after kill " << kill << ":\n" << job.output();
    ASSERT_TRUE(cluster->restart(which));
    ASSERT_TRUE(cluster->wait_until_serving());
    ASSERT_TRUE(job.wait_for_more("more rounds")) << "after the restart " << kill << ":\n" << job.output();
  }
  std::ofstream(stop).put('\n');
  ASSERT_TRUE(job.good()) << job.output();
  const std::string output = job.output();
  EXPECT_EQ(count(output, "all right on 4 ranks"), 1U) << output;
  EXPECT_GT(reported_bytes(output, "in-network "), 0U) << output;
  std::cout << kills << " kills, " << count(output, "more rounds") << "0 rounds, "
            << output.substr(output.find("bytes of Tributary's calls")) << '\n';
}

}  // namespace
}  // namespace tributary::mpi_test
