#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/cli/manager/tree_drawing.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

TEST(Table, AlignsItsColumnsAndEndsLinesWithoutBlanks) {
  Table table({"NAME", "STATE"});
  table.add({"a", "active"});
  table.add({"long-name", ""});
  EXPECT_EQ(table.text(),
            "NAME       STATE\n"
            "a          active\n"
            "long-name\n");
}

TEST(Table, DoesNotLetNamesSteerTheTerminal) {
  Table table({"NAME"});
  table.add({"\x1b[31mred\n"});
  EXPECT_EQ(table.text(), "NAME\n?[31mred?\n");
}

TEST(Units, AreEasyToRead) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(65536), "64 KiB");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(rate_text(100'000'000'000), "100 Gbit/s");
}

json rank(int number) {
  return {{"rank", number}, {"host", "h" + std::to_string(number)}};
}

TEST(TreeDrawing, GathersRanksThatFollowEachOther) {
  const json leaf = {{"aggregator", "leaf"},
                     {"host", "x"},
                     {"data", "1.2.3.4:5"},
                     {"level", 1},
                     {"children", {rank(0), rank(1), rank(2), rank(4)}}};
  const json root = {
      {"aggregator", "root"}, {"host", "y"}, {"data", "1.2.3.4:6"}, {"level", 2}, {"children", {leaf, rank(3)}}};
  const json trees = json::array({{{"lane", 0}, {"levels", 2}, {"aggregators", 2}, {"root", root}}});
  EXPECT_EQ(draw_trees(trees),
            "lane 0: 2 levels, 2 aggregators\n"
            "root on y, 1.2.3.4:6\n"
            "├─ leaf on x, 1.2.3.4:5\n"
            "│  ├─ ranks 0-2 on h0 ... h2\n"
            "│  └─ rank 4 on h4\n"
            "└─ rank 3 on h3\n");
}

TEST(TreeDrawing, SaysWhichShareEachOfSeveralLanesCarries) {
  const json root = {
      {"aggregator", "a"}, {"host", "y"}, {"data", "1.2.3.4:6"}, {"level", 1}, {"children", {rank(0), rank(1)}}};
  const auto lane = [&](int number, int group, int weight) {
    return json{{"lane", number},   {"levels", 1},    {"aggregators", 1}, {"root", root},
                {"weight", weight}, {"group", group}, {"job", "j"},       {"epoch", 1}};
  };
  const std::string text = draw_trees({lane(0, 1, 4), lane(1, 1, 1), lane(0, 2, 3)});
  EXPECT_NE(text.find("group 1, job j, epoch 1, lane 0: 1 level, 1 aggregator, 80 % of the bytes\n"),
            std::string::npos);
  EXPECT_NE(text.find("group 1, job j, epoch 1, lane 1: 1 level, 1 aggregator, 20 % of the bytes\n"),
            std::string::npos);
  EXPECT_NE(text.find("group 2, job j, epoch 1, lane 0: 1 level, 1 aggregator\n"), std::string::npos);
}

TEST(TreeDrawing, ATreeWithoutNodesHasNoLines) {
  EXPECT_EQ(draw_trees(json::array()), "");
}

}  // namespace
}  // namespace tributary::cli
