#include "transport/verbs/on_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace tributary::transport::verbs {
namespace {

sockaddr_storage address(const std::string& text) {
  sockaddr_storage storage{};
  auto& four = reinterpret_cast<sockaddr_in&>(storage);
  auto& six = reinterpret_cast<sockaddr_in6&>(storage);
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
  } else if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
  }
  return storage;
}
bool neighbour(const std::string& own, const std::string& mask, const std::string& to) {
  const sockaddr_storage there = address(to);
  return is_neighbour({.address = address(own), .mask = address(mask)}, reinterpret_cast<const sockaddr&>(there));
}
bool on_link(const std::string& from, const std::string& to) {
  const sockaddr_storage here = address(from), there = address(to);
  return is_on_link(reinterpret_cast<const sockaddr&>(here), reinterpret_cast<const sockaddr&>(there));
}

TEST(OnLink, AnAddressInTheInterfacesOwnNetworkIsOnLink) {
  EXPECT_TRUE(neighbour("10.1.0.1", "255.255.255.0", "10.1.0.2"));
  EXPECT_FALSE(neighbour("10.1.0.1", "255.255.255.0", "10.1.1.2"));
  EXPECT_TRUE(neighbour("10.1.0.1", "255.255.254.0", "10.1.1.2")) << "the mask ends within a byte";
  EXPECT_FALSE(neighbour("10.1.0.1", "255.255.255.255", "10.1.0.2"));
  EXPECT_TRUE(neighbour("fd00:0:0:1::1", "ffff:ffff:ffff:ffff::", "fd00:0:0:1::2"));
  EXPECT_FALSE(neighbour("fd00:0:0:1::1", "ffff:ffff:ffff:ffff::", "fd00:0:0:2::2"));
  EXPECT_FALSE(neighbour("10.1.0.1", "255.255.255.0", "fd00::1")) << "the address is of another family";
}

TEST(OnLink, KnowsThisHostsInterfaces) {
  if (!on_link("127.0.0.1", "127.0.0.1")) GTEST_SKIP() << "this host has no loopback interface";
  EXPECT_TRUE(on_link("127.0.0.1", "127.9.9.9"));
  EXPECT_FALSE(on_link("127.0.0.1", "192.0.2.1"));
  EXPECT_FALSE(on_link("192.0.2.1", "192.0.2.2")) << "no interface has the address";
}

}  // namespace
}  // namespace tributary::transport::verbs
