// Forms of output: YAML, colours, ages.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/cli/terminal/colour.h"
#include "client/cli/terminal/output_form.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

TEST(Yaml, IsInBlocksAndQuotesEveryText) {
  const json document = {
      {"a", 1}, {"b", {{"c", "no"}, {"d", json::array()}}}, {"e", {1, {{"f", true}, {"g", nullptr}}}}};
  EXPECT_EQ(to_yaml(document),
            "a: 1\n"
            "b:\n"
            "  c: \"no\"\n"
            "  d: []\n"
            "e:\n"
            "  - 1\n"
            "  - f: true\n"
            "    g: null\n");
}

TEST(Yaml, WritesScalarsAndEmptyDocuments) {
  EXPECT_EQ(to_yaml("x: y"), "\"x: y\"\n");
  EXPECT_EQ(to_yaml(json::object()), "{}\n");
  EXPECT_EQ(to_yaml(json::array({json::array({1, 2})})), "- - 1\n  - 2\n");
}

TEST(Yaml, DeepNestingEnds) {
  json deep = 1;
  for (int i = 0; i < 200; ++i) deep = json::array({std::move(deep)});
  EXPECT_FALSE(to_yaml(deep).empty());
}

TEST(OutputForms, AreTableWideJsonAndYaml) {
  for (const char* form : {"table", "wide", "json", "yaml"}) EXPECT_TRUE(parse_output_form(form)) << form;
  EXPECT_EQ(parse_output_form("xml").error().message, "it is none of these");
}

TEST(Colours, AreNotUsedForPipesOrAgainstTheSettings) {
  EXPECT_FALSE(output_takes_colour()) << "the output of tests is no terminal";
  EXPECT_EQ(colour_of("active"), Colour::good);
  EXPECT_EQ(colour_of("suspected"), Colour::bad);
  EXPECT_EQ(colour_of("bad"), Colour::bad);
  EXPECT_EQ(colour_of("worker-3"), Colour::none);
  EXPECT_EQ(coloured("x", Colour::none), "x");
}

TEST(Colours, DoNotMoveColumns) {
  Table table({"NAME", "STATE", "X"});
  table.add({"a", "active", "1"});
  table.add({"b", "-", "2"});
  EXPECT_EQ(table.text(true),
            "\x1b[1mNAME\x1b[0m  \x1b[1mSTATE\x1b[0m   \x1b[1mX\x1b[0m\n"
            "a     \x1b[32mactive\x1b[0m  1\n"
            "b     -       2\n");
}

TEST(Ages, AreShort) {
  EXPECT_EQ(age_text(0), "0s");
  EXPECT_EQ(age_text(59), "59s");
  EXPECT_EQ(age_text(60), "1m");
  EXPECT_EQ(age_text(3600), "1h");
  EXPECT_EQ(age_text(47 * 3600), "47h");
  EXPECT_EQ(age_text(48 * 3600), "2d");
}

}  // namespace
}  // namespace tributary::cli
