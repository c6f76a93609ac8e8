// Fabrics as large as a whole cluster.
#include <chrono>
#include <cstdio>

#include "tests/unit/topology/imports.h"

namespace tributary::manager {
namespace {

using ::testing::SizeIs;

constexpr int kLeaves = 64, kSpines = 8, kHostsPerLeaf = 32;

std::string guid(int number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016x", number);
  return text;
}

/// ibnetdiscover's text of 2,048 hosts below 64 leaves and 8 spines.
std::string large_fabric() {
  std::string text;
  const auto port = [&](int number, char kind, int far, int far_port, const std::string& name, const char* rate) {
    text += "[" + std::to_string(number) + "]\t\"" + kind + "-" + guid(far) + "\"[" + std::to_string(far_port) +
            "]\t\t# \"" + name + "\" lid 1 " + rate + "\n";
  };
  for (int leaf = 0; leaf < kLeaves; ++leaf) {
    text += "\nvendid=0x2c9\nSwitch\t40 \"S-" + guid(0x1000 + leaf) + "\"\t\t# \"leaf-" + std::to_string(leaf) +
            "\" base port 0\n";
    for (int s = 0; s < kSpines; ++s) port(s + 1, 'S', 0x100 + s, leaf + 1, "spine-" + std::to_string(s), "4xNDR");
    for (int k = 0; k < kHostsPerLeaf; ++k)
      port(kSpines + 1 + k, 'H', 0x10000 + leaf * kHostsPerLeaf + k, 1,
           "node-" + std::to_string(leaf * kHostsPerLeaf + k), "4xHDR");
  }
  for (int s = 0; s < kSpines; ++s) {
    text += "\nvendid=0x2c9\nSwitch\t64 \"S-" + guid(0x100 + s) + "\"\t\t# \"spine-" + std::to_string(s) +
            "\" base port 0\n";
    for (int leaf = 0; leaf < kLeaves; ++leaf)
      port(leaf + 1, 'S', 0x1000 + leaf, s + 1, "leaf-" + std::to_string(leaf), "4xNDR");
  }
  for (int i = 0; i < kLeaves * kHostsPerLeaf; ++i) {
    const int leaf = i / kHostsPerLeaf;
    text += "\nCa\t1 \"H-" + guid(0x10000 + i) + "\"\t\t# \"node-" + std::to_string(i) + " mlx5_0\"\n";
    port(1, 'S', 0x1000 + leaf, kSpines + 1 + i % kHostsPerLeaf, "leaf-" + std::to_string(leaf), "4xHDR");
  }
  return text;
}

TEST(Size, TwoThousandHostsAreImportedInUnderASecond) {
  const std::string text = large_fabric();
  const auto start = std::chrono::steady_clock::now();
  const auto topology = imported(text).topology;  // the test writes it as a file, and reads the file
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%zu hosts, %zu links, %zu bytes of ibnetdiscover: imported, written and read again in %.3f s\n",
              topology.hosts.size(), topology.links.size(), text.size(), took.count());
  EXPECT_THAT(topology.hosts, SizeIs(2048));
  EXPECT_THAT(topology.links, SizeIs(2048 + kLeaves * kSpines));
  EXPECT_EQ(rate_between(topology, "leaf-9", "spine-3"), 400 * kGbit);
  EXPECT_LT(topology_yaml(topology).size(), 8000U) << "ranges keep the file short";
#ifdef __OPTIMIZE__
  EXPECT_LT(took.count(), 1.0);
#endif
}

TEST(Size, ALongListOfNodesIsBounded) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += "SwitchName=s" + std::to_string(i) + " Nodes=n" + std::to_string(i) + "x[0-999999]\n";
  EXPECT_THAT(complaint(text), ::testing::HasSubstr("too many names"));
}

}  // namespace
}  // namespace tributary::manager
