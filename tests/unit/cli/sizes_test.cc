#include <gmock/gmock.h>

#include "client/cli/options/byte_size.h"

namespace tributary::cli {
namespace {

using testing::StartsWith;

TEST(ByteSize, TakesPlainNumbersAndPowersOf1024) {
  EXPECT_EQ(parse_byte_size("0").value(), 0U);
  EXPECT_EQ(parse_byte_size("8").value(), 8U);
  EXPECT_EQ(parse_byte_size("8B").value(), 8U);
  EXPECT_EQ(parse_byte_size("4K").value(), 4096U);
  EXPECT_EQ(parse_byte_size("4k").value(), 4096U);
  EXPECT_EQ(parse_byte_size("4KiB").value(), 4096U);
  EXPECT_EQ(parse_byte_size("64M").value(), 64U << 20);
  EXPECT_EQ(parse_byte_size("3GB").value(), 3ULL << 30);
  EXPECT_EQ(parse_byte_size("4T").value(), 4ULL << 40);
}

TEST(ByteSize, SaysWhatIsWrongWithAnythingElse) {
  for (const char* text : {"", "K", "-1", "1.5M", " 8", "8 K", "8KK", "8X", "8iB", "0x8", "5T", "99999999999999999999",
                           "18446744073709551615"}) {
    const auto size = parse_byte_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error().code, Errc::bad_argument);
    EXPECT_THAT(size.error().message, StartsWith("it ")) << text;
  }
}

}  // namespace
}  // namespace tributary::cli
