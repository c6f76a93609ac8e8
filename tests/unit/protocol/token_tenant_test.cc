// The tenant and the weight in tokens, also with readers and writers that do not know them.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/protocol/token_bytes.h"
#include "tributary/protocol/credential.h"

namespace tributary {
namespace {

TokenClaims claims_of(std::string job, std::string tenant, std::uint8_t weight, std::uint64_t fence = 9) {
  return {.job = std::move(job),
          .aggregator = "leaf-1",
          .group = 7,
          .epoch = 1,
          .children = 2,
          .window = 8,
          .segment_bytes = 65536,
          .ranks = 2,
          .root = true,
          .expires_at = 2'000'000'000,
          .fence = fence,
          .tenant = std::move(tenant),
          .weight = weight};
}

TEST(TokenTenant, TravelsBetweenTheJobAndTheFence) {
  for (const std::uint64_t fence : {std::uint64_t{0}, std::uint64_t{1}, kFenceMax}) {
    for (const std::size_t tenant : {0UL, 1UL, 23UL, 24UL}) {
      for (const std::uint8_t weight : {std::uint8_t{1}, std::uint8_t{2}, kShareWeightMax}) {
        for (const std::size_t job : {0UL, 1UL, 29UL, 30UL}) {
          const TokenClaims claims = claims_of(std::string(job, 'j'), std::string(tenant, 't'), weight, fence);
          EXPECT_EQ(read_claims(signed_with(claims)).value(), claims)
              << fence << " " << tenant << " " << int{weight} << " " << job;
        }
      }
    }
  }
}

TEST(TokenTenant, CutsALongJobAndNothingElse) {
  const auto read = read_claims(signed_with(claims_of(std::string(63, 'j'), std::string(24, 't'), 3))).value();
  EXPECT_EQ(read.job, std::string(30, 'j'));
  EXPECT_EQ(read.tenant, std::string(24, 't'));
  EXPECT_EQ(read.weight, 3);
  EXPECT_EQ(read.fence, 9U);
  const auto split = read_claims(signed_with(claims_of(std::string(52, 'j') + "\u00e4\u00e4", "t", 1))).value();
  EXPECT_EQ(split.job, std::string(52, 'j')) << "a character is kept whole or not at all";
  EXPECT_EQ(split.tenant, "t");
}

TEST(TokenTenant, IsBehindTheEndOfTheJobForAnOlderReader) {
  const Token token = signed_with(claims_of("training", "physics", 4));
  const char* const job = reinterpret_cast<const char*>(token.data() + kJobAt);
  EXPECT_EQ(std::string(job, strnlen(job, 63)), "training");
  EXPECT_EQ(job[63], 0) << "the last byte of a name is zero";
}

TEST(TokenTenant, IsEmptyInTheTokenOfAnOlderManager) {
  for (const std::size_t length : {0UL, 30UL, 54UL, 55UL}) {
    const auto read = read_claims(signed_with(claims_of(std::string(length, 'j'), "", 1))).value();
    EXPECT_EQ(read.tenant, "") << length;
    EXPECT_EQ(read.weight, 1) << length;
    EXPECT_EQ(read.job.size(), length);
  }
  for (const std::size_t length : {56UL, 60UL, 63UL}) {
    const auto read = read_claims(signed_with(claims_of(std::string(length, 'j'), "", 1, 0))).value();
    EXPECT_EQ(read.tenant, "") << length;
    EXPECT_EQ(read.weight, 1) << length;
  }
}

TEST(TokenTenant, ATenantOutOfBoundsIsRefused) {
  const SigningKey key = std::move(*SigningKey::generate());
  EXPECT_EQ(key.sign(claims_of("j", "t", 0)).error().code, Errc::bad_argument);
  EXPECT_EQ(key.sign(claims_of("j", "t", 17)).error().code, Errc::bad_argument);
  EXPECT_EQ(key.sign(claims_of("j", "two words", 1)).error().code, Errc::bad_argument);
  EXPECT_EQ(key.sign(claims_of("j", std::string(25, 't'), 1)).error().code, Errc::bad_argument);
  Token token = signed_with(claims_of("j", "t", 1));
  token[kJobAt + 2] = std::byte{17};
  EXPECT_EQ(read_claims(token).error().code, Errc::corrupt);
}

TEST(TokenTenant, ALongNameKeepsItsBeginningAndDiffersFromAllOthers) {
  EXPECT_EQ(tenant_in_token(""), "");
  EXPECT_EQ(tenant_in_token("physics"), "physics");
  EXPECT_EQ(tenant_in_token(std::string(24, 't')), std::string(24, 't'));
  const std::string one = tenant_in_token("department-of-physics-1");
  EXPECT_EQ(one, "department-of-physics-1");
  const std::string two = tenant_in_token("department-of-astrophysics-1");
  const std::string three = tenant_in_token("department-of-astrophysics-2");
  EXPECT_EQ(two.substr(0, 16), "department-of-a~");
  EXPECT_EQ(two.size(), kTokenTenantBytesMax);
  EXPECT_NE(two, three);
  EXPECT_TRUE(is_name(tenant_in_token("with blanks"))) << tenant_in_token("with blanks");
}

}  // namespace
}  // namespace tributary
