// `tributary perf --memory cuda`, with a fake CUDA driver in the ranks' library path. Its memory lies where the
// processor cannot read, so a rank that mistakes it for host memory ends by a signal.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class PerfOnGpu : public testing::Test {
 protected:
  PerfOnGpu() {
    work_.variables["TRIBUTARY_TUNING"] = "off";
    work_.variables["TRIBUTARY_LOCAL"] = "off";
    work_.variables["LD_LIBRARY_PATH"] = TRIBUTARY_FAKE_CUDA;
  }

  Outcome perf(const std::string& aggregators, const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"run", "--ranks",         "3",   "--aggregators", aggregators,
                                     "--",  TRIBUTARY_PROGRAM, "perf"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return work_.tributary(command);
  }

  Workplace work_;
};

TEST_F(PerfOnGpu, IsRightForEveryCollective) {
  for (const char* collective : {"all_reduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "all_to_all",
                                 "gather", "scatter", "sendrecv", "barrier"}) {
    for (const char* aggregators : {"1", "0"}) {
      const Outcome outcome = perf(aggregators, {collective, "-b", "64", "-e", "1M", "-f", "128", "-r", "1", "-w", "1",
                                                 "-n", "2", "--memory", "cuda", "--json", work_.path("report")});
      EXPECT_EQ(outcome.code, 0) << collective << outcome.output << outcome.error;
      const json report = json::parse(read_file(work_.path("report")), nullptr, false);
      ASSERT_FALSE(report.is_discarded()) << collective;
      EXPECT_EQ(report.at("wrong"), 0) << collective;
      EXPECT_EQ(report.at("memory"), "cuda");
      EXPECT_EQ(report.at("gpu_name"), "Fake GPU");
      for (const json& place : report.at("places")) EXPECT_EQ(place.at("gpu"), 0);
    }
  }
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(PerfOnGpu, SaysInWhichMemoryTheBuffersLie) {
  const Outcome gpu = perf("1", {"all_reduce", "-b", "1M", "-e", "1M", "-n", "1", "--memory", "cuda"});
  EXPECT_EQ(gpu.code, 0) << gpu.error;
  EXPECT_THAT(gpu.output, HasSubstr("\n# memory: GPU 0 (Fake GPU)\n"));
  EXPECT_THAT(gpu.output, testing::ContainsRegex("#   rank     2 pid +[0-9]+ on .*, GPU 0\n"));
  const Outcome host = perf("1", {"all_reduce", "-b", "1M", "-e", "1M", "-n", "1", "--json", work_.path("report")});
  EXPECT_EQ(host.code, 0) << host.error;
  EXPECT_THAT(host.output, AllOf(HasSubstr("\n# memory: host\n"), testing::Not(HasSubstr(", GPU "))));
  const json report = json::parse(read_file(work_.path("report")), nullptr, false);
  ASSERT_FALSE(report.is_discarded());
  EXPECT_EQ(report.at("memory"), "host");
  EXPECT_TRUE(report.at("gpu_name").is_null());
  EXPECT_TRUE(report.at("places")[0].at("gpu").is_null());
}

TEST_F(PerfOnGpu, TunesWithBuffersOnTheGpu) {
  const Outcome outcome = perf("1", {"all_reduce", "-b", "4K", "-e", "32K", "-n", "1", "-w", "0", "--memory", "cuda",
                                     "--tune", work_.path("table")});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("# memory: GPU 0 (Fake GPU)\n"), HasSubstr("# written: ")));
}

TEST_F(PerfOnGpu, WithoutADriverSaysWhatToDo) {
  // An empty file in the place of the driver, so that the test gives the same result on a host with a driver.
  std::ofstream(work_.path("libcuda.so.1")).flush();
  work_.variables["LD_LIBRARY_PATH"] = work_.path("");
  const Outcome outcome = work_.tributary({"perf", "all_reduce", "--memory", "cuda"});
  EXPECT_EQ(outcome.code, 69) << outcome.output;
  EXPECT_THAT(
      outcome.error,
      AllOf(HasSubstr("tributary perf: rank 0: --memory cuda: GPU memory cannot be used: this host has no NVIDIA"),
            HasSubstr("libcuda.so.1"), HasSubstr("or pass --memory host")));
  EXPECT_EQ(work_.tributary({"perf", "all_reduce", "-b", "4K", "-e", "4K", "-n", "1"}).code, 0);
}

}  // namespace
}  // namespace tributary::cli_test
