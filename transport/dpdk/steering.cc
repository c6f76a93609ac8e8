#include "transport/dpdk/steering.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tributary::transport::dpdk {
namespace {

rte_flow* make_rule(std::uint16_t device, rte_flow_item_type ip, std::uint16_t udp_port, std::uint16_t queue,
                    std::string& refusal) {
  const rte_flow_attr attributes{.ingress = 1};
  rte_flow_item_udp port{};
  port.hdr.dst_port = __builtin_bswap16(udp_port);
  rte_flow_item_udp mask{};
  mask.hdr.dst_port = 0xFFFF;
  const std::array<rte_flow_item, 4> pattern{
      rte_flow_item{.type = RTE_FLOW_ITEM_TYPE_ETH}, rte_flow_item{.type = ip},
      rte_flow_item{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &port, .last = nullptr, .mask = &mask},
      rte_flow_item{.type = RTE_FLOW_ITEM_TYPE_END}};
  const rte_flow_action_queue to{.index = queue};
  const std::array<rte_flow_action, 2> actions{rte_flow_action{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to},
                                               rte_flow_action{.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr}};
  rte_flow_error error{};
  int result = ::rte_flow_validate(device, &attributes, pattern.data(), actions.data(), &error);
  rte_flow* rule = nullptr;
  if (result == 0) {
    rule = ::rte_flow_create(device, &attributes, pattern.data(), actions.data(), &error);
    if (rule == nullptr) result = -rte_errno;
  }
  if (rule == nullptr) refusal = error.message != nullptr ? error.message : std::strerror(-result);
  return rule;
}

}  // namespace

void spread_over_queues(const rte_eth_dev_info& info, rte_eth_conf& conf) noexcept {
  const std::uint64_t by = info.flow_type_rss_offloads & (RTE_ETH_RSS_UDP | RTE_ETH_RSS_IP);
  if (by == 0) return;
  conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  conf.rx_adv_conf.rss_conf.rss_hf = by;
}

Steering::Steering(std::uint16_t device, std::uint16_t udp_port, std::uint16_t queue)
    : device_(device),
      rules_{make_rule(device, RTE_FLOW_ITEM_TYPE_IPV4, udp_port, queue, refusal_),
             make_rule(device, RTE_FLOW_ITEM_TYPE_IPV6, udp_port, queue, refusal_)} {}

std::size_t Steering::in_place() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(rules_, [](const rte_flow* rule) { return rule != nullptr; }));
}

Steering::~Steering() {
  rte_flow_error error{};
  for (rte_flow* const rule : rules_) {
    if (rule != nullptr) ::rte_flow_destroy(device_, rule, &error);
  }
}

}  // namespace tributary::transport::dpdk
