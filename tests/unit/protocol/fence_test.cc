// The fence in tokens and descriptors, also with readers and writers that do not know fences.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/unit/protocol/token_bytes.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/descriptor.h"

namespace tributary {
namespace {

TokenClaims claims_of(std::string job, std::uint64_t fence) {
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
          .fence = fence};
}

TEST(Fence, TravelsInATokenBesideTheJob) {
  for (const std::uint64_t fence : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1'800'000'000'123}, kFenceMax}) {
    for (const std::size_t length : {0UL, 1UL, 54UL, 55UL}) {
      const TokenClaims claims = claims_of(std::string(length, 'j'), fence);
      EXPECT_EQ(read_claims(signed_with(claims)).value(), claims) << fence << " " << length;
    }
  }
}

TEST(Fence, CutsALongJobAndNothingElse) {
  const auto read = read_claims(signed_with(claims_of(std::string(63, 'j'), 9))).value();
  EXPECT_EQ(read.fence, 9U);
  EXPECT_EQ(read.job, std::string(55, 'j'));
  EXPECT_EQ(read_claims(signed_with(claims_of(std::string(54, 'j') + "\u00e4\u00e4", 9)))->job, std::string(54, 'j'))
      << "a character is kept whole or not at all";
}

TEST(Fence, IsNotReadOutOfTheLongJobOfAnOlderManager) {
  for (const std::size_t length : {55UL, 56UL, 60UL, 63UL}) {
    const TokenClaims claims = claims_of(std::string(length, 'j'), 0);
    EXPECT_EQ(read_claims(signed_with(claims)).value(), claims) << length;
  }
}

TEST(Fence, IsBehindTheEndOfTheJobForAnOlderReader) {
  const Token token = signed_with(claims_of(std::string(63, 'j'), kFenceMax));
  const char* const job = reinterpret_cast<const char*>(token.data() + kJobAt);
  EXPECT_EQ(strnlen(job, 63), 55U);
  EXPECT_EQ(job[63], 0) << "the last byte of a name is zero";
}

TEST(Fence, AFenceOutOfBoundsIsRefused) {
  EXPECT_EQ(SigningKey::generate()->sign(claims_of("j", kFenceMax + 1)).error().code, Errc::bad_argument);
  Token token = signed_with(claims_of("j", 1));
  token[kJobAt + 62] = std::byte{0xff};
  EXPECT_EQ(read_claims(token).error().code, Errc::corrupt);
}

TEST(Fence, TravelsInADescriptorAndToEachRank) {
  GroupDescriptor descriptor{.group = 7, .epoch = 0, .job = "j", .fence = 12};
  EXPECT_EQ(group_descriptor_from_json(to_json(descriptor))->fence, 12U);
  EXPECT_EQ(descriptor.for_rank(0).fence, 12U);
  descriptor.fence = 0;
  const auto without = to_json(descriptor);
  EXPECT_FALSE(without.contains("fence"));
  EXPECT_EQ(group_descriptor_from_json(without)->fence, 0U);
}

}  // namespace
}  // namespace tributary
