#include "service-kit/settings_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::service {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

struct Sample {
  std::uint32_t threads = 2;
  std::uint64_t memory = 1U << 20;
  std::chrono::milliseconds lease{1500};
  std::string mode = "fast";
  std::string path;
  bool quiet = false;
};

std::span<const SettingField<Sample>> table() {
  using namespace field;
  static const std::vector<SettingField<Sample>> kTable{
      count("threads", &Sample::threads, 1, 64, "Threads."),
      bytes("memory", &Sample::memory, 1U << 10, 1U << 30, "Memory."),
      duration("lease", &Sample::lease, 1ms, 1h, "A lease."),
      choice("mode", &Sample::mode, {"fast", "safe", "both"}, "A mode."),
      text("path", &Sample::path, "a path", "A path.", [](std::string_view) -> Status { return {}; }),
      flag("quiet", &Sample::quiet, "on", "off", "Whether it is quiet."),
  };
  return kTable;
}

std::string mistakes_in(const std::string& yaml, const std::vector<Override>& flags = {}) {
  Sample sample;
  Mistakes mistakes;
  read_settings<Sample>(table(), yaml, "s.yaml", flags, sample, mistakes);
  return mistakes.none() ? "none" : mistakes.status().error().message;
}

TEST(SettingsTable, TellsEveryMistakeWithPlaceValueAndWhatIsAllowed) {
  EXPECT_EQ(mistakes_in("threads: 0\nmemory: 3\nmode: slow\nquiet: yes\n", {{"threads", "many", "--threads"}}),
            "s.yaml:1: threads: '0': it is below 1 (allowed: 1 to 64)\n"
            "s.yaml:2: memory: '3': it has no unit; write a number with B, kB, KiB, MB, MiB, GB, GiB, TB or TiB, for "
            "example 4GiB (allowed: 1KiB to 1GiB)\n"
            "s.yaml:3: mode: 'slow': it is none of these (allowed: fast, safe or both)\n"
            "s.yaml:4: quiet: 'yes': it is neither on nor off (allowed: on or off)\n"
            "--threads: 'many': it is no whole number (allowed: 1 to 64)");
  EXPECT_EQ(mistakes_in("# nothing\n"), "none");
}

TEST(SettingsTable, RoundsUpToTheUnitOfTheMember) {
  Sample sample;
  Mistakes mistakes;
  read_settings<Sample>(table(), "lease: 1001us\n", "s.yaml", {}, sample, mistakes);
  EXPECT_TRUE(mistakes.none());
  EXPECT_EQ(sample.lease, 2ms);
}

TEST(SettingsTable, ReadsWhatItPrints) {
  const Sample sample{
      .threads = 7, .memory = 3U << 20, .lease = 2s, .mode = "both", .path = "/a b/it's", .quiet = true};
  Sample again;
  Mistakes mistakes;
  const std::string printed = print_settings<Sample>(table(), sample);
  read_settings<Sample>(table(), printed, "printed", {}, again, mistakes);
  ASSERT_TRUE(mistakes.none()) << mistakes.status().error().message;
  EXPECT_EQ(print_settings<Sample>(table(), again), printed);
  EXPECT_TRUE(printed.starts_with("# Threads.\n# Allowed: 1 to 64. Default: 2\nthreads: 7\n\n# Memory.\n")) << printed;
}

TEST(ListEntries, StandBetweenCommasWithoutSpaces) {
  EXPECT_THAT(list_entries("a, b ,c"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(list_entries(""), ElementsAre(""));
  EXPECT_THAT(list_entries("a,,"), ElementsAre("a", "", ""));
}

}  // namespace
}  // namespace tributary::service
