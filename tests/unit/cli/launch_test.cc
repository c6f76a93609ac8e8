#include "client/cli/perf/launch.h"

#include <gmock/gmock.h>

#include <map>

namespace tributary::cli {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<Launch> detect(const Variables& variables) {
  return detect_launch([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

void expect_launch(const Variables& variables, std::uint32_t rank, std::uint32_t ranks, const std::string& host,
                   std::uint16_t port) {
  const auto launch = detect(variables);
  ASSERT_TRUE(launch) << launch.error().message;
  EXPECT_EQ(launch->rank, rank);
  EXPECT_EQ(launch->ranks, ranks);
  EXPECT_EQ(launch->master_host, host);
  EXPECT_EQ(launch->master_port, port);
}

TEST(Launch, WithoutAnyLauncherThereIsOneRank) {
  expect_launch({}, 0, 1, "", kMasterPortDefault);
}

TEST(Launch, UnderstandsEveryLauncher) {
  const Variables master{{"MASTER_ADDR", "head"}, {"MASTER_PORT", "1234"}};
  const auto with_master = [&](Variables variables) {
    variables.insert(master.begin(), master.end());
    return variables;
  };
  expect_launch(with_master({{"RANK", "3"}, {"WORLD_SIZE", "8"}}), 3, 8, "head", 1234);
  expect_launch(with_master({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), 1, 2, "head", 1234);
  expect_launch(with_master({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}), 2, 4, "head", 1234);
  expect_launch(with_master({{"MV2_COMM_WORLD_RANK", "0"}, {"MV2_COMM_WORLD_SIZE", "3"}}), 0, 3, "head", 1234);
  expect_launch(with_master({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "6"}}), 5, 6, "head", 1234);
  expect_launch(with_master({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "6"}}), 5, 6, "head", 1234);
}

TEST(Launch, TheRanksOwnLauncherWinsOverTheBatchSystemAroundIt) {
  expect_launch({{"SLURM_PROCID", "0"},
                 {"SLURM_NTASKS", "1"},
                 {"RANK", "3"},
                 {"WORLD_SIZE", "4"},
                 {"MASTER_ADDR", "127.0.0.1"},
                 {"MASTER_PORT", "15000"}},
                3, 4, "127.0.0.1", 15000);
}

TEST(Launch, RanksOfOneHostMeetWithoutAnAddress) {
  expect_launch({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, 1,
                2, "127.0.0.1", kMasterPortDefault);
  expect_launch({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}}, 1, 2, "127.0.0.1",
                kMasterPortDefault);
  expect_launch({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, 1,
                4, "", kMasterPortDefault);
}

TEST(Launch, KnowsTheRanksNumberOnItsHost) {
  const auto expect_local = [](const Variables& variables, std::uint32_t local_rank) {
    const auto launch = detect(variables);
    ASSERT_TRUE(launch) << launch.error().message;
    EXPECT_EQ(launch->local_rank, local_rank);
  };
  expect_local({{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}, 1);
  expect_local({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}, 2);
  expect_local({{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "3"}}, 3);
  expect_local({{"MV2_COMM_WORLD_RANK", "5"}, {"MV2_COMM_WORLD_SIZE", "8"}, {"MV2_COMM_WORLD_LOCAL_RANK", "1"}}, 1);
  expect_local({{"PMIX_RANK", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "2"}}, 2);
  expect_local({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "3"}}, 3);
  expect_local({{"RANK", "5"}, {"WORLD_SIZE", "8"}}, 5);
  expect_local({}, 0);
}

TEST(Launch, SlurmNamesTheFirstHost) {
  expect_launch({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NODELIST", "gpu[03-07,9],login1"}}, 1, 2,
                "gpu03", kMasterPortDefault);
  EXPECT_EQ(first_of_node_list("a"), "a");
  EXPECT_EQ(first_of_node_list("a,b"), "a");
  EXPECT_EQ(first_of_node_list("a[1]"), "a1");
  EXPECT_EQ(first_of_node_list("a[10,12-14],b"), "a10");
  EXPECT_EQ(first_of_node_list(""), "");
}

TEST(Launch, LeavesTorchrunItsPort) {
  expect_launch({{"RANK", "0"},
                 {"WORLD_SIZE", "2"},
                 {"MASTER_ADDR", "head"},
                 {"MASTER_PORT", "29400"},
                 {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
                0, 2, "head", 29401);
}

TEST(Launch, NamesTheVariableThatIsWrong) {
  const auto expect_wrong = [](const Variables& variables, const char* name) {
    const auto launch = detect(variables);
    ASSERT_FALSE(launch) << name;
    EXPECT_EQ(launch.error().code, Errc::bad_config);
    EXPECT_THAT(launch.error().message, HasSubstr(name));
  };
  expect_wrong({{"RANK", "x"}, {"WORLD_SIZE", "2"}}, "RANK");
  expect_wrong({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK");
  expect_wrong({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK");
  expect_wrong({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE");
  expect_wrong({{"RANK", "0"}, {"WORLD_SIZE", "2 "}}, "WORLD_SIZE");
  expect_wrong({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT");
  expect_wrong({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "x"}}, "LOCAL_RANK");
}

}  // namespace
}  // namespace tributary::cli
