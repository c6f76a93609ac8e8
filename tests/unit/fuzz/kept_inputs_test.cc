// Replays read the file in which a fuzz target keeps its inputs.
#include "tests/fuzz/kept_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::fuzz {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Returns the complaint about the text of a file `kept.txt`, or "nothing".
std::string complaint(std::string_view text) {
  const auto inputs = parse_kept_inputs(text, "kept.txt");
  return inputs ? "nothing" : inputs.error();
}

TEST(KeptInputs, AreReadWithTheirNamesAndAllTheirBytes) {
  const auto inputs = parse_kept_inputs("# a comment\n\n0a 54524231ff00\nempty -\nlast-one.2 0d0a", "kept.txt");
  ASSERT_TRUE(inputs) << inputs.error();
  ASSERT_EQ(inputs->size(), 3U);
  EXPECT_EQ(inputs->at(0).name, "0a");
  EXPECT_THAT(inputs->at(0).bytes, ElementsAre(0x54, 0x52, 0x42, 0x31, 0xff, 0x00));
  EXPECT_EQ(inputs->at(1).name, "empty");
  EXPECT_THAT(inputs->at(1).bytes, ElementsAre());
  EXPECT_EQ(inputs->at(2).name, "last-one.2");
  EXPECT_THAT(inputs->at(2).bytes, ElementsAre(0x0d, 0x0a));
}

TEST(KeptInputs, ALineThatIsMalformedIsNamed) {
  EXPECT_THAT(complaint("a 00\nb 0\n"), HasSubstr("kept.txt:2: the bytes of 'b' must be two digits of 0-9a-f each"));
  EXPECT_THAT(complaint("a 0g\n"), HasSubstr("kept.txt:1: the bytes of 'a'"));
  EXPECT_THAT(complaint("a 0A\n"), HasSubstr("kept.txt:1: the bytes of 'a'"));
  EXPECT_THAT(complaint("a 00 \n"), HasSubstr("kept.txt:1: the bytes of 'a'"));
  EXPECT_THAT(complaint("a 00\r\n"), HasSubstr("kept.txt:1: the bytes of 'a'"));
  EXPECT_THAT(complaint("a \n"), HasSubstr("kept.txt:1: the bytes of 'a'"));
  EXPECT_THAT(complaint("a\n"), HasSubstr("kept.txt:1: a line is a name, a space and bytes"));
  EXPECT_THAT(complaint(" 00\n"), HasSubstr("kept.txt:1: a line is a name, a space and bytes"));
}

TEST(KeptInputs, NoInputIsLostToAnotherOfTheSameName) {
  EXPECT_THAT(complaint("a 00\na 01\n"), HasSubstr("kept.txt:2: 'a' comes after 'a'"));
  EXPECT_THAT(complaint("b 00\n# in between\na 01\n"), HasSubstr("kept.txt:3: 'a' comes after 'b'"));
}

TEST(KeptInputs, AFileWithoutInputsIsNoFileOfInputs) {
  EXPECT_THAT(complaint(""), HasSubstr("kept.txt: no input is kept there"));
  EXPECT_THAT(complaint("# nothing\n"), HasSubstr("kept.txt: no input is kept there"));
  const auto missing = read_kept_inputs("/nonexistent/kept.txt");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error(), HasSubstr("/nonexistent/kept.txt: the file cannot be opened"));
}

}  // namespace
}  // namespace tributary::fuzz
