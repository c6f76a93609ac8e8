#include "client/api/interfaces.h"

#include <gtest/gtest.h>

namespace tributary::client {
namespace {

Environment master_addr(const char* value) {
  return [value](const char* name) { return std::string_view(name) == "MASTER_ADDR" ? value : nullptr; };
}

TEST(Interfaces, ANamedOneIsUsed) {
  const auto address = address_to_advertise("lo", master_addr(nullptr));
  ASSERT_TRUE(address) << address.error().message;
  EXPECT_EQ(*address, "127.0.0.1");
}

TEST(Interfaces, OneThatIsNotThereIsAConfigurationError) {
  const auto address = address_to_advertise("nosuch0", master_addr(nullptr));
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().code, Errc::bad_config);
  EXPECT_NE(address.error().message.find("nosuch0"), std::string::npos);
}

TEST(Interfaces, TheLoopbackIsPreferredWhereMasterAddrNamesIt) {
  for (const char* master : {"127.0.0.1", "127.0.1.1", "localhost"})
    EXPECT_EQ(address_to_advertise("", master_addr(master)), "127.0.0.1");
  EXPECT_EQ(address_to_advertise("", master_addr("::1")), "::1");
}

TEST(Interfaces, ThereIsAlwaysAnAddress) {
  for (const char* master : {static_cast<const char*>(nullptr), "10.1.2.3", "head-node"}) {
    const auto address = address_to_advertise("", master_addr(master));
    ASSERT_TRUE(address);
    EXPECT_FALSE(address->empty());
    EXPECT_FALSE(address->starts_with("fe80")) << "a link-local address means nothing elsewhere";
  }
}

TEST(Interfaces, TheAddressTowardsTheLoopbackIsTheLoopback) {
  EXPECT_EQ(address_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(address_towards("not an address"), "");
}

}  // namespace
}  // namespace tributary::client
