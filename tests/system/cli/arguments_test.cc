// Every wrong call of `tributary` ends with a usage error that says what is wrong, and starts no process.
#include <gmock/gmock.h>

#include "tests/system/cli/command.h"

namespace tributary::cli_test {
namespace {

using Words = std::vector<std::string>;

class BadArguments : public testing::TestWithParam<Words> {};

TEST_P(BadArguments, AreUsageErrors) {
  const Workplace work;
  const Outcome outcome = work.tributary(GetParam());
  EXPECT_EQ(outcome.code, 64) << outcome.error;
  EXPECT_NE(outcome.error, "");
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(work.left_behind(), "");
}

INSTANTIATE_TEST_SUITE_P(General, BadArguments,
                         testing::Values(Words{}, Words{"frobnicate"}, Words{"--frobnicate"}, Words{"status", "extra"},
                                         Words{"status", "--output", "xml"}, Words{"status", "--watch", "0"},
                                         Words{"status", "--output"}, Words{"top", "--interval", "0"},
                                         Words{"help", "frobnicate"}, Words{"trees", "--group", "-1"},
                                         Words{"aggregators", "a b"}, Words{"aggregators", "../../x"}, Words{"drain"},
                                         Words{"drain", "a/b"}, Words{"drain", "a", "b"}, Words{"plan"},
                                         Words{"plan", "node-[2-1]"}, Words{"plan", "a", "--lanes", "0"},
                                         Words{"plan", "a", "--lanes", "17"}, Words{"plan", "a", "--lanes", "many"},
                                         Words{"plan", "a", "--levels", "99"}));

INSTANTIATE_TEST_SUITE_P(
    Budget, BadArguments,
    testing::Values(
        Words{"plan", "--budget"}, Words{"plan", "--parameters", "70G"}, Words{"plan", "a", "--step", "1s"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "8"},
        Words{"plan", "--budget", "--parameters", "70Q", "--ranks", "8", "--link-rate", "1Gbit/s"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "1", "--link-rate", "1Gbit/s"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "1GB"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "1bit/s"},
        Words{"plan", "a", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "1Gbit/s"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "1Gbit/s", "--lanes", "2"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "1Gbit/s", "--computing", "1s"},
        Words{"plan", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "1Gbit/s", "--step", "9s",
              "--computing", "1s", "--overlap", "1.5"}));

INSTANTIATE_TEST_SUITE_P(
    Run, BadArguments,
    testing::Values(Words{"run"}, Words{"run", "--ranks", "2"}, Words{"run", "--ranks", "2", "--"},
                    Words{"run", "--", "true"}, Words{"run", "--ranks", "0", "--", "true"},
                    Words{"run", "--ranks", "-1", "--", "true"}, Words{"run", "--ranks", "two", "--", "true"},
                    Words{"run", "--ranks", "1025", "--", "true"}, Words{"run", "--ranks", "2", "true"},
                    Words{"run", "--ranks", "2", "--aggregators", "-1", "--", "true"},
                    Words{"run", "--ranks", "2", "--aggregators", "65", "--", "true"},
                    Words{"run", "--ranks", "2", "--levels", "0", "--", "true"},
                    Words{"run", "--ranks", "8", "--levels", "7", "--", "true"},
                    Words{"run", "--ranks", "2", "--levels", "2", "--", "true"},
                    Words{"run", "--ranks", "8", "--aggregators", "1", "--levels", "2", "--", "true"},
                    Words{"run", "--ranks", "2", "--lanes", "0", "--", "true"},
                    Words{"run", "--ranks", "2", "--lanes", "17", "--", "true"},
                    Words{"run", "--ranks", "2", "--grace", "-1", "--", "true"}));

INSTANTIATE_TEST_SUITE_P(
    Perf, BadArguments,
    testing::Values(Words{"perf"}, Words{"perf", "allreduced"}, Words{"perf", "all_reduce", "reduce"},
                    Words{"perf", "all_reduce", "-b", "x"}, Words{"perf", "all_reduce", "-b", "8Q"},
                    Words{"perf", "all_reduce", "-b", "2M", "-e", "1M"}, Words{"perf", "all_reduce", "-f", "1"},
                    Words{"perf", "all_reduce", "-b", "0", "-f", "2"}, Words{"perf", "all_reduce", "-i", "0"},
                    Words{"perf", "all_reduce", "-n", "0"}, Words{"perf", "all_reduce", "-w", "-1"},
                    Words{"perf", "all_reduce", "-d", "float"}, Words{"perf", "all_reduce", "-o", "xor"},
                    Words{"perf", "reduce", "-r", "1"}, Words{"perf", "reduce", "-r", "-1"},
                    Words{"perf", "all_reduce", "-c", "maybe"}, Words{"perf", "all_reduce", "--memory", "gpu"},
                    Words{"perf", "all_reduce", "--meet-limit", "0"}));

TEST(UnknownSubcommand, IsNamed) {
  const Workplace work;
  EXPECT_THAT(work.tributary({"bogus", "--output", "json"}).error,
              testing::StartsWith("tributary: bogus: there is no such command (allowed: run, perf, "));
  EXPECT_THAT(work.tributary({""}).error, testing::StartsWith("tributary: there is no such command (allowed: run, "));
  EXPECT_THAT(work.tributary({"--bogus"}).error,
              testing::StartsWith("tributary: --bogus: there is no such option (allowed: --help, --version)\n"));
  EXPECT_THAT(work.tributary({}).error, testing::StartsWith("tributary: COMMAND: it is missing (allowed: see "));
}

TEST(MisspeltOption, TheErrorNamesTheOptionAndNotTheWordAfterIt) {
  const Workplace work;
  const Outcome outcome = work.tributary({"perf", "--warmpu", "3"});
  EXPECT_EQ(outcome.code, 64);
  EXPECT_THAT(outcome.error, testing::StartsWith("tributary perf: --warmpu: there is no such option; is '--warmup' "
                                                 "meant?"));
}

TEST(Lanes, AreAutoOrANumber) {
  const Workplace work;
  EXPECT_THAT(work.tributary({"plan", "a", "--lanes", "0"}).error,
              testing::HasSubstr("tributary plan: --lanes: '0': it is below 1 (allowed: auto, or 1 to 16)"));
}

TEST(Budget, NeedsNoManagerAndNamesWhatIsWrong) {
  const Workplace work;
  const Words good{"plan", "--budget", "--parameters", "70G", "--ranks", "8", "--link-rate", "400Gbit/s"};
  EXPECT_THAT(work.tributary(good).output, testing::HasSubstr("140 GB a step"));
  Words json = good;
  json.insert(json.end(), {"-o", "json"});
  EXPECT_THAT(work.tributary(json).output, testing::HasSubstr("\"bytes\": 140000000000.0"));
  Words bad = good;
  bad.back() = "400Gbit";
  EXPECT_THAT(work.tributary(bad).error,
              testing::AllOf(testing::HasSubstr("--link-rate"), testing::HasSubstr("'400Gbit'"),
                             testing::HasSubstr("for example 100Gbit/s")));
}

TEST(GoodArguments, HelpAndVersionAreNoErrors) {
  const Workplace work;
  for (const Words& words : {Words{"--help"}, Words{"run", "--help"}, Words{"perf", "--help"},
                             Words{"status", "--help"}, Words{"help"}, Words{"help", "groups"}, Words{"version"}}) {
    const Outcome outcome = work.tributary(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.output, "");
    EXPECT_EQ(outcome.error, "");
  }
  EXPECT_THAT(work.tributary({"--version"}).output, testing::StartsWith("tributary 0."));
  EXPECT_EQ(work.tributary({"version"}).output, work.tributary({"--version"}).output);
  EXPECT_EQ(work.tributary({"help", "perf"}).output, work.tributary({"perf", "--help"}).output);
}

}  // namespace
}  // namespace tributary::cli_test
