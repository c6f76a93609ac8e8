#include "tributary/protocol/assert.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace tributary {
namespace {

enum class Colour : std::uint8_t { red, green };

TEST(Assert, DoesNothingWhileItsConditionHolds) {
  int asked = 0;
  TRIBUTARY_ASSERT(++asked == 1, "asked {} times", asked);
  EXPECT_EQ(asked, 1);
}

TEST(Assert, ReadsItsValuesOnlyWhenItHasFailed) {
  int read = 0;
  const auto value = [&read] { return ++read; };
  TRIBUTARY_ASSERT(read == 0, "the value is {}", value());
  EXPECT_EQ(read, 0);
}

using AssertDeathTest = testing::Test;

TEST(AssertDeathTest, TellsThePlaceTheConditionAndTheValues) {
  const std::uint32_t told = 7;
  const std::size_t written = 5;
  EXPECT_DEATH(TRIBUTARY_ASSERT(told <= written, "{} frames were told of, and {} were written", told, written),
               "tributary: a defect of this program at assert_test.cc:[0-9]+: 7 frames were told of, and 5 were "
               "written .must hold: told <= written.");
}

TEST(AssertDeathTest, NeedsNoValues) {
  EXPECT_DEATH(TRIBUTARY_ASSERT(false, "this cannot be"), "this cannot be .must hold: false.");
}

TEST(AssertDeathTest, WritesEveryKindOfValue) {
  const std::string text = "lane";
  const int* const nothing = nullptr;
  EXPECT_DEATH(TRIBUTARY_ASSERT(false, "{} {} {} {} {} {} {} {}", true, std::int8_t{-3}, UINT64_MAX, 1.5,
                                std::string_view(text), Colour::green, std::chrono::milliseconds(20), nothing),
               "true -3 18446744073709551615 1.5 lane 1 20 0x0 ");
}

TEST(AssertDeathTest, CutsALineThatIsTooLong) {
  const std::string text(5000, 'x');
  EXPECT_DEATH(TRIBUTARY_ASSERT(false, "{}", text.c_str()), "xxxx\n");
}

}  // namespace
}  // namespace tributary
