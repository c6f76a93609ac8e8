// The transport makes all queue pairs, the connection manager's pair and the further pairs, with the settings of the
// path.
#include <gmock/gmock.h>
#include <infiniband/verbs.h>

#include <vector>

#include "tests/rdma/transport/verbs_pair.h"

namespace {

struct Step {
  ibv_qp_attr attributes;
  int mask;
};
std::vector<Step>& steps() {
  static std::vector<Step> all;
  return all;
}

}  // namespace

extern "C" {  // the linker replaces the library's function with this one (--wrap)
int __real_ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask);
int __wrap_ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask);
int __wrap_ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
  steps().push_back({*attributes, mask});
  return __real_ibv_modify_qp(pair, attributes, mask);
}
}

namespace tributary::transport::test {
namespace {

class Path : public VerbsPair {
 protected:
  void SetUp() override {
    VerbsPair::SetUp();
    steps().clear();
  }
  void connect(const RdmaPath& servers, const RdmaPath& clients) {
    VerbsPair::connect({.queue_pairs = 2, .path = servers}, {.queue_pairs = 2, .path = clients});
  }
  /// The attributes with which all queue pairs went to this state.
  [[nodiscard]] static std::vector<Step> steps_to(ibv_qp_state state) {
    std::vector<Step> found;
    for (const Step& step : steps()) {
      if ((step.mask & IBV_QP_STATE) != 0 && step.attributes.qp_state == state) found.push_back(step);
    }
    return found;
  }
  /// Payloads of every kind still arrive.
  void exchange() {
    std::vector<std::byte> payload(1U << 20, std::byte{7});
    ASSERT_TRUE(client_peer.channel->send(header_of(1), payload, 1));
    ASSERT_TRUE(client_peer.channel->send(header_of(2), std::span(payload).first(64), 2));
    ASSERT_TRUE(run_until([&] { return server_peer().frames.size() == 2 || server_peer().closed; }));
    ASSERT_FALSE(server_peer().closed) << server_peer().closed->message;
    EXPECT_EQ(server_peer().frames.front().payload, payload);
  }
};

TEST_F(Path, EveryQueuePairFollowsTheSettings) {
  const RdmaPath path{.traffic_class = 106,
                      .service_level = 3,
                      .partition_key = 0x7FFF,  // as a limited member
                      .mtu = 512,
                      .ack_timeout = 13,
                      .retry_count = 5,
                      .rnr_retry_count = 4,
                      .rnr_timer = 9};
  ASSERT_NO_FATAL_FAILURE(connect(path, path));
  ASSERT_FALSE(client_peer.closed) << client_peer.closed->message;
  const auto receiving = steps_to(IBV_QPS_RTR), sending = steps_to(IBV_QPS_RTS);
  ASSERT_EQ(receiving.size(), 4U);  // two queue pairs on each side
  ASSERT_EQ(sending.size(), 4U);
  for (const Step& step : receiving) {
    EXPECT_EQ(step.attributes.path_mtu, IBV_MTU_512);
    EXPECT_EQ(step.attributes.ah_attr.sl, 3);
    EXPECT_EQ(step.attributes.ah_attr.grh.traffic_class, 106);
    EXPECT_EQ(step.attributes.min_rnr_timer, 9);
  }
  for (const Step& step : sending) {
    EXPECT_EQ(step.attributes.timeout, 13);
    EXPECT_EQ(step.attributes.retry_cnt, 5);
    EXPECT_EQ(step.attributes.rnr_retry, 4);
  }
  ASSERT_NO_FATAL_FAILURE(exchange());
}

TEST_F(Path, WithoutSettingsItComesFromTheConnectionManager) {
  ASSERT_NO_FATAL_FAILURE(connect({}, {.mtu = 4096}));  // more than an Ethernet with an MTU of 1500 carries
  ASSERT_FALSE(client_peer.closed) << client_peer.closed->message;
  const auto receiving = steps_to(IBV_QPS_RTR);
  ASSERT_EQ(receiving.size(), 4U);
  for (const Step& step : receiving) {
    EXPECT_EQ(step.attributes.path_mtu, receiving.front().attributes.path_mtu);
    EXPECT_EQ(step.attributes.ah_attr.sl, 0);
    EXPECT_EQ(step.attributes.ah_attr.grh.traffic_class, 0);
  }
  ASSERT_NO_FATAL_FAILURE(exchange());
}

TEST_F(Path, TheErrorNamesAPartitionThatThePortIsNotIn) {
  ASSERT_NO_FATAL_FAILURE(connect({}, {.partition_key = 0x8012}));
  ASSERT_TRUE(client_peer.closed);
  EXPECT_THAT(client_peer.closed->message,
              testing::AllOf(testing::HasSubstr("0x8012"), testing::HasSubstr("rdma_partition_key"),
                             testing::HasSubstr("0xffff")));
}

TEST_F(Path, AListenerWithoutItsPartitionRefusesConnections) {
  ASSERT_NO_FATAL_FAILURE(connect({.partition_key = 0x8012}, {}));
  ASSERT_TRUE(client_peer.closed);
  ASSERT_EQ(server->statistics().queue_pairs, 0U);
}

}  // namespace
}  // namespace tributary::transport::test
