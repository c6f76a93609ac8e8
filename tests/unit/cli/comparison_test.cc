// The comparison of `tributary run --hosts`: sizes, table, picture.
#include <gmock/gmock.h>

#include <algorithm>

#include "client/cli/compare/comparison_report.h"

namespace tributary::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kGigabit = 1'000'000'000;

Comparison example() {
  Comparison comparison;
  comparison.hosts = 8;
  comparison.link_bits = kGigabit;
  comparison.aggregators = 1;
  comparison.sizes = {
      {.bytes = 64U << 10, .tree_us = 835, .ranks_us = 1100, .gloo_us = 22400, .in_network = 0.81},
      {.bytes = 16U << 20, .tree_us = 150'000, .ranks_us = 254'000, .gloo_us = 244'000, .in_network = 1}};
  return comparison;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

TEST(Comparison, TakesSizesThatTheLinkCarriesInAShortTime) {
  EXPECT_THAT(compared_sizes(kGigabit), ElementsAre(64U << 10, 256U << 10, 1U << 20, 4U << 20, 16U << 20));
  EXPECT_EQ(compared_sizes(kGigabit / 5).back(), 2U << 20);
  EXPECT_EQ(compared_sizes(100 * kGigabit).back(), 16U << 20) << "memory and processors bound it then";
  EXPECT_THAT(compared_sizes(kGigabit / 1000), ElementsAre(256, 1U << 10, 4U << 10, 16U << 10, 64U << 10));
}

TEST(Comparison, MeasuresAboutHalfASecondOfEachSize) {
  EXPECT_EQ(operations_of_turn(16U << 20, 8, kGigabit), 5U) << "at least five";
  EXPECT_EQ(operations_of_turn(4, 8, kGigabit), 100U) << "at most a hundred";
  EXPECT_EQ(operations_of_turn(1U << 20, 8, kGigabit), 31U) << "14.7 ms each, and 1 ms beside the bytes";
}

TEST(Comparison, WritesTimesWithThreeDigits) {
  EXPECT_EQ(time_text(8.354), "8.35 us");
  EXPECT_EQ(time_text(835.4), "835 us");
  EXPECT_EQ(time_text(999.8), "1.00 ms");
  EXPECT_EQ(time_text(15'140), "15.1 ms");
  EXPECT_EQ(time_text(2.5e6), "2.50 s");
}

TEST(Comparison, ShowsATableWithTheGain) {
  const std::string table = comparison_table(example(), false);
  EXPECT_THAT(table, HasSubstr("8 hosts with links of 1 Gbit/s, 1 aggregator with a link as fast as this machine\n"));
  EXPECT_THAT(table, HasSubstr("SIZE    TREE    RANKS ALONE  GLOO     TREE/RANKS  TREE/GLOO  IN THE NETWORK\n"));
  EXPECT_THAT(table, HasSubstr("64 KiB  835 us  1.10 ms      22.4 ms  1.32        26.83      81 %\n"));
  EXPECT_THAT(table, HasSubstr("16 MiB  150 ms  254 ms       244 ms   1.69        1.63       100 %\n"));
  EXPECT_THAT(table, HasSubstr("the links alone allow 1.75.\n"));
}

TEST(Comparison, SaysInOneLineWhyGlooIsLeftOut) {
  Comparison comparison = example();
  comparison.gloo_absent = "no Python with PyTorch was found; name one with --python";
  const std::string table = comparison_table(comparison, false);
  EXPECT_THAT(table, HasSubstr("\nGloo is left out: no Python with PyTorch was found; name one with --python\n"));
  EXPECT_THAT(table, Not(HasSubstr("GLOO")));
  EXPECT_THAT(comparison_picture(comparison), Not(HasSubstr("Gloo")));
}

TEST(Comparison, DrawsABarForEachTimeAndBothLimits) {
  const std::string picture = comparison_picture(example());
  EXPECT_THAT(picture, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(picture, testing::EndsWith("</svg>\n"));
  constexpr std::size_t kBackground = 1, kLegend = 3, kBars = 6;
  EXPECT_EQ(count(picture, "<rect "), kBackground + kLegend + kBars);
  EXPECT_EQ(count(picture, "stroke-dasharray=\"6 4\""), 2U);
  for (const char* text : {"835 us", "22.4 ms", "244 ms", "64 KiB", "16 MiB", "the ranks alone", "a tree"})
    EXPECT_THAT(picture, HasSubstr(">" + std::string(text) + "<"));
  EXPECT_EQ(count(picture, "<text "), count(picture, "</text>"));
}

TEST(Comparison, KeepsABarInsideThePictureIfATimeIsShorterThanTheLinkAllows) {
  Comparison comparison = example();
  comparison.sizes[0].tree_us = 200;  // a burst that the bucket let through: 2.6 times the rate
  const std::string picture = comparison_picture(comparison);
  EXPECT_EQ(count(picture, "height=\"-"), 0U);
  EXPECT_EQ(count(picture, "y=\"-"), 0U);
}

}  // namespace
}  // namespace tributary::cli
