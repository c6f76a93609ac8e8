#include "service-kit/variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace tributary::service {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string meant(std::string_view name) {
  return std::string(meant_by(name).value_or("nothing"));
}

TEST(Variables, FindsTheProbableName) {
  EXPECT_EQ(meant("TRIBUTARY_TOKENFILE"), "TRIBUTARY_TOKEN_FILE");
  EXPECT_EQ(meant("TRIBUTARY_MANGER"), "TRIBUTARY_MANAGER");
  EXPECT_EQ(meant("TRIBUTARY_UDP_ECNS"), "TRIBUTARY_UDP_ECN");
  EXPECT_EQ(meant("TRIBUTARY_LOG_LEVEL"), "TRIBUTARY_LOG") << "the name has a whole word too many";
  EXPECT_EQ(meant("TRIBUTARY_TOKEN"), "TRIBUTARY_TOKEN_FILE") << "the name has a whole word too few";
}

TEST(Variables, LeavesOtherNamesAlone) {
  for (const std::string_view known : known_variables()) EXPECT_EQ(meant(known), "nothing") << known;
  EXPECT_EQ(meant("TRIBUTARY_MY_OWN_MARK"), "nothing") << "the name resembles no other";
  EXPECT_EQ(meant("OTHER_TOKENFILE"), "nothing");
  EXPECT_EQ(meant("TRIBUTARY_MANAGER_SERVICE_HOST"), "nothing") << "Kubernetes";
  EXPECT_EQ(meant("TRIBUTARY_MANAGER_PORT_7470_TCP"), "nothing") << "Kubernetes";
  EXPECT_EQ(meant("TRIBUTARY_" + std::string(5000, 'A')), "nothing");
  EXPECT_EQ(meant("TRIBUTARY_"), "nothing");
}

TEST(Variables, AreInOrderAndEachIsThereOnce) {
  const auto known = known_variables();
  EXPECT_TRUE(std::ranges::is_sorted(known));
  EXPECT_EQ(std::ranges::adjacent_find(known), known.end());
}

TEST(Variables, SayWhatIsMisspelt) {
  const std::array<const char*, 5> environment{"PATH=/bin", "TRIBUTARY_LANE=2", "TRIBUTARY_JOB=a=b", "TRIBUTARY_JBO",
                                               nullptr};
  EXPECT_THAT(misspelt_variables(environment.data()),
              ElementsAre("TRIBUTARY_LANE is set, but nothing reads it: is TRIBUTARY_LANES meant?",
                          "TRIBUTARY_JBO is set, but nothing reads it: is TRIBUTARY_JOB meant?"));
  EXPECT_THAT(misspelt_variables(nullptr), IsEmpty());
}

TEST(Variables, DifferByTheLettersToChange) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", "adc"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("abcd", "acbd"), 1U) << "neighbours have changed places";
}

}  // namespace
}  // namespace tributary::service
