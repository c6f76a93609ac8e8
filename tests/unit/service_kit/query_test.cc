// The query of a request's target: names, values and refusals.
#include "service-kit/http/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::service {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(Query, HasNamesAndDecodedValues) {
  EXPECT_THAT(read_query("seconds=0.5&job=a%20b%26c"),
              testing::Optional(UnorderedElementsAre(Pair("seconds", "0.5"), Pair("job", "a b&c"))));
  EXPECT_THAT(read_query("failed="), testing::Optional(UnorderedElementsAre(Pair("failed", ""))));
  EXPECT_THAT(read_query(""), testing::Optional(testing::IsEmpty()));
}

TEST(Query, PartsWithoutAnEqualsSignAreRefused) {
  EXPECT_EQ(read_query("seconds"), std::nullopt);
  EXPECT_EQ(read_query("a=1&"), std::nullopt);
  EXPECT_EQ(read_query("&a=1"), std::nullopt);
}

TEST(Query, NamesThatStandTwiceAreRefused) {
  EXPECT_EQ(read_query("number=1&number=2"), std::nullopt);
}

TEST(Query, WrongPercentSignsAreRefused) {
  EXPECT_EQ(read_query("job=%2"), std::nullopt);
  EXPECT_EQ(read_query("jo%zz=1"), std::nullopt);
}

TEST(Query, ANameWithoutAValueHasNone) {
  const auto values = read_query("a=1");
  ASSERT_TRUE(values);
  EXPECT_EQ(value_of(*values, "a"), "1");
  EXPECT_EQ(value_of(*values, "b"), std::nullopt);
}

}  // namespace
}  // namespace tributary::service
