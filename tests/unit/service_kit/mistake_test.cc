#include "service-kit/mistake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service-kit/nearest_name.h"

namespace tributary::service {
namespace {

using ::testing::Optional;

constexpr std::string_view kNames[] = {"memory", "name", "workers"};

TEST(Mistake, HasPlaceKeyValueReasonAndWhatIsAllowedInThisOrder) {
  EXPECT_EQ(to_string({.where = "a.yaml:12",
                       .key = "children_max",
                       .value = "many",
                       .why = "it is no whole number",
                       .allowed = "1 to 64"}),
            "a.yaml:12: children_max: 'many': it is no whole number (allowed: 1 to 64)");
  EXPECT_EQ(to_string({.key = "TRIBUTARY_LANES", .value = "", .why = "it is empty", .allowed = "auto"}),
            "TRIBUTARY_LANES: '': it is empty (allowed: auto)");
  EXPECT_EQ(to_string({.where = "a.yaml:1", .why = "this is no YAML"}), "a.yaml:1: this is no YAML");
}

TEST(Mistake, TheMistakeOfAnUnknownKeyNamesTheNearestKeyAndAllKeys) {
  EXPECT_EQ(to_string(unknown_key("a.yaml:2", "memroy", "setting", kNames)),
            "a.yaml:2: memroy: there is no such setting; is 'memory' meant? (allowed: memory, name, workers)");
  EXPECT_EQ(to_string(unknown_key("", "colour", "setting", kNames)),
            "colour: there is no such setting (allowed: memory, name, workers)");
}

TEST(Mistake, ShowsAnyValueOnOneLine) {
  EXPECT_EQ(to_string({.key = "k", .value = "a\nb\x1B[31m", .why = "no"}), "k: 'a b [31m': no");
  const std::string text = to_string({.key = "k", .value = std::string(5000, 'x'), .why = "no"});
  EXPECT_EQ(text, "k: '" + std::string(200, 'x') + "...': no");
}

TEST(Mistakes, AreLinesOfOneError) {
  Mistakes mistakes;
  EXPECT_TRUE(mistakes.none());
  EXPECT_TRUE(mistakes.status());
  mistakes.add({.key = "a", .why = "one"});
  mistakes.add({.key = "b", .why = "two"});
  ASSERT_FALSE(mistakes.status());
  EXPECT_EQ(mistakes.status().error().code, Errc::bad_config);
  EXPECT_EQ(mistakes.status().error().message, "a: one\nb: two");
}

TEST(NearestName, IsTheOneWithTheFewestOtherLetters) {
  EXPECT_THAT(nearest_name("wrokers", kNames, 1), Optional(std::string_view("workers")));
  EXPECT_EQ(nearest_name("colour", kNames, 1), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(65, 'x'), kNames, 100), std::nullopt) << "a long name is not compared";
}

}  // namespace
}  // namespace tributary::service
