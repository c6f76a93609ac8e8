#include "tributary/transport/rdma_path.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tributary::transport {
namespace {

const RdmaPathSetting& setting(std::string_view name) {
  return *std::ranges::find(rdma_path_settings(), name, &RdmaPathSetting::name);
}
bool takes(std::string_view name, std::string_view value) {
  RdmaPath path;
  return setting(name).set(path, value);
}

TEST(RdmaPathSettings, ReadTheValuesThatTheyWrite) {
  RdmaPath path;
  for (const RdmaPathSetting& one : rdma_path_settings()) {
    EXPECT_EQ(one.text(path), one.default_text) << one.name;
    EXPECT_TRUE(one.set(path, one.default_text)) << one.name;
  }
  EXPECT_EQ(path, RdmaPath{});
  for (const auto& [name, value] : {std::pair{"rdma_traffic_class", "106"},
                                    {"rdma_service_level", "15"},
                                    {"rdma_partition_key", "32769"},
                                    {"rdma_mtu", "4096"},
                                    {"rdma_ack_timeout", "31"},
                                    {"rdma_retry_count", "7"},
                                    {"rdma_rnr_retry_count", "0"},
                                    {"rdma_rnr_timer", "0"}}) {
    EXPECT_TRUE(setting(name).set(path, value)) << name;
    EXPECT_EQ(setting(name).text(path), value) << name;
  }
  EXPECT_EQ(path, (RdmaPath{.traffic_class = 106,
                            .service_level = 15,
                            .partition_key = 0x8001,
                            .mtu = 4096,
                            .ack_timeout = 31,
                            .retry_count = 7,
                            .rnr_retry_count = 0,
                            .rnr_timer = 0}));
  for (const char* name :
       {"rdma_service_level", "rdma_partition_key", "rdma_mtu", "rdma_ack_timeout", "rdma_rnr_timer"})
    EXPECT_TRUE(setting(name).set(path, "auto")) << name;
  EXPECT_EQ(path, (RdmaPath{.traffic_class = 106, .retry_count = 7, .rnr_retry_count = 0}));
}

TEST(RdmaPathSettings, AreDecimalOrHexadecimal) {
  RdmaPath path;
  EXPECT_TRUE(setting("rdma_partition_key").set(path, "0x8001"));
  EXPECT_EQ(path.partition_key, 0x8001);
  EXPECT_TRUE(setting("rdma_traffic_class").set(path, "0x6A"));
  EXPECT_EQ(path.traffic_class, 106);
}

TEST(RdmaPathSettings, RefuseImpossibleValues) {
  EXPECT_FALSE(takes("rdma_traffic_class", "256"));
  EXPECT_FALSE(takes("rdma_traffic_class", "auto"));
  EXPECT_FALSE(takes("rdma_service_level", "16"));
  EXPECT_FALSE(takes("rdma_partition_key", "0"));
  EXPECT_FALSE(takes("rdma_partition_key", "0x10000"));
  EXPECT_FALSE(takes("rdma_mtu", "1500"));
  EXPECT_FALSE(takes("rdma_mtu", "128"));
  EXPECT_FALSE(takes("rdma_mtu", "8192"));
  EXPECT_FALSE(takes("rdma_ack_timeout", "32"));
  EXPECT_FALSE(takes("rdma_retry_count", "8"));
  EXPECT_FALSE(takes("rdma_rnr_timer", "-1"));
  for (const RdmaPathSetting& one : rdma_path_settings()) {
    EXPECT_FALSE(takes(one.name, "")) << one.name;
    EXPECT_FALSE(takes(one.name, "0x")) << one.name;
    EXPECT_FALSE(takes(one.name, "1 ")) << one.name;
    EXPECT_FALSE(takes(one.name, "99999999999")) << one.name;
  }
}

}  // namespace
}  // namespace tributary::transport
