#include "service-kit/units.h"

#include <gmock/gmock.h>

namespace tributary::service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(Units, ReadsQuantitiesWithTheirUnits) {
  EXPECT_EQ(*parse_bytes("4GiB"), 4ULL << 30);
  EXPECT_EQ(*parse_bytes("1.5 MB"), 1'500'000U);
  EXPECT_EQ(*parse_bytes("0B"), 0U);
  EXPECT_EQ(*parse_rate("100Gbit/s"), 100'000'000'000U);
  EXPECT_EQ(*parse_rate("2.5Gbit/s"), 2'500'000'000U);
  EXPECT_EQ(*parse_duration("10s"), 10s);
  EXPECT_EQ(*parse_duration("1.5ms"), 1500us);
  EXPECT_EQ(*parse_duration("2min"), 120s);
  EXPECT_EQ(*parse_duration("5h"), 5h);
  EXPECT_EQ(*parse_duration("50us"), 50us);
}

TEST(Units, AnErrorNamesTheMistakeAndTheUnits) {
  const auto why = [](const auto& result) { return result ? std::string("(taken)") : result.error().message; };
  EXPECT_THAT(why(parse_bytes("4")), HasSubstr("has no unit; write a number with B, kB, KiB"));
  EXPECT_THAT(why(parse_bytes("4gib")), HasSubstr("'gib' is no unit for it"));
  EXPECT_THAT(why(parse_bytes("10s")), HasSubstr("'s' is no unit for it"));
  EXPECT_THAT(why(parse_bytes("")), HasSubstr("does not begin with a number"));
  EXPECT_THAT(why(parse_bytes("lots")), HasSubstr("does not begin with a number"));
  EXPECT_THAT(why(parse_bytes("-1GiB")), HasSubstr("negative"));
  EXPECT_THAT(why(parse_bytes("0.5B")), HasSubstr("no whole number of B"));
  EXPECT_THAT(why(parse_bytes("1e3B")), HasSubstr("no unit for it"));
  EXPECT_THAT(why(parse_bytes("nanGiB")), HasSubstr("does not begin with a number"));
  EXPECT_THAT(why(parse_bytes("99999999999TiB")), HasSubstr("too large"));
  EXPECT_THAT(why(parse_rate("100G")), HasSubstr("'G' is no unit for it"));
  EXPECT_THAT(why(parse_rate("100GB/s")), HasSubstr("bit/s, kbit/s, Mbit/s, Gbit/s or Tbit/s, for example 100Gbit/s"));
  EXPECT_THAT(why(parse_duration("5")), HasSubstr("us, ms, s, min or h, for example 10s"));
  EXPECT_THAT(why(parse_duration("5 sec")), HasSubstr("'sec' is no unit"));
}

TEST(Units, AnErrorMayNameTheValue) {
  EXPECT_EQ(naming("4", parse_bytes("4")).error().message.substr(0, 21), "'4': it has no unit; ");
  EXPECT_EQ(*naming("4B", parse_bytes("4B")), 4U);
}

TEST(Units, WritesWhatItReads) {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 1000ULL, 1024ULL, 1'500'000ULL, 5ULL << 30, 123'456'789ULL}) {
    EXPECT_EQ(*parse_bytes(bytes_text(bytes)), bytes) << bytes_text(bytes);
    EXPECT_EQ(*parse_rate(rate_text(bytes)), bytes) << rate_text(bytes);
    EXPECT_EQ(parse_duration(duration_text(std::chrono::microseconds(bytes)))->count(), bytes);
  }
  EXPECT_EQ(bytes_text(4ULL << 30), "4GiB");
  EXPECT_EQ(rate_text(100'000'000'000), "100Gbit/s");
  EXPECT_EQ(duration_text(90s), "90s");
  EXPECT_EQ(duration_text(2h), "2h");
}

}  // namespace
}  // namespace tributary::service
