// `tributary explain` and `tributary perf --tune`, and the table that `perf --tune` writes and `explain` reads.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/system/cli/command.h"
#include "tributary/protocol/reason.h"

namespace tributary::cli_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Tuning : public testing::Test {
 protected:
  Tuning() { work_.variables["TRIBUTARY_TUNING"] = ""; }

  json explain(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "explain");
    arguments.insert(arguments.end(), {"--output", "json"});
    const Outcome outcome = work_.tributary(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.error;
    return json::parse(outcome.output, nullptr, false);
  }

  Outcome tune(const std::string& collective, const std::string& aggregators) {
    return work_.tributary({"run",
                            "--ranks",
                            "3",
                            "--aggregators",
                            aggregators,
                            "--",
                            TRIBUTARY_PROGRAM,
                            "perf",
                            collective,
                            "--tune",
                            work_.path("t.json"),
                            "-b",
                            "8",
                            "-e",
                            "64K",
                            "-f",
                            "8192",
                            "-n",
                            "3",
                            "-w",
                            "1"});
  }

  Workplace work_;
};

TEST_F(Tuning, ExplainSaysWhatIsPickedWhyAndWhatEachWayTakes) {
  const json large = explain({"all_reduce", "--bytes", "16M", "--ranks", "8", "--link-rate", "1Gbit/s"});
  EXPECT_EQ(large.at("picked").at("path"), "tree");
  EXPECT_EQ(large.at("estimates").size(), 4U);
  EXPECT_EQ(large.at("figures").at("link_gbits"), 1);
  const json small = explain({"all_reduce", "--bytes", "8", "--ranks", "4", "--cores", "2"});
  EXPECT_EQ(small.at("picked").at("path"), "ranks");
  EXPECT_EQ(small.at("picked").at("algorithm"), "recursive-doubling");
  EXPECT_THAT(small.at("why"), HasSubstr("the cost model expects"));
  EXPECT_EQ(explain({"all_reduce", "--bytes", "16M", "--ranks", "2"}).at("picked").at("path"), "ranks");
  EXPECT_EQ(explain({"AllReduce", "--bytes", "16M", "--ranks", "2"}).at("collective"), "all_reduce");
  EXPECT_EQ(explain({"allreduce", "--bytes", "16M"}).at("ranks"), 8);
  EXPECT_EQ(explain({"all_reduce", "--bytes", "7", "--ranks", "2", "-d", "float64"}).at("bytes"), 0);

  const Outcome table = work_.tributary({"explain", "all_reduce", "--bytes", "16M", "--ranks", "8"});
  EXPECT_THAT(table.output, HasSubstr("all_reduce of 16777216 bytes (float32) over 8 ranks: through the tree"));
  EXPECT_THAT(table.output, HasSubstr("why: "));
  EXPECT_THAT(table.output, testing::ContainsRegex("\\* +tree +- "));
  EXPECT_THAT(table.output, HasSubstr("halving-doubling"));
}

TEST_F(Tuning, ExplainKnowsRanksThatShareOneHost) {
  const auto on_one_host = [&](const std::string& collective, const std::string& bytes, const std::string& ranks) {
    return explain({collective, "--bytes", bytes, "--ranks", ranks, "--ranks-per-host", ranks, "--cores", "2"});
  };
  const auto by = [](const char* way) { return json{{"path", "local"}, {"algorithm", way}}; };
  EXPECT_EQ(on_one_host("all_reduce", "8K", "2").at("picked"), by("notes"));
  EXPECT_EQ(on_one_host("all_reduce", "8196", "2").at("picked"), by("chunks"));
  EXPECT_EQ(on_one_host("all_reduce", "8196", "2").at("registered"), "regions");
  work_.variables["TRIBUTARY_CMA"] = "on";
  EXPECT_EQ(on_one_host("all_reduce", "16M", "2").at("picked"), by("attach"));
  EXPECT_EQ(on_one_host("all_reduce", "32M", "2").at("picked"), by("chunks"));
  EXPECT_EQ(on_one_host("all_reduce", "16M", "4").at("picked"), by("chunks"));
  EXPECT_THAT(on_one_host("all_reduce", "16M", "4").at("why"), HasSubstr("there are more ranks (4) than cores (2)"));
  EXPECT_EQ(on_one_host("broadcast", "16M", "2").at("picked"), by("chunks"));
  EXPECT_EQ(on_one_host("all_gather", "16K", "2").at("picked"), by("notes")) << "each rank has an input of 8 KiB";
  EXPECT_EQ(explain({"allreduce", "--bytes", "8", "--ranks", "2", "--link-rate", "0bit/s"}).at("picked"), by("notes"));
  const Outcome table = work_.tributary(
      {"explain", "all_reduce", "--bytes", "16M", "--ranks", "2", "--cores", "2", "--ranks-per-host", "2"});
  EXPECT_THAT(table.output, HasSubstr("over 2 ranks: in the shared memory of their host, by attach"));
  EXPECT_THAT(table.output, HasSubstr("registered on all ranks (tributary_mem_register): by regions"));
  work_.variables["TRIBUTARY_CMA"] = "auto";
  EXPECT_THAT(on_one_host("all_reduce", "16M", "2").at("why"),
              AnyOf(HasSubstr("read in place through the kernel"), HasSubstr("copies by the kernel are slow")));
  work_.variables["TRIBUTARY_CMA"] = "off";
  EXPECT_EQ(on_one_host("all_reduce", "16M", "2").at("picked"), by("chunks"));
  work_.variables["TRIBUTARY_LOCAL"] = "off";
  EXPECT_NE(on_one_host("all_reduce", "16M", "2").at("picked").at("path"), "local");
}

TEST_F(Tuning, ExplainKnowsHostsOfSeveralRanks) {
  const std::vector<std::string> call{"all_reduce",       "--bytes", "16M",         "--ranks", "16",
                                      "--ranks-per-host", "4",       "--link-rate", "1Gbit/s"};
  const json hosts = explain(call);
  EXPECT_EQ(hosts.at("hosts"), 4);
  EXPECT_EQ(hosts.at("ranks"), 16);
  EXPECT_EQ(hosts.at("estimates"),
            explain({"all_reduce", "--bytes", "16M", "--ranks", "4", "--ranks-per-host", "1", "--link-rate", "1Gbit/s"})
                .at("estimates"));
  auto as_table = call;
  as_table.insert(as_table.begin(), "explain");
  EXPECT_THAT(work_.tributary(as_table).output,
              HasSubstr("over 16 ranks: in shared memory on each of 4 hosts, and with one rank of each host through "));
  work_.variables["TRIBUTARY_LOCAL"] = "off";
  EXPECT_EQ(explain(call).at("hosts"), 0);
}

TEST_F(Tuning, ExplainListsTheCodesOfReasons) {
  const json listed = explain({"--codes"}).at("codes");
  ASSERT_EQ(listed.size(), std::size(kReasons));
  std::size_t i = 0;
  for (const ReasonRow& row : kReasons) {
    EXPECT_EQ(
        listed.at(i++),
        (json{{"code", row.code}, {"kind", to_string(row.kind)}, {"meaning", row.meaning}, {"remedy", row.remedy}}));
  }
  const Outcome table = work_.tributary({"explain", "--codes"});
  for (const ReasonRow& row : kReasons) EXPECT_THAT(table.output, HasSubstr(std::string(row.code) + " "));
}

TEST_F(Tuning, ExplainExplainsACodeAndNamesTheNearestOne) {
  EXPECT_EQ(explain({"aggregator-lost"}).at("kind"), "fallback");
  const Outcome text = work_.tributary({"explain", "no-token"});
  EXPECT_THAT(text.output, HasSubstr("no-token (denial): the request has no token"));
  EXPECT_THAT(text.output, HasSubstr("what to do: name a token's file in TRIBUTARY_TOKEN_FILE"));
  const Outcome wrong = work_.tributary({"explain", "agregator-lots"});
  EXPECT_EQ(wrong.code, 64);
  EXPECT_THAT(wrong.error, HasSubstr("'agregator-lots': it is none of these; is 'aggregator-lost' meant?"));
  EXPECT_THAT(work_.tributary({"explain"}).error, HasSubstr("subject: it is missing"));
  EXPECT_THAT(work_.tributary({"explain", "all_reduce"}).error, HasSubstr("--bytes: it is missing"));
}

TEST_F(Tuning, ExplainNamesTheCodeOfItsChoice) {
  EXPECT_EQ(explain({"all_reduce", "--bytes", "16M", "--ranks", "8", "--link-rate", "1Gbit/s"}).at("code"),
            "tree-is-faster");
  EXPECT_EQ(explain({"all_reduce", "--bytes", "16M", "--ranks", "2"}).at("code"), "ranks-are-faster");
  EXPECT_EQ(explain({"all_reduce", "--bytes", "8", "--ranks", "2", "--tuning", "off"}).at("code"), "tuning-off");
  EXPECT_EQ(explain({"all_reduce", "--bytes", "8", "--ranks", "2", "--link-rate", "0bit/s"}).at("code"), "one-host");
  EXPECT_THAT(work_.tributary({"explain", "all_reduce", "--bytes", "8", "--ranks", "2", "--tuning", "off"}).output,
              HasSubstr("whenever there is one [tuning-off]\n"));
}

TEST_F(Tuning, ExplainFollowsTheVariable) {
  work_.variables["TRIBUTARY_TUNING"] = "off";
  const json off = explain({"all_reduce", "--bytes", "8", "--ranks", "2"});
  EXPECT_EQ(off.at("picked").at("path"), "tree");
  EXPECT_THAT(off.at("why"), HasSubstr("tuning is off"));
  EXPECT_EQ(explain({"all_reduce", "--bytes", "8", "--ranks", "2", "--tuning", "auto"}).at("picked").at("path"),
            "ranks");
}

TEST_F(Tuning, ABadTableIsNamedWithKeyAndWhatIsAllowed) {
  const std::string file = work_.path("bad.json");
  std::ofstream(file) << R"({"format": "tributary-tuning-1", "figures": {"hop_us": "fast"}})";
  const Outcome explained = work_.tributary({"explain", "barrier", "--bytes", "0", "--ranks", "2", "--tuning", file});
  EXPECT_EQ(explained.code, 78);
  EXPECT_THAT(explained.error, HasSubstr(file + ": figures.hop_us: 'fast': it is not allowed (allowed: a number from"));
  work_.variables["TRIBUTARY_TUNING"] = file;
  const Outcome run = work_.tributary(
      {"run", "--ranks", "2", "--aggregators", "0", "--", TRIBUTARY_PROGRAM, "perf", "barrier", "-n", "1"});
  EXPECT_NE(run.code, 0);
  EXPECT_THAT(run.error, HasSubstr(file + ": figures.hop_us"));
}

TEST_F(Tuning, TuneMeasuresEveryWayAndWritesATableThatIsFollowed) {
  const std::string file = work_.path("t.json");
  const Outcome outcome = tune("all_reduce", "1");
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.error;
  EXPECT_THAT(outcome.output, testing::ContainsRegex("tree +ring +recursive-doubling +halving-doubling"));
  json table = json::parse(read_file(file), nullptr, false);
  ASSERT_FALSE(table.is_discarded()) << read_file(file);
  EXPECT_EQ(table.at("measured").size(), 8U);  // 2 sizes, 4 ways to run each
  ASSERT_FALSE(table.at("rules").empty());
  EXPECT_EQ(table.at("rules").back().at("bytes_max"), nullptr);

  // Add another collective. Without a service, only the algorithms between the ranks are measured.
  const Outcome other = tune("all_gather", "0");
  ASSERT_EQ(other.code, 0) << other.output << other.error;
  EXPECT_THAT(other.output, HasSubstr("# no tree: "));
  table = json::parse(read_file(file), nullptr, false);
  EXPECT_EQ(table.at("measured").size(), 12U);

  const json picked = explain({"all_reduce", "--bytes", "64K", "--ranks", "3", "--tuning", file});
  EXPECT_THAT(picked.at("why"), HasSubstr("of " + file + ": all_reduce of 3 to 3 ranks"));
  EXPECT_THAT(explain({"all_reduce", "--bytes", "64K", "--ranks", "5", "--tuning", file}).at("why"),
              HasSubstr("no rule of " + file));
  EXPECT_EQ(work_.left_behind(), "");
}

TEST_F(Tuning, ATableDecidesBetweenTreeAndRanksBySize) {
  const std::string file = work_.path("t.json");
  std::ofstream(file) << R"({"format": "tributary-tuning-1", "rules": [
    {"collective":"all_reduce","ranks":[3,3],"bytes_max":4096,"path":"ranks","algorithm":"ring"},
    {"collective":"all_reduce","ranks":[3,3],"bytes_max":null,"path":"tree","algorithm":"ring"}]})";
  work_.variables["TRIBUTARY_TUNING"] = file;
  const Outcome outcome = work_.tributary({"run",
                                           "--ranks",
                                           "3",
                                           "--aggregators",
                                           "1",
                                           "--",
                                           TRIBUTARY_PROGRAM,
                                           "perf",
                                           "all_reduce",
                                           "-b",
                                           "4K",
                                           "-e",
                                           "8K",
                                           "-f",
                                           "2",
                                           "-n",
                                           "3",
                                           "-w",
                                           "1",
                                           "--json",
                                           work_.path("report")});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const json report = json::parse(read_file(work_.path("report")), nullptr, false);
  const json &small = report.at("rows")[0], &large = report.at("rows")[1];
  EXPECT_GT(small.at("bytes_fallback"), 0);
  EXPECT_EQ(small.at("bytes_in_network"), 0);
  EXPECT_GT(large.at("bytes_in_network"), 4096);
}

}  // namespace
}  // namespace tributary::cli_test
