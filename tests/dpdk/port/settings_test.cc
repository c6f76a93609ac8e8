// Settings, arguments and texts of DPDK that can be tested without starting it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "transport/dpdk/af_packet.h"
#include "transport/dpdk/budget.h"
#include "transport/dpdk/eal.h"
#include "transport/dpdk/huge_pages.h"
#include "transport/dpdk/memif.h"

namespace tributary::transport::dpdk::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(EalArguments, LeaveNoFilesTouchNoPciAndKeepTheThreadWhereItWas) {
  EXPECT_THAT(eal_arguments({}, true, {0, 3}), ElementsAre("--lcores", "0@(0,3)", "--no-telemetry", "--log-level",
                                                           "warning", "--in-memory", "--no-pci"));
}

TEST(EalArguments, SayHowMuchMemoryWhereThereAreNoHugePages) {
  EXPECT_THAT(eal_arguments({.memory_bytes = (100U << 20U) + 1}, false, {0}),
              IsSupersetOf({"--no-huge", "-m", "101", "--no-shconf"}));
}

TEST(EalArguments, AllowOnlyTheNamedPciDevicesAndPassOnFurtherArguments) {
  const auto arguments =
      eal_arguments({.pci_devices = {"0000:3b:00.0"}, .file_prefix = "agg", .more = {"--iova-mode=va"}}, true, {1});
  EXPECT_THAT(arguments, IsSupersetOf({"--allow", "0000:3b:00.0", "--file-prefix", "agg", "--iova-mode=va"}));
  EXPECT_THAT(arguments, Not(Contains("--no-pci")));
  EXPECT_THAT(arguments, Not(Contains("--in-memory")));
}

TEST(EalArguments, AskForOneFileWhereAnotherProcessMapsTheMemory) {
  EXPECT_THAT(eal_arguments({}, true, {0}), Not(Contains("--single-file-segments")));
  EXPECT_THAT(eal_arguments({.one_file = true}, true, {0}), Contains("--single-file-segments"));
  EXPECT_THAT(eal_arguments({.one_file = true, .file_prefix = "agg"}, true, {0}),
              Not(Contains("--huge-unlink=always")));
  EXPECT_TRUE(lends_buffers("net_memif0,role=client,zero-copy=yes,socket=/run/a.sock"));
  EXPECT_FALSE(lends_buffers("net_memif0,role=client,zero-copy=no,socket=/run/a.sock"));
  EXPECT_FALSE(lends_buffers("net_af_packet0,iface=zero-copy=yes"));
}

class HugePageFiles : public ::testing::Test {
 protected:
  void pool(const std::string& name, int total, int free) {
    std::filesystem::create_directories(folder / name);
    std::ofstream(folder / name / "nr_hugepages") << total << "\n";
    std::ofstream(folder / name / "free_hugepages") << free << "\n";
  }
  ~HugePageFiles() override { std::filesystem::remove_all(folder); }
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "tributary-dpdk-huge-pages";
};

TEST_F(HugePageFiles, MissingPagesAreReportedWithTheCommandThatMakesThem) {
  pool("hugepages-2048kB", 10, 4);
  pool("hugepages-1048576kB", 0, 0);
  const auto pools = read_huge_pages(folder.string());
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0].page_bytes, 1U << 30U);
  EXPECT_EQ(free_bytes(pools), 8U << 20U);
  const std::string text = missing_pages_text(pools, 20U << 20U);
  EXPECT_THAT(text, HasSubstr("needs 20 MiB in huge pages, and 8 MiB are free"));
  EXPECT_THAT(text, HasSubstr("echo 16 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"));
}

TEST_F(HugePageFiles, AKernelWithoutTheFilesHasNoHugePages) {
  EXPECT_TRUE(read_huge_pages((folder / "nothing").string()).empty());
  EXPECT_THAT(missing_pages_text({}, 4U << 20U), HasSubstr("echo 2 >"));
}

TEST(Budget, CountsABufferForEachFrameAndEachUser) {
  EXPECT_EQ(data_room(1500), 2048U + 128U);
  EXPECT_GE(data_room(9000), 9000U + 18U + 128U);
  EXPECT_EQ(data_room(9000) % 64, 0U);
  EXPECT_GT(mbufs_needed({1024, 1024}, 4), mbufs_needed({1024, 1024}, 1));
  EXPECT_GT(memory_needed({1024, 1024}, 2, 1500), 2 * std::size_t{mbufs_needed({1024, 1024}, 2)} * data_room(1500));
}

TEST(AfPacket, TheSizeOfItsBuffersLimitsTheMtu) {
  EXPECT_EQ(AfPacket("net_af_packet0,iface=eth0").mtu_max(), 1968U);
  EXPECT_EQ(AfPacket("net_af_packet0,iface=eth0,framesz=12288,blocksz=12288").mtu_max(), 12288U - 80);
  EXPECT_EQ(AfPacket("net_af_packet0,iface=eth0,framesz=16").mtu_max(), 0U);
  EXPECT_EQ(AfPacket("0000:3b:00.0").mtu_max(), UINT32_MAX);
  EXPECT_EQ(AfPacket::advice(9000), "framesz=12288,blocksz=12288");
  EXPECT_GE(AfPacket("net_af_packet0" + ("," + AfPacket::advice(9000))).mtu_max(), 9000U);
  // The driver asks for room of framesz minus 32 bytes.
  EXPECT_GE(data_room(AfPacket("net_af_packet0,framesz=12288").mtu_of_buffers(9000)), 12288U - 32 + 128);
  EXPECT_EQ(AfPacket("net_memif0").mtu_of_buffers(9000), 9000U);
}

}  // namespace
}  // namespace tributary::transport::dpdk::test
