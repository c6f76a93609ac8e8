// `tributary run -- tributary perf` checks every collective, over trees of one and two levels and without a service.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kInNetwork[] = {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather"};
constexpr const char* kDirect[] = {"all_to_all", "gather", "scatter", "sendrecv"};

class Perf : public testing::Test {
 protected:
  /// Makes every operation use the tree, if the group has one; an aggregator that waits long for a processor does not
  /// hang.
  Perf() {
    work_.variables["TRIBUTARY_TUNING"] = "off";
    work_.variables["TRIBUTARY_LOCAL"] = "off";
    work_.variables["TRIBUTARY_HANG_AFTER"] = "10000";
  }

  /// The report of rank 0.
  json perf(std::vector<std::string> run, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"run"};
    command.insert(command.end(), run.begin(), run.end());
    command.insert(command.end(), {"--", TRIBUTARY_PROGRAM, "perf"});
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"-w", "1", "-n", "2", "-c", "1", "--json", work_.path("report")});
    outcome_ = work_.tributary(command);
    EXPECT_EQ(outcome_.code, 0) << outcome_.output << outcome_.error;
    json report = json::parse(read_file(work_.path("report")), nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << read_file(work_.path("report"));
    return report;
  }

  static void expect_right(const json& report, const std::string& path, int levels) {
    EXPECT_EQ(report.at("at_start").at("path"), path) << report.at("at_start").at("reason");
    EXPECT_EQ(report.at("at_start").at("levels"), levels);
    EXPECT_EQ(report.at("wrong"), 0);
    EXPECT_TRUE(report.at("checked"));
    for (const json& row : report.at("rows")) {
      EXPECT_EQ(row.at("out_of_place").at("wrong"), 0);
      EXPECT_GT(row.at("out_of_place").at("time_us"), 0);
    }
  }

  void check_all(const std::vector<std::string>& run, const std::string& path, int levels) {
    if (path == "in-network") work_.variables["TRIBUTARY_BEGIN_WITHIN"] = "40000";
    for (const char* collective : kInNetwork) {
      const json report = perf(run, {collective, "-b", "64", "-e", "1M", "-f", "128", "-r", "1"});
      expect_right(report, path, levels);
      const bool on_tree = path == "in-network";
      EXPECT_EQ(report.at(on_tree ? "bytes_fallback" : "bytes_in_network"), 0) << collective;
      EXPECT_GT(report.at(on_tree ? "bytes_in_network" : "bytes_fallback"), 1U << 20) << collective;
      for (const json& row : report.at("rows")) EXPECT_EQ(row.at("in_place").at("wrong"), 0) << collective;
    }
    for (const char* collective : kDirect) {
      const json report = perf(run, {collective, "-b", "64", "-e", "1M", "-f", "128", "-r", "1"});
      expect_right(report, path, levels);
      EXPECT_EQ(report.at("bytes_in_network"), 0) << collective;
    }
    expect_right(perf(run, {"barrier"}), path, levels);
    EXPECT_EQ(work_.left_behind(), "");
  }

  Workplace work_;
  Outcome outcome_;
};

TEST_F(Perf, IsRightOverOneLevel) {
  check_all({"--ranks", "3", "--aggregators", "1", "--levels", "1"}, "in-network", 1);
}

/// Returns the content of the only file in `folder`.
json only_file_in(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  EXPECT_THAT(files, testing::ElementsAre(HasSubstr("training-"))) << "rank 0 alone writes a file";
  return files.size() == 1 ? json::parse(read_file(files[0]), nullptr, false) : json();
}

TEST_F(Perf, RankZeroWritesTheStatisticsOfTheJob) {
  work_.variables["TRIBUTARY_STATISTICS"] = work_.path("statistics");
  work_.variables["TRIBUTARY_JOB"] = "training";
  std::filesystem::create_directory(work_.path("statistics"));
  // Such a call lasts longer than a tick of the coarse clock, which gives its time.
  const json report =
      perf({"--ranks", "3", "--aggregators", "1", "--levels", "1"}, {"all_reduce", "-b", "16M", "-e", "16M"});
  const json statistics = only_file_in(work_.path("statistics"));
  ASSERT_TRUE(statistics.is_object()) << outcome_.error;
  EXPECT_EQ(statistics.at("job"), "training");
  EXPECT_EQ(statistics.at("ranks"), 3);
  EXPECT_EQ(statistics.at("last_path"), "in-network");
  EXPECT_GE(statistics.at("operations"), 6);  // 2 measured and 1 before them, out of place and in place
  EXPECT_GE(statistics.at("bytes").at("in_network"), report.at("bytes_in_network"));
  EXPECT_EQ(statistics.at("bytes").at("in_shared_memory"), 0);
  EXPECT_GT(statistics.at("seconds_in_collectives"), 0);
  EXPECT_LT(statistics.at("seconds_in_collectives"), statistics.at("seconds"));
  EXPECT_EQ(statistics.at("trees").at("lost"), 0);
  EXPECT_EQ(statistics.at("failure"), "");
  EXPECT_TRUE(statistics.at("quicker").is_array());
}

TEST_F(Perf, StatisticsOfACallInSharedMemoryHaveItsBytes) {
  work_.variables["TRIBUTARY_STATISTICS"] = work_.path("statistics");
  work_.variables["TRIBUTARY_JOB"] = "training";
  work_.variables["TRIBUTARY_LOCAL"] = "auto";
  std::filesystem::create_directory(work_.path("statistics"));
  perf({"--ranks", "2", "--aggregators", "0"}, {"all_reduce", "-b", "1M", "-e", "1M"});
  const json statistics = only_file_in(work_.path("statistics"));
  ASSERT_TRUE(statistics.is_object()) << outcome_.error;
  EXPECT_EQ(statistics.at("last_path"), "shared memory");
  EXPECT_GE(statistics.at("bytes").at("in_shared_memory"), 6U << 20);
}

TEST_F(Perf, AFolderThatIsMissingCostsTheStatisticsAlone) {
  work_.variables["TRIBUTARY_STATISTICS"] = work_.path("nowhere");
  perf({"--ranks", "2", "--aggregators", "0"}, {"all_reduce", "-b", "64", "-e", "64"});
  EXPECT_THAT(outcome_.error, HasSubstr("the statistics were not written to " + work_.path("nowhere")));
  EXPECT_THAT(outcome_.error, HasSubstr("No such file or directory"));
}

TEST_F(Perf, IsRightOverTwoLevels) {
  check_all({"--ranks", "4", "--aggregators", "3", "--levels", "2", "--lanes", "2"}, "in-network", 2);
}

TEST_F(Perf, IsRightOnTheFallback) {
  check_all({"--ranks", "3", "--aggregators", "0"}, "fallback", 0);
}

TEST_F(Perf, IsRightForEveryTypeAndOperator) {
  std::vector<std::pair<std::string, std::string>> calls;
  for (const char* dtype : {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                            "bfloat16", "float32", "float64"}) {
    for (const char* op : {"sum", "prod", "min", "max", "avg"}) calls.emplace_back(dtype, op);
  }
  for (const char* op : {"band", "bor", "bxor", "land", "lor", "lxor"}) calls.emplace_back("int16", op);
  for (const auto& [dtype, op] : calls) {
    // Use both paths in turn: only one result fits the pattern.
    const bool service = (dtype[0] + op[1]) % 2 == 0;
    const json report = perf({"--ranks", "3", "--aggregators", service ? "1" : "0"},
                             {"all_reduce", "-b", "100K", "-e", "100K", "-d", dtype, "-o", op});
    EXPECT_EQ(report.at("wrong"), 0) << dtype << " " << op;
    EXPECT_EQ(report.at("dtype"), dtype);
    EXPECT_EQ(report.at("op"), op);
  }
}

TEST_F(Perf, ExactNumericsGiveTheExactSumOnEveryPath) {
  struct Run {
    std::vector<std::string> options;
    std::string variables, path;
  };
  const Run runs[] = {{{"--aggregators", "1", "--lanes", "2"}, "TRIBUTARY_REQUIRE=in-network", "in-network"},
                      {{"--aggregators", "3", "--levels", "2"}, "TRIBUTARY_REQUIRE=in-network", "in-network"},
                      {{"--aggregators", "0"}, "", "fallback"},
                      {{"--aggregators", "0"}, "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=one", "local"},
                      {{"--aggregators", "0"}, "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=$((RANK/2))", "host+ring"}};
  for (const Run& run : runs) {
    for (const char* what : {"all_reduce -d float32", "all_reduce -d bfloat16 -o avg", "reduce_scatter -d float64",
                             "reduce -d float16 -o avg", "all_reduce -d float8_e4m3"}) {
      std::vector<std::string> command{"run", "--ranks", "4"};
      command.insert(command.end(), run.options.begin(), run.options.end());
      const std::string perf = run.variables + " TRIBUTARY_NUMERICS=exact exec " TRIBUTARY_PROGRAM " perf " + what +
                               " -b 8 -e 1M -f 64 -w 0 -n 1 -c exact --json " + work_.path("report");
      command.insert(command.end(), {"--", "sh", "-c", perf});
      const Outcome outcome = work_.tributary(command);
      EXPECT_EQ(outcome.code, 0) << perf << outcome.error;
      const json report = json::parse(read_file(work_.path("report")), nullptr, false);
      ASSERT_FALSE(report.is_discarded()) << perf;
      EXPECT_EQ(report.at("at_start").at("path"), run.path) << perf;
      EXPECT_EQ(report.at("wrong"), 0) << perf;
      EXPECT_EQ(report.at("largest_error_units"), 0) << perf;
      EXPECT_THAT(outcome.output, HasSubstr("# Largest error        : 0 units of the last place"));
    }
  }
}

TEST_F(Perf, TheExactCheckFindsTheRoundingOfOtherNumerics) {
  const Outcome outcome = work_.tributary({"run", "--ranks", "4", "--aggregators", "1", "--", TRIBUTARY_PROGRAM, "perf",
                                           "all_reduce", "-b", "64K", "-e", "64K", "-n", "2", "-c", "exact"});
  EXPECT_EQ(outcome.code, 1) << outcome.error;
  EXPECT_THAT(outcome.output, testing::ContainsRegex("# Out of bounds values : [1-9][0-9]* FAILED"));
  EXPECT_THAT(outcome.output, testing::ContainsRegex("# Largest error        : [1-9][0-9]* units of the last place"));
}

TEST_F(Perf, ShowsTheColumnsOfNcclTests) {
  const json report = perf({"--ranks", "2", "--aggregators", "1"}, {"all_reduce", "-b", "8", "-e", "32", "-f", "2"});
  EXPECT_EQ(report.at("rows").size(), 3U);
  EXPECT_THAT(outcome_.output,
              testing::ContainsRegex("size +count +type +redop +root +time +algbw +busbw +#wrong +time +algbw "
                                     "+busbw +#wrong"));
  EXPECT_THAT(outcome_.output, HasSubstr("# path in-network, 1 level"));
  EXPECT_THAT(outcome_.output, testing::ContainsRegex(" 16 +4 +float32 +sum +-1 .* 0 .* 0"));
  EXPECT_THAT(outcome_.output, HasSubstr("# Out of bounds values : 0 OK"));
  EXPECT_THAT(outcome_.output,
              testing::ContainsRegex("# Bytes by path +: in-network [0-9]+ \\(100.0 %\\), fallback 0"));
}

TEST_F(Perf, MayRequireTheNetwork) {
  work_.variables["TRIBUTARY_LOG"] = "info";
  const auto run = [&](const std::string& aggregators, const std::string& variables = "",
                       const std::string& what = "all_reduce -b 4K -e 4K -n 2 --require in-network") {
    return work_.tributary({"run", "--ranks", "3", "--aggregators", aggregators, "--", "sh", "-c",
                            variables + " exec " TRIBUTARY_PROGRAM " perf " + what});
  };
  const Outcome with = run("1");
  EXPECT_EQ(with.code, 0) << with.error;
  EXPECT_THAT(with.error, HasSubstr("trees are ready: epoch 1"));
  EXPECT_THAT(with.error, HasSubstr("in-network reduction in use: epoch 1"));
  EXPECT_THAT(with.error, testing::ContainsRegex("ends after [0-9]+ operations: bytes in-network [1-9]"));
  const Outcome without = run("0");
  EXPECT_EQ(without.code, 69) << without.output;
  EXPECT_THAT(without.error, HasSubstr("TRIBUTARY_REQUIRE=in-network, and there is no tree: no manager is configured"));
  const Outcome local = run("1", "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=one");
  EXPECT_EQ(local.code, 69) << local.output;
  EXPECT_THAT(local.error, HasSubstr("--require in-network: no byte went by a tree: all ranks are on one host, and sum "
                                     "in its memory; TRIBUTARY_LOCAL=off sends"));
  EXPECT_THAT(local.error, Not(HasSubstr("waiting for a tree"))) << "ranks of one host wait for no tree";
  const Outcome by_variable = run("1", "TRIBUTARY_REQUIRE=in-network TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=one",
                                  "all_reduce -b 4K -e 4K -n 2");
  EXPECT_EQ(by_variable.code, 69) << by_variable.output;
  std::ofstream(work_.path("client.yaml")) << "lanes: 1\nrequire: in-network\n";
  const std::string by_file =
      "TRIBUTARY_LOCAL=auto TRIBUTARY_HOST_ID=one TRIBUTARY_CONFIG=" + work_.path("client.yaml");
  EXPECT_EQ(run("1", by_file, "all_reduce -b 4K -e 4K -n 2").code, 69);
  EXPECT_EQ(run("1", by_file + " TRIBUTARY_REQUIRE=none", "all_reduce -b 4K -e 4K -n 2").code, 0)
      << "the variable stands before the file";
  const Outcome direct = run("1", "", "sendrecv -b 4K -e 4K -n 2 --require in-network");
  EXPECT_EQ(direct.code, 69) << direct.output;
  EXPECT_THAT(direct.error, HasSubstr("sendrecv moves data straight between ranks, and no tree carries it"));
}

TEST_F(Perf, WarnsOfAPathThatNobodyAskedFor) {
  const auto run = [&](const std::string& aggregators, const std::string& variables = "") {
    return work_.tributary({"run", "--ranks", "2", "--aggregators", aggregators, "--", "sh", "-c",
                            variables + " exec " TRIBUTARY_PROGRAM " perf all_reduce -b 4K -e 4K -n 1"});
  };
  EXPECT_THAT(
      run("0").error,
      testing::ContainsRegex(" warn[a-z]* .*tributary: rank 0 of 2: in-network reduction not in use: no manager is "
                             "configured; set TRIBUTARY_MANAGER"));
  std::ofstream(work_.path("no-token")) << "wrong\n";
  const std::string error = run("1", "TRIBUTARY_LANE=2 TRIBUTARY_TOKEN_FILE=" + work_.path("no-token")).error;
  EXPECT_THAT(error, testing::ContainsRegex(
                         " warn[a-z]* .*tributary: rank 0 of 2: in-network reduction not in use: .*set "
                         "TRIBUTARY_TOKEN_FILE to a file with a token of `tributary token make`, or job.token"));
  EXPECT_THAT(error, HasSubstr("TRIBUTARY_LANE is set, but nothing reads it: is TRIBUTARY_LANES meant?"));
  EXPECT_THAT(run("1", "TRIBUTARY_PATH=fallback").error,
              Not(testing::ContainsRegex(" warn[a-z]* .*tributary: rank 0 of 2: in-network")));
}

TEST_F(Perf, ComputesBandwidthsFromSizeAndTime) {
  const json report = perf({"--ranks", "4", "--aggregators", "0"}, {"all_reduce", "-b", "1M", "-e", "3M", "-i", "1M"});
  ASSERT_EQ(report.at("rows").size(), 3U);
  for (const json& row : report.at("rows")) {
    const json& m = row.at("out_of_place");
    const double algorithm = row.at("size_bytes").get<double>() / m.at("time_us").get<double>() / 1e3;
    EXPECT_NEAR(m.at("algbw_gbytes_per_second").get<double>(), algorithm, algorithm * 1e-9);
    EXPECT_NEAR(m.at("busbw_gbytes_per_second").get<double>(), algorithm * 1.5, algorithm * 1e-9);
  }
}

TEST_F(Perf, WritesJsonToStandardOutputInPlaceOfTheTable) {
  const Outcome outcome = work_.tributary({"run", "--ranks", "2", "--aggregators", "0", "--", TRIBUTARY_PROGRAM, "perf",
                                           "reduce", "-b", "8", "-e", "8", "-c", "0", "--json", "-"});
  EXPECT_EQ(outcome.code, 0);
  const json report = json::parse(outcome.output, nullptr, false);
  ASSERT_FALSE(report.is_discarded()) << outcome.output;
  EXPECT_FALSE(report.at("checked"));
  EXPECT_TRUE(report.at("rows")[0].at("out_of_place").at("wrong").is_null());
}

#ifdef TRIBUTARY_WRONG_SUMS
TEST_F(Perf, FailsWhenAValueIsWrong) {
  work_.variables["LD_PRELOAD"] = TRIBUTARY_WRONG_SUMS;
  const Outcome outcome = work_.tributary({"run", "--ranks", "2", "--aggregators", "0", "--", TRIBUTARY_PROGRAM, "perf",
                                           "all_reduce", "-b", "64K", "-e", "64K", "-n", "1", "-w", "0"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("FAILED"));
  // Expect one wrong sum in place and one out of place, on rank 1.
  EXPECT_THAT(outcome.output, testing::ContainsRegex("# Out of bounds values : 2 "));
}
#endif

TEST_F(Perf, UnderstandsTheVariablesOfOtherLaunchers) {
  const std::string perf = std::string(TRIBUTARY_PROGRAM) + " perf all_reduce -b 1K -e 1K -n 1";
  const std::string forget = "r=$RANK; n=$WORLD_SIZE; unset RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE; ";
  const std::pair<const char*, std::string> launchers[] = {
      {"Open MPI", "OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=$n "},
      {"PMI", "PMI_RANK=$r PMI_SIZE=$n "},
      {"PMIx under Slurm", "PMIX_RANK=$r SLURM_NTASKS=$n SLURM_PROCID=9 "},
      {"Slurm", "SLURM_PROCID=$r SLURM_NTASKS=$n "},
  };
  for (const auto& [name, variables] : launchers) {
    const Outcome outcome = work_.tributary(
        {"run", "--ranks", "3", "--aggregators", "1", "--", "sh", "-c", forget + variables + "exec " + perf});
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_THAT(outcome.output, HasSubstr("3 ranks (launched by " + std::string(name) + ")"));
    EXPECT_THAT(outcome.output, HasSubstr("path in-network"));
  }
}

TEST_F(Perf, RanksMeetByAFileAndRemoveIt) {
  const std::string file = work_.path("id");
  const std::vector<std::string> command{
      "run",
      "--ranks",
      "3",
      "--aggregators",
      "0",
      "--",
      "sh",
      "-c",
      "unset MASTER_ADDR MASTER_PORT; exec " TRIBUTARY_PROGRAM " perf all_gather -b 1K -e 1K -n 1 --id-file " + file};
  for (int again = 0; again < 2; ++again) {
    const Outcome outcome = work_.tributary(command);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    EXPECT_EQ(read_file(file), "");
  }
}

TEST_F(Perf, RefusesAnIdFileThatIsThereAlready) {
  const std::string file = work_.path("id");
  work_.variables["RANK"] = "0";
  work_.variables["WORLD_SIZE"] = "2";
  ASSERT_EQ(work_.tributary({"run", "--ranks", "1", "--aggregators", "0", "--", "touch", file}).code, 0);
  const Outcome outcome = work_.tributary({"perf", "barrier", "--id-file", file});
  EXPECT_EQ(outcome.code, 78);
  EXPECT_THAT(outcome.error, HasSubstr("remove it first"));
}

TEST_F(Perf, SaysWhichRanksDidNotCome) {
  work_.variables.insert({{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "14999"}});
  const Outcome rank_0 = work_.tributary({"perf", "barrier", "--meet-limit", "0.3"});
  EXPECT_EQ(rank_0.code, 1);
  EXPECT_THAT(rank_0.error, HasSubstr("rank 1, 2"));
  work_.variables["RANK"] = "1";
  const Outcome rank_1 = work_.tributary({"perf", "barrier", "--meet-limit", "0.3"});
  EXPECT_EQ(rank_1.code, 69);
  EXPECT_THAT(rank_1.error, HasSubstr("127.0.0.1:14999"));
  EXPECT_THAT(rank_1.error, HasSubstr("MASTER_ADDR"));
}

TEST_F(Perf, RunsAloneToo) {
  const Outcome outcome = work_.tributary({"perf", "all_reduce", "-b", "4K", "-e", "4K", "-n", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.output, HasSubstr("1 rank (launched by none)"));
}

TEST_F(Perf, FailsWhenTheTreeIsDemandedAndThereIsNone) {
  work_.variables["TRIBUTARY_PATH"] = "in-network";
  const Outcome outcome =
      work_.tributary({"run", "--ranks", "2", "--aggregators", "0", "--", TRIBUTARY_PROGRAM, "perf", "all_reduce"});
  EXPECT_EQ(outcome.code, 69) << outcome.output << outcome.error;
}

TEST_F(Perf, ARankThatFailsForAnotherRankHasAnExitCodeOfItsOwn) {
  const std::string script = "test $RANK = 1 && (sleep 0.7; kill -9 $$) & test $RANK = 1 && exec " TRIBUTARY_PROGRAM
                             " perf all_reduce -b 1M -e 1M -n 100000; " TRIBUTARY_PROGRAM
                             " perf all_reduce -b 1M -e 1M -n 100000; echo rank $RANK ends with $?";
  const Outcome outcome =
      work_.tributary({"run", "--ranks", "3", "--aggregators", "0", "--grace", "30", "--", "sh", "-c", script});
  EXPECT_EQ(outcome.code, 128 + 9) << outcome.error;
  EXPECT_THAT(outcome.output, HasSubstr("rank 0 ends with 75\n"));
  EXPECT_THAT(outcome.output, HasSubstr("rank 2 ends with 75\n"));
}

TEST_F(Perf, TellsTheOtherRanksWhyItAborts) {
  // Only rank 1 demands a tree, so only rank 1 has a cause.
  const std::string perf = "exec " TRIBUTARY_PROGRAM " perf all_reduce";
  const Outcome outcome = work_.tributary({"run", "--ranks", "2", "--aggregators", "0", "--grace", "30", "--", "sh",
                                           "-c", "test $RANK = 1 && export TRIBUTARY_PATH=in-network; " + perf});
  EXPECT_EQ(outcome.code, 69) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("rank 0: rank 1 aborted: TRIBUTARY_PATH=in-network, but there is no tree"));
}

TEST_F(Perf, AKilledRankIsAnErrorThatNamesIt) {
  const std::string script =
      "test $RANK = 1 && (sleep 0.7; kill -9 $$) & exec " TRIBUTARY_PROGRAM " perf all_reduce -b 1M -e 1M -n 100000";
  const Outcome outcome =
      work_.tributary({"run", "--ranks", "3", "--aggregators", "1", "--grace", "30", "--", "sh", "-c", script});
  EXPECT_EQ(outcome.code, 128 + 9) << outcome.error;
  EXPECT_THAT(outcome.error, HasSubstr("rank 1 was killed by signal 9"));
  EXPECT_THAT(outcome.error, HasSubstr("tributary perf: rank 0: "));
  EXPECT_THAT(outcome.error, HasSubstr("tributary perf: rank 2: "));
  EXPECT_THAT(outcome.error, testing::ContainsRegex("rank 0: .*rank 1 on host worker-1"));
  EXPECT_EQ(work_.left_behind(), "");
}

}  // namespace
}  // namespace tributary::cli_test
