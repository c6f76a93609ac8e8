#include "tributary/protocol/json_reader.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>

namespace tributary {
namespace {

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(JsonReader, ReadsWhatTheParserReads) {
  for (const char* text : {"1", "\"a\"", "[]", "{\"a\": [1, 2, {\"b\": null}]}", " [\"\\\"[[[[\", \"\\\\\"] "}) {
    const auto read = read_json(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(*read, nlohmann::json::parse(text));
  }
}

TEST(JsonReader, AnErrorNamesTheTextThatIsNoJson) {
  for (const char* text : {"", "[", "{\"a\"}", "[1,]", "\"", "\"\\", "nul", "]]]]", "[1] 2"}) {
    const auto read = read_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, Errc::corrupt);
    EXPECT_TRUE(json_or_discarded(text).is_discarded());
  }
}

TEST(JsonReader, HasLimits) {
  EXPECT_TRUE(read_json(repeated("[", 32) + repeated("]", 32)));
  EXPECT_FALSE(read_json(repeated("[", 33) + repeated("]", 33)));
  EXPECT_FALSE(read_json(repeated("{\"a\":", 33) + "1" + repeated("}", 33)));
  const JsonLimits few{.bytes_max = 100, .values_max = 5};
  EXPECT_TRUE(read_json("[1,2,3,4]", few));
  EXPECT_FALSE(read_json("[1,2,3,4,5]", few));
  EXPECT_FALSE(read_json("[[],[],[]]", few));
  EXPECT_FALSE(read_json(std::string(101, ' '), few));
  EXPECT_NE(read_json("[1,2,3,4,5]", few).error().message.find("more than 5 values"), std::string::npos);
}

TEST(JsonReader, StringsNeitherHideNorCountBrackets) {
  EXPECT_TRUE(read_json("\"" + repeated("[{,", 10'000) + "\"", {.values_max = 2}));
  EXPECT_FALSE(read_json("[\"\\\\\"," + repeated("[", 100)));
}

TEST(JsonReader, FiveMillionBracketsCostNoMemory) {
  const std::string brackets = repeated("[", 5'000'000);
  const auto before = ::mallinfo2();
  EXPECT_FALSE(read_json(brackets));
  const auto after = ::mallinfo2();
  EXPECT_LE(after.arena + after.hblkhd, before.arena + before.hblkhd + (1U << 20));
}

// A text that passes the check needs no more memory than the limits allow.
TEST(JsonReader, NeverAcceptsATextThatIsDeeperThanItsLimit) {
  std::mt19937 random(3);
  constexpr std::string_view alphabet = "[]{}\"\\,:1a ";
  const std::function<std::size_t(const nlohmann::json&)> depth_of = [&](const nlohmann::json& value) -> std::size_t {
    if (!value.is_structured()) return 0;
    std::size_t most = 0;
    for (const auto& inner : value) most = std::max(most, depth_of(inner));
    return most + 1;
  };
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const auto all = nlohmann::json::parse(text, nullptr, false);
    const auto read = read_json(text, {.depth_max = 2});
    if (all.is_discarded()) {
      EXPECT_FALSE(read) << text;
    } else {
      EXPECT_EQ(read.has_value(), depth_of(all) <= 2) << text;
    }
  }
}

}  // namespace
}  // namespace tributary
