#include "client/plugins/nccl/interface_filter.h"

#include <gtest/gtest.h>

namespace tributary::nccl {
namespace {

TEST(InterfaceFilter, TakesPrefixes) {
  const InterfaceFilter filter("eth,ib");
  EXPECT_TRUE(filter.admits("eth0"));
  EXPECT_TRUE(filter.admits("ibp3s0"));
  EXPECT_FALSE(filter.admits("docker0"));
  EXPECT_FALSE(filter.admits("veth0")) << "a prefix matches only at the beginning";
}

TEST(InterfaceFilter, TakesWholeNamesAfterAnEqualsSign) {
  const InterfaceFilter filter("=eth0,eth2:7000");
  EXPECT_TRUE(filter.admits("eth0"));
  EXPECT_TRUE(filter.admits("eth2"));
  EXPECT_FALSE(filter.admits("eth01"));
}

TEST(InterfaceFilter, LeavesOutWhatACaretNames) {
  EXPECT_FALSE(InterfaceFilter("^docker,lo").admits("docker0"));
  EXPECT_TRUE(InterfaceFilter("^docker,lo").admits("eth0"));
  EXPECT_FALSE(InterfaceFilter("^=eth1").admits("eth1"));
  EXPECT_TRUE(InterfaceFilter("^=eth1").admits("eth10"));
}

TEST(InterfaceFilter, AdmitsAllInterfacesWithoutASetting) {
  for (const char* text : {"", "^", "=", ","}) {
    EXPECT_TRUE(InterfaceFilter(text).empty()) << text;
    EXPECT_TRUE(InterfaceFilter(text).admits("eth0")) << text;
  }
}

}  // namespace
}  // namespace tributary::nccl
