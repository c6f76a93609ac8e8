// Shapes of links, requests to the kernel, and rates in the invented topology.
#include "client/cli/network/links.h"

#include <gmock/gmock.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "client/cli/cluster/cluster_layout.h"

namespace tributary::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LinkShape, FollowsTheRateBetweenItsBounds) {
  const LinkShape slow = shape_for(1'000'000);
  EXPECT_EQ(slow.bytes_per_second, 125'000U);
  EXPECT_EQ(slow.burst_bytes, 2 * kFrameBytes) << "a bucket that holds no frame never lets one go";
  EXPECT_EQ(slow.queue_bytes, 256U << 10);
  EXPECT_EQ(slow.segment_bytes, 2 * kFrameBytes);
  const LinkShape gigabit = shape_for(1'000'000'000);
  EXPECT_EQ(gigabit.burst_bytes, 2 * kFrameBytes);
  EXPECT_EQ(gigabit.queue_bytes, 500'000U);
  EXPECT_EQ(gigabit.segment_bytes, 62'500U);
  const LinkShape fast = shape_for(100'000'000'000);
  EXPECT_EQ(fast.burst_bytes, 1'562'500U);
  EXPECT_EQ(fast.queue_bytes, 50'000'000U);
  EXPECT_EQ(fast.segment_bytes, 65'536U);
}

std::uint16_t number_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint16_t value = 0;
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

TEST(NetlinkMessage, AlignsAttributesAndCountsWhatTheyHold) {
  NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE);
  message.body(ifinfomsg{});
  message.nested(IFLA_LINKINFO, [&] {
    message.text(IFLA_INFO_KIND, "veth");
    message.attribute(IFLA_INFO_DATA, std::uint8_t{7});
  });
  const auto bytes = message.finish(42);
  const std::size_t outer = sizeof(nlmsghdr) + sizeof(ifinfomsg), inner = outer + sizeof(rtattr);
  ASSERT_EQ(bytes.size(), inner + 12 + 8) << "4 + 5 bytes, and 4 + 1, each padded to a multiple of 4";
  EXPECT_EQ(number_at(bytes, outer), bytes.size() - outer);
  EXPECT_EQ(number_at(bytes, inner), 9) << "the length does not count the padding";
  EXPECT_EQ(number_at(bytes, inner + 12), 5);
  EXPECT_EQ(static_cast<char>(bytes[inner + 4]), 'v');
  nlmsghdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  EXPECT_EQ(header.nlmsg_len, bytes.size());
  EXPECT_EQ(header.nlmsg_seq, 42U);
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE);
}

TEST(ClusterLayout, NamesTheRatesOfTheLinks) {
  const auto layout = lay_out_cluster({.ranks = 4,
                                       .aggregators = 1,
                                       .levels = 1,
                                       .rank_bits_per_second = 1'000'000'000,
                                       .aggregator_bits_per_second = 10'000'000'000});
  ASSERT_TRUE(layout);
  EXPECT_THAT(layout->topology, HasSubstr("{from: worker-3, to: switch-1-0, rate: 1Gbit/s}"));
  EXPECT_THAT(layout->topology, HasSubstr("{from: beside-aggregator-0, to: switch-1-0, rate: 10Gbit/s}"));
  EXPECT_THAT(layout->topology, Not(HasSubstr("200Tbit/s")));
}

}  // namespace
}  // namespace tributary::cli
