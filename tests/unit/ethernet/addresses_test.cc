#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/ethernet/frames.h"

namespace tributary::transport::ethernet::test {
namespace {

using ::testing::HasSubstr;

TEST(Addresses, AreReadAndWritten) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "fd00::1", "fe80::1:2", "::1"}) {
    EXPECT_EQ(to_string(ip(text)), text);
  }
  EXPECT_TRUE(is_ipv4(ip("10.0.0.1")));
  EXPECT_FALSE(is_ipv4(ip("::1")));
  EXPECT_EQ(to_string(kTheirMac), "02:00:00:00:00:02");
}

TEST(Addresses, AWrongAddressIsNamed) {
  EXPECT_THAT(parse_ip("10.0.0").error().message, HasSubstr("10.0.0"));
  EXPECT_THAT(parse_prefix("10.0.0.1").error().message, HasSubstr("no prefix length"));
  EXPECT_THAT(parse_prefix("10.0.0.1/33").error().message, HasSubstr("0 to 32"));
  EXPECT_THAT(parse_prefix("fd00::1/129").error().message, HasSubstr("0 to 128"));
  EXPECT_THAT(parse_prefix("fd00::1/x").error().message, HasSubstr("0 to 128"));
}

TEST(Addresses, KnowTheirKinds) {
  EXPECT_TRUE(is_multicast(ip("224.0.0.1")));
  EXPECT_TRUE(is_multicast(ip("255.255.255.255")));
  EXPECT_TRUE(is_multicast(ip("ff02::1")));
  EXPECT_FALSE(is_multicast(ip("223.255.255.255")));
  EXPECT_TRUE(is_loopback(ip("127.8.8.8")));
  EXPECT_TRUE(is_loopback(ip("::1")));
  EXPECT_TRUE(is_unspecified(ip("0.0.0.0")));
  EXPECT_TRUE(is_unspecified(ip("::")));
  EXPECT_TRUE(is_link_local(ip("fe80::1")));
  EXPECT_FALSE(is_link_local(ip("fd00::1")));
}

TEST(Prefix, HoldsTheAddressesThatShareItsBits) {
  const Prefix twenty_two = prefix("10.1.4.7/22");
  EXPECT_TRUE(twenty_two.contains(ip("10.1.4.0")));
  EXPECT_TRUE(twenty_two.contains(ip("10.1.7.255")));
  EXPECT_FALSE(twenty_two.contains(ip("10.1.8.0")));
  EXPECT_FALSE(twenty_two.contains(ip("fd00::1")));
  EXPECT_TRUE(prefix("10.0.0.1/32").contains(ip("10.0.0.1")));
  EXPECT_FALSE(prefix("10.0.0.1/32").contains(ip("10.0.0.0")));
  EXPECT_TRUE(prefix("0.0.0.0/0").contains(ip("8.8.8.8")));
  EXPECT_TRUE(prefix("fd00::1/63").contains(ip("fd00:0:0:1::5")));
  EXPECT_FALSE(prefix("fd00::1/64").contains(ip("fd00:0:0:1::5")));
}

// RFC 4291, appendix A and 2.7.1; RFC 2464, 7.
TEST(Addresses, AreMadeFromTheHardwareAddressForIpv6) {
  const MacAddress mac{{0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE}};
  EXPECT_EQ(to_string(link_local_of(mac)), "fe80::3656:78ff:fe9a:bcde");
  EXPECT_EQ(to_string(solicited_node_of(ip("4037::1:800:200e:8c6c"))), "ff02::1:ff0e:8c6c");
  EXPECT_EQ(to_string(multicast_mac_of(ip("ff02::1:ff0e:8c6c"))), "33:33:ff:0e:8c:6c");
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
