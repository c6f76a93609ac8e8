// Processes of different protocol versions refuse each other's frames and tokens, and say why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/frame.h"

namespace tributary {
namespace {

using testing::HasSubstr;

constexpr std::size_t kVersionAt = 4;  // in a frame's header and in a token

TEST(ProtocolVersion, AFrameOfAnyOtherVersionIsNoFrame) {
  FrameBytes bytes{};
  encode(FrameHeader{}, bytes);
  ASSERT_TRUE(decode(bytes));
  EXPECT_EQ(bytes[kVersionAt], std::byte{kProtocolVersion});
  for (unsigned version = 0; version < 256; ++version) {
    if (version == kProtocolVersion) continue;
    bytes[kVersionAt] = static_cast<std::byte>(version);
    const auto header = decode(bytes);
    ASSERT_FALSE(header) << version;
    EXPECT_EQ(header.error(), FrameReject::version) << version;
  }
}

TEST(ProtocolVersion, TheReasonNamesTheVersionThatIsSpokenAndWhatToDo) {
  EXPECT_THAT(to_string(FrameReject::version),
              HasSubstr("protocol version is not " + std::to_string(kProtocolVersion)));
  EXPECT_THAT(to_string(FrameReject::version), HasSubstr("run one version of Tributary on all hosts"));
}

TEST(ProtocolVersion, ATokenOfAnotherVersionIsRefusedWithBothVersions) {
  const auto key = SigningKey::from_seed(std::array<std::byte, kPrivateKeyBytes>{});
  ASSERT_TRUE(key) << key.error().message;
  TokenClaims claims;
  claims.group = 1;
  claims.expires_at = 1'700'000'000;
  claims.segment_bytes = 4096;
  claims.ranks = 2;
  claims.children = 2;
  claims.window = 4;
  claims.root = true;
  claims.job = "job";
  claims.aggregator = "root";
  const auto token = key->sign(claims);
  ASSERT_TRUE(token) << token.error().message;
  ASSERT_TRUE(read_claims(*token));
  Token old = *token;
  old[kVersionAt] = std::byte{1};
  const auto read = read_claims(old);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("made for protocol version 1, and this process speaks version 3"));
  Token none = *token;
  none[0] = std::byte{0};
  EXPECT_THAT(read_claims(none).error().message, HasSubstr("no token"));
}

}  // namespace
}  // namespace tributary
