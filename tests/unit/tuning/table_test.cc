// Tuning tables as files: the code writes them, reads them, and refuses wrong ones with a sentence that says where and
// why.
#include <gmock/gmock.h>

#include "client/tuning/table.h"

namespace tributary::tuning {
namespace {

using testing::HasSubstr;

Table some_table() {
  Table table;
  table.figures = {.message_us = 3.25, .hop_us = 7, .link_gbits = 0, .cores = 64, .segment_bytes = 65536};
  table.rules = {{Collective::all_reduce, 4, 4, {4096, Path::ranks, Algorithm::recursive_doubling}},
                 {Collective::all_reduce, 4, 4, {UINT64_MAX, Path::tree, Algorithm::ring}},
                 {Collective::gather, 1, UINT32_MAX, {0, Path::ranks, Algorithm::linear}}};
  table.measured = {{Collective::all_reduce, 4, 4096, Path::tree, Algorithm::ring, 81.5}};
  return table;
}

TEST(Table, IsTheSameAfterBeingWrittenAndRead) {
  for (const Table& table : {Table{}, some_table()}) {
    const auto read = parse_table(to_text(table), "t.json");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, table);
  }
}

TEST(Table, HasDefaultsForEveryFigureThatIsLeftOut) {
  const auto table = parse_table(R"({"format": "tributary-tuning-1", "figures": {"hop_us": 5}})", "t.json");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->figures.hop_us, 5);
  EXPECT_EQ(table->figures.message_us, Figures{}.message_us);
  EXPECT_TRUE(table->rules.empty());
}

TEST(Table, NamesFileKeyAndWhatIsAllowedWhenItIsWrong) {
  const std::string rule =
      R"({"collective":"all_reduce","ranks":[4,4],"bytes_max":4096,"path":"ranks","algorithm":"ring"})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = rule;
    text.replace(text.find(from), from.size(), to);
    return R"({"format": "tributary-tuning-1", "rules": [)" + rule + "," + text + "]}";
  };
  const auto figure = [](const std::string& text) {
    return R"({"format": "tributary-tuning-1", "figures": {)" + text + "}}";
  };
  struct Wrong {
    std::string text, key, allowed;
  };
  for (const Wrong& wrong : {
           Wrong{"", "t.json:1: this is no valid JSON", "perf COLLECTIVE --tune FILE"},
           Wrong{"{\n\n\"format\": }", "t.json:3: this is no valid JSON", "--tune"},
           Wrong{R"({"format": 1e999})", "t.json: it has a number", "too large for a double"},
           Wrong{"[]", "t.json: this is no tuning table", "format, figures and rules"},
           Wrong{"{}", "t.json: format", "\"tributary-tuning-1\""},
           Wrong{R"({"format": "tributary-tuning-2"})", "t.json: format: 'tributary-tuning-2'", "tributary-tuning-1"},
           Wrong{R"({"format": "tributary-tuning-1", "rule": []})", "t.json: rule: there is no such key",
                 "format, figures, rules, measured"},
           Wrong{figure(R"("hop": 5)"), "t.json: figures.hop: there is no such key", "message_us, hop_us"},
           Wrong{figure(R"("hop_us": -1)"), "t.json: figures.hop_us: '-1'", "a number from 0.001 to"},
           Wrong{figure(R"("hop_us": "5")"), "t.json: figures.hop_us: '5'", "a number from"},
           Wrong{figure(R"("cores": 1.5)"), "t.json: figures.cores: '1.5'", "a whole number from 1"},
           Wrong{with("all_reduce", "allreduce"), "t.json: rules[1].collective: 'allreduce'", "all_reduce, reduce"},
           Wrong{with("[4,4]", "4"), "t.json: rules[1].ranks: '4'", "[LEAST, MOST]"},
           Wrong{with("[4,4]", "[5,4]"), "t.json: rules[1].ranks: '[5,4]'", "[LEAST, MOST]"},
           Wrong{with("4096", "-1"), "t.json: rules[1].bytes_max: '-1'", "null for no limit"},
           Wrong{with("\"ranks\",\"alg", "\"loop\",\"alg"), "t.json: rules[1].path: 'loop'", "tree or ranks"},
           Wrong{with("\"ring\"", "\"bruck\""), "t.json: rules[1].algorithm: 'bruck'",
                 "for all_reduce ring, recursive-doubling, halving-doubling"},
           Wrong{with("\"bytes_max\":4096,", ""), "t.json: rules[1].bytes_max: the key is missing", "null"},
           Wrong{with("\"path\"", "\"paths\""), "t.json: rules[1].paths: there is no such key", "collective, ranks"},
       }) {
    const auto table = parse_table(wrong.text, "t.json");
    ASSERT_FALSE(table) << wrong.text;
    EXPECT_EQ(table.error().code, Errc::bad_config);
    EXPECT_THAT(table.error().message, HasSubstr(wrong.key));
    EXPECT_THAT(table.error().message, HasSubstr(wrong.allowed));
  }
}

TEST(Table, RefusesTreesForCollectivesThatTheyCannotCarry) {
  const auto table = parse_table(
      R"({"format": "tributary-tuning-1", "rules": [{"collective":"gather","ranks":[1,9],"bytes_max":null,"path":"tree","algorithm":"linear"}]})",
      "t.json");
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message, HasSubstr("rules[0].path: 'tree': it is not allowed (allowed: ranks)"));
}

TEST(Table, SaysThatAFileCannotBeRead) {
  const auto table = read_table("/nowhere/tuning.json");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Errc::bad_config);
  EXPECT_THAT(table.error().message, HasSubstr("/nowhere/tuning.json"));
  EXPECT_THAT(table.error().message, HasSubstr("auto, model, off or the path of a file"));
}

}  // namespace
}  // namespace tributary::tuning
