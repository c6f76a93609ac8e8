// The main function of a program that has the tests of several source files:
//     PROGRAM [--tests-of FILE...] [GoogleTest's options]
// runs the tests of these files alone. FILE is a path as it stands in the folder's CMakeLists.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Files = std::vector<std::string>;

bool is_in(const testing::TestInfo& test, const Files& files) {
  return std::ranges::any_of(files, [&](const std::string& file) {
    return std::string_view(test.file()).ends_with("/" + file) || test.file() == file;
  });
}

/// Appends the patterns of all tests whose being in `files` is `wanted`: one pattern for each suite where that suffices.
void add_patterns(const testing::TestSuite& suite, const Files& files, bool wanted, std::string& patterns) {
  std::vector<std::string> names;
  for (int i = 0; i < suite.total_test_count(); ++i) {
    const testing::TestInfo& test = *suite.GetTestInfo(i);
    if (is_in(test, files) == wanted) names.push_back(std::string(suite.name()) + "." + test.name());
  }
  if (static_cast<int>(names.size()) == suite.total_test_count()) names = {std::string(suite.name()) + ".*"};
  for (const std::string& name : names) patterns += (patterns.empty() ? "" : ":") + name;
}

std::string patterns_of(const Files& files, bool wanted) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  std::string patterns;
  for (int i = 0; i < all.total_test_suite_count(); ++i) add_patterns(*all.GetTestSuite(i), files, wanted, patterns);
  return patterns;
}

/// Leaves the tests of `files` that `filter` leaves. GoogleTest has no "and" of two filters: with a filter of the
/// caller, the tests of other files are excluded.
std::string filter_for(const Files& files, const std::string& filter) {
  if (filter == "*") return patterns_of(files, true);
  const std::string others = patterns_of(files, false);
  if (others.empty()) return filter;
  return filter + (filter.contains('-') ? ":" : "-") + others;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1) {
    const Files files(argv + 2, argv + argc);
    if (std::string_view(argv[1]) != "--tests-of" || patterns_of(files, true).empty()) {
      std::fprintf(stderr, "%s takes --tests-of FILE..., with files of this program that have tests\n", argv[0]);
      return 64;
    }
    GTEST_FLAG_SET(filter, filter_for(files, GTEST_FLAG_GET(filter)));
  }
  return RUN_ALL_TESTS();
}
