#include "tributary/transport/source.h"

#include <gtest/gtest.h>

namespace tributary::transport {
namespace {

TEST(SourceOfAPeer, IsItsAddressWithoutThePort) {
  EXPECT_EQ(source_of("10.0.0.1:7471"), source_of("10.0.0.1:9"));
  EXPECT_EQ(source_of("10.0.0.1:7471"), source_of("10.0.0.1"));
  EXPECT_EQ(source_of("::ffff:10.0.0.1"), source_of("10.0.0.1"));
  EXPECT_NE(source_of("10.0.0.1:7471"), source_of("10.0.0.2:7471"));
}

TEST(SourceOfAPeer, IsTheNetworkOfAnIPv6Address) {
  EXPECT_EQ(source_of("[2001:db8::1]:7471"), source_of("2001:db8::ffff"));
  EXPECT_NE(source_of("[2001:db8:0:1::1]:7471"), source_of("[2001:db8:0:2::1]:7471"));
  EXPECT_EQ(source_of("[fe80::1%eth0]:7471"), source_of("fe80::1"));
}

TEST(SourceOfAPeer, IsANameWhereThereIsNoAddress) {
  EXPECT_EQ(source_of("host1:7"), source_of("host1:8"));
  EXPECT_NE(source_of("host1:7"), source_of("host2:7"));
  EXPECT_EQ(source_of("[10.0.0.1"), source_of("10.0.0.1"));
  EXPECT_EQ(source_of(""), source_of(":7"));
  const std::string longer(1000, '1');
  EXPECT_EQ(source_of(longer), source_of(longer + ":7"));
}

}  // namespace
}  // namespace tributary::transport
