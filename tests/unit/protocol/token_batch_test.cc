// One signature is good for a batch of tokens, and for nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tributary/protocol/credential.h"

namespace tributary {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSeconds = 1'700'000'000;
// Offsets in a token (docs/protocol.md).
constexpr std::size_t kClaims = 256, kSalt = 16, kPlaceAt = kClaims + kSalt + kSignatureBytes, kLevelsAt = kPlaceAt + 1,
                      kWayAt = kPlaceAt + 8, kHash = 32;

std::vector<TokenClaims> claims_of(std::size_t tokens) {
  std::vector<TokenClaims> all;
  for (std::size_t i = 0; i < tokens; ++i) {
    TokenClaims claims;
    claims.job = "job";
    claims.aggregator = "root";
    claims.group = 7;
    claims.epoch = 1;
    claims.child = static_cast<std::uint16_t>(i % 64);
    claims.children = 64;
    claims.window = 4;
    claims.segment_bytes = 4096;
    claims.rank = static_cast<std::uint32_t>(i);
    claims.ranks = 100;
    claims.root = true;
    claims.expires_at = kSeconds + 60;
    all.push_back(claims);
  }
  return all;
}

class TokenBatch : public testing::Test {
 protected:
  SigningKey key_ = SigningKey::from_seed(std::array<std::byte, kPrivateKeyBytes>{std::byte{1}}).value();
  TokenVerifier verifier_ = TokenVerifier::create(key_.public_key()).value();
};

std::set<std::vector<std::byte>> signatures(const std::vector<Token>& tokens) {
  std::set<std::vector<std::byte>> all;
  for (const Token& token : tokens)
    all.emplace(token.begin() + kClaims + kSalt, token.begin() + kClaims + kSalt + kSignatureBytes);
  return all;
}

TEST_F(TokenBatch, EachTokenOfEachSizeOfBatchSaysItsOwnClaims) {
  for (std::size_t count = 0; count <= 2 * kTokensPerSignature + 1; ++count) {
    const auto claims = claims_of(count);
    const auto tokens = key_.sign(claims).value();
    ASSERT_EQ(tokens.size(), count);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(verifier_.verify(tokens[i], kSeconds).value(), claims[i]) << count;
    EXPECT_EQ(signatures(tokens).size(), (count + kTokensPerSignature - 1) / kTokensPerSignature);
  }
}

TEST_F(TokenBatch, ATokenWithAnyOtherByteIsRefused) {
  for (const std::size_t batch : {std::size_t{1}, std::size_t{2}, kTokensPerSignature}) {
    const Token right = key_.sign(claims_of(batch)).value().back();
    for (std::size_t at = 0; at < kTokenBytes; ++at) {
      Token wrong = right;
      wrong[at] ^= std::byte{1};
      EXPECT_FALSE(verifier_.verify(wrong, kSeconds)) << "byte " << at << " of a token of a batch of " << batch;
    }
  }
}

TEST_F(TokenBatch, AnotherKeysTokenIsRefused) {
  const auto other = SigningKey::from_seed(std::array<std::byte, kPrivateKeyBytes>{std::byte{2}}).value();
  const auto read = verifier_.verify(other.sign(claims_of(1)[0]).value(), kSeconds);
  EXPECT_EQ(read.error().code, Errc::denied);
  EXPECT_THAT(read.error().message, HasSubstr("not signed by this cluster's manager"));
}

TEST_F(TokenBatch, APlaceOutsideOfTheTreeIsRefused) {
  const auto token = key_.sign(claims_of(1)[0]).value();
  for (const auto& [place, levels] : {std::pair{1, 0}, {8, 3}, {0, 4}, {255, 255}}) {
    Token wrong = token;
    wrong[kPlaceAt] = static_cast<std::byte>(place);
    wrong[kLevelsAt] = static_cast<std::byte>(levels);
    EXPECT_EQ(verifier_.verify(wrong, kSeconds).error().code, Errc::corrupt) << place << " of " << levels;
  }
}

// The claims of the token beside one's own are easy to guess, so the token needs something that its holder cannot know.
TEST_F(TokenBatch, AHolderCannotMakeTheTokenBesideItsOwn) {
  const auto tokens = key_.sign(claims_of(2)).value();
  EXPECT_FALSE(
      std::equal(tokens[0].begin() + kClaims, tokens[0].begin() + kClaims + kSalt, tokens[1].begin() + kClaims));
  // The holder of token 0 takes its own salt, and the claims of token 1. It would know the hash of its own leaf; the
  // test takes it from token 1.
  Token made = tokens[0];
  std::copy_n(tokens[1].begin(), kClaims, made.begin());
  made[kPlaceAt] = std::byte{1};
  std::copy_n(tokens[1].begin() + kWayAt, kHash, made.begin() + kWayAt);
  EXPECT_EQ(verifier_.verify(made, kSeconds).error().code, Errc::denied);
  std::copy_n(tokens[1].begin() + kClaims, kSalt, made.begin() + kClaims);  // the only secret
  EXPECT_TRUE(verifier_.verify(made, kSeconds));
}

TEST_F(TokenBatch, AWrongClaimIsNamedAndNothingIsSigned) {
  auto claims = claims_of(3);
  claims[2].window = 0;
  EXPECT_THAT(key_.sign(claims).error().message, HasSubstr("window is 0"));
}

}  // namespace
}  // namespace tributary
