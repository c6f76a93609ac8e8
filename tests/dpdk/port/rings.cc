#include "tests/dpdk/port/rings.h"

#include <gtest/gtest.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>

#include <vector>

namespace tributary::transport::dpdk::test {

std::shared_ptr<Eal> eal(bool one_file) {
  static const std::shared_ptr<Eal> started = [one_file] {
    auto result = Eal::start({.memory_bytes = 256U << 20U, .one_file = one_file});
    EXPECT_TRUE(result) << result.error().message;
    return result.value();
  }();
  return started;
}

std::array<std::string, 2> wired_devices(std::uint16_t queues) {
  const auto started = eal();
  static int pairs = 0;
  const std::string name = "wire" + std::to_string(pairs++);
  std::array<std::vector<rte_ring*>, 2> rings;
  for (std::size_t way = 0; way < 2; ++way) {
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
      const std::string ring = name + "_" + std::to_string(way) + "_" + std::to_string(queue);
      rings[way].push_back(::rte_ring_create(ring.c_str(), 256, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ));
    }
  }
  std::array<std::string, 2> names;
  for (std::size_t end = 0; end < 2; ++end) {
    const std::string port = name + (end == 0 ? "a" : "b");
    const int id = ::rte_eth_from_rings(port.c_str(), rings[1 - end].data(), queues, rings[end].data(), queues, 0);
    EXPECT_GE(id, 0);
    std::array<char, RTE_ETH_NAME_MAX_LEN> full{};
    ::rte_eth_dev_get_name_by_port(static_cast<std::uint16_t>(id), full.data());
    names[end] = full.data();
  }
  return names;
}

}  // namespace tributary::transport::dpdk::test
