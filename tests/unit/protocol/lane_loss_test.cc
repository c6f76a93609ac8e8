#include "tributary/protocol/lane_loss.h"

#include <gtest/gtest.h>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/frame.h"

namespace tributary {
namespace {

using Who = LaneLoss::Who;

TEST(LaneLoss, ArrivesAsItWasSent) {
  for (const LaneLoss& loss : {LaneLoss{.reason = "aggregator a drains"},
                               LaneLoss{.who = Who::rank, .rank = 70'000, .reason = "rank 70000 is gone"},
                               LaneLoss{.who = Who::aggregator, .aggregator = "leaf-3", .reason = "leaf-3 is gone"},
                               LaneLoss{.who = Who::aggregator, .aggregator = std::string(63, 'n'), .reason = ""}}) {
    EXPECT_EQ(decode_lane_loss(encode(loss)), loss);
  }
}

TEST(LaneLoss, ALongReasonIsCut) {
  const auto bytes = encode(LaneLoss{.who = Who::aggregator, .aggregator = "a", .reason = std::string(9000, 'x')});
  EXPECT_EQ(bytes.size(), payload_bytes_max(FrameType::failed));
  EXPECT_EQ(decode_lane_loss(bytes).aggregator, "a");
}

TEST(LaneLoss, AReportThatCannotBeReadNamesNoAggregator) {
  const auto good = encode(LaneLoss{.who = Who::aggregator, .aggregator = "ab", .reason = "gone"});
  const auto expect_nobody = [](std::span<const std::byte> bytes) {
    const LaneLoss loss = decode_lane_loss(bytes);
    EXPECT_EQ(loss.who, Who::nobody);
    EXPECT_EQ(loss.reason, "a failed frame that cannot be read [lane-broken]");
  };
  for (std::size_t cut = 0; cut < 10; ++cut) expect_nobody(std::span(good).first(cut));
  for (const auto& [at, value] :
       {std::pair{0, 3}, {0, 0}, {0, 1}, {1, 0}, {1, 64}, {1, 255}, {2, 1}, {8, 0}, {9, 10}}) {
    auto bad = good;
    bad[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    expect_nobody(bad);
  }
}

TEST(JoinPayload, HasTheNameOfAnAggregatorBehindItsTokens) {
  const TokenChain chain(3);
  const auto of = [&](std::string_view name) { return decode_join(encode_join(chain, name)); };
  EXPECT_EQ(of("")->name, "");
  EXPECT_EQ(of("leaf-3")->name, "leaf-3");
  EXPECT_EQ(of("leaf-3")->tokens.size(), 3U);
  EXPECT_EQ(of(std::string(63, 'n'))->name.size(), 63U);
  for (const auto& bad : {std::string(64, 'n'), std::string(319, 'n'), std::string("a b"), std::string("a\n")})
    EXPECT_FALSE(of(bad)) << bad;
  EXPECT_FALSE(decode_join({}));
  EXPECT_FALSE(decode_join(encode_join({}, "leaf")));
}

}  // namespace
}  // namespace tributary
