// The doctor's checks, on hosts that the tests make.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/kernel_text.h"
#include "client/cli/doctor/pci.h"
#include "client/cli/doctor/service.h"

namespace tributary::cli::doctor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A tree of files, as /sys and /proc of some host.
class Host : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "tributary-doctor-" + std::to_string(getpid());
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << "\n";
  }
  void link(const std::string& path, const std::string& to) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    fs::create_directories(root_ + to);
    fs::create_symlink(root_ + to, root_ + path);
  }
  void interface(const std::string& name, const std::string& state, int mtu, int speed) {
    file("/sys/class/net/" + name + "/operstate", state);
    file("/sys/class/net/" + name + "/mtu", std::to_string(mtu));
    file("/sys/class/net/" + name + "/speed", std::to_string(speed));
    file("/sys/class/net/" + name + "/device/vendor", "0x15b3");
  }
  void rdma(const std::string& device, const std::string& state, const std::string& layer) {
    const std::string port = "/sys/class/infiniband/" + device + "/ports/1";
    file(port + "/state", state);
    file(port + "/rate", "100 Gb/sec (4X EDR)");
    file(port + "/link_layer", layer);
  }
  void gid(const std::string& device, int index, const std::string& gid, const std::string& kind) {
    const std::string port = "/sys/class/infiniband/" + device + "/ports/1";
    file(port + "/gids/" + std::to_string(index), gid);
    file(port + "/gid_attrs/types/" + std::to_string(index), kind);
  }
  void rdma_modules() {
    file("/sys/class/infiniband_verbs/abi_version", "6");
    file("/sys/class/misc/rdma_cm/dev", "10:58");
  }
  [[nodiscard]] SystemTree system() const { return SystemTree(root_); }

  static const Finding& found(const Findings& findings, const std::string& what) {
    static const Finding none;
    for (const Finding& f : findings) {
      if (f.what == what) return f;
    }
    ADD_FAILURE() << "nothing is said of " << what << ":\n" << to_text(findings);
    return none;
  }

 private:
  std::string root_;
};

constexpr const char* kGid = "fe80:0000:0000:0000:0000:0000:0000:0001";
constexpr const char* kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";

TEST_F(Host, NetworkOfPlainInterfaces) {
  interface("eth0", "up", 9000, 100'000);
  interface("eth1", "up", 1500, 100'000);
  interface("eth2", "down", 1500, -1);
  file("/sys/class/net/lo/mtu", "65536");
  const Findings findings = check_network(system());
  EXPECT_EQ(findings.size(), 3U);
  EXPECT_EQ(found(findings, "eth0").level, Level::good);
  EXPECT_EQ(found(findings, "eth0").found, "up, MTU 9000, 100000 Mbit/s");
  EXPECT_EQ(found(findings, "eth1").level, Level::warning);
  EXPECT_THAT(found(findings, "eth1").mend, HasSubstr("mtu 9000"));
  EXPECT_EQ(found(findings, "eth2").level, Level::warning);
}

TEST_F(Host, NetworkOfAContainer) {
  EXPECT_EQ(found(check_network(system()), "interfaces").level, Level::unknown);
  EXPECT_TRUE(all_good(check_network(system())));
}

TEST_F(Host, AMissingRdmaDeviceIsAFaultOnlyIfRdmaIsWanted) {
  EXPECT_TRUE(all_good(check_rdma(system(), "")));
  EXPECT_TRUE(all_good(check_rdma(system(), "tcp")));
  const Findings wanted = check_rdma(system(), "verbs,tcp");
  EXPECT_EQ(found(wanted, "devices").level, Level::bad);
  EXPECT_THAT(found(wanted, "devices").mend, HasSubstr("rdma link add"));
}

TEST_F(Host, WithGoodRoceDevice) {
  rdma("mlx5_0", "4: ACTIVE", "Ethernet");
  gid("mlx5_0", 0, kGid, "IB/RoCE v1");
  gid("mlx5_0", 1, kGid, "RoCE v2");
  gid("mlx5_0", 2, kNoGid, "RoCE v2");
  rdma_modules();
  const Findings findings = check_rdma(system(), "verbs");
  EXPECT_TRUE(all_good(findings)) << to_text(findings);
  EXPECT_EQ(found(findings, "mlx5_0 port 1").found,
            "ACTIVE, RoCE or iWARP, 100 Gb/sec (4X EDR), GIDs: 1 IB/RoCE v1, 1 RoCE v2");
}

TEST_F(Host, WithoutAnAddressForRoce) {
  rdma("mlx5_0", "4: ACTIVE", "Ethernet");
  gid("mlx5_0", 0, kGid, "IB/RoCE v1");
  rdma_modules();
  EXPECT_EQ(found(check_rdma(system(), ""), "mlx5_0 port 1").level, Level::bad);
}

TEST_F(Host, WithInfiniBandThatIsDown) {
  rdma("mlx5_0", "1: DOWN", "InfiniBand");
  rdma("mlx5_1", "2: INIT", "InfiniBand");
  rdma_modules();
  const Findings findings = check_rdma(system(), "");
  EXPECT_EQ(found(findings, "ports").level, Level::bad);
  EXPECT_THAT(found(findings, "mlx5_1 port 1").mend, HasSubstr("subnet manager"));
  rdma("mlx5_1", "4: ACTIVE", "InfiniBand");
  EXPECT_TRUE(all_good(check_rdma(system(), "")));  // one good port is enough
}

TEST_F(Host, WithoutTheKernelModulesForPrograms) {
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  const Findings findings = check_rdma(system(), "");
  EXPECT_EQ(found(findings, "verbs for programs").mend, "modprobe ib_uverbs");
  EXPECT_EQ(found(findings, "connection manager").mend, "modprobe rdma_ucm");
  EXPECT_FALSE(all_good(findings));
}

TEST_F(Host, LockedMemoryCountsWhereThereIsRdma) {
  const auto limit = [&](const std::string& bytes) {
    file("/proc/self/limits",
         "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  " + bytes + "  " + bytes + "  bytes");
    return found(check_memory(system()), "locked memory");
  };
  EXPECT_EQ(found(check_memory(system()), "locked memory").level, Level::unknown);
  EXPECT_EQ(limit("65536").level, Level::good);
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  EXPECT_EQ(limit("65536").level, Level::bad);
  EXPECT_EQ(limit("65536").found, "at most 64 KiB");
  EXPECT_THAT(limit("65536").mend, HasSubstr("LimitMEMLOCK"));
  EXPECT_EQ(limit("8589934592").level, Level::good);
  EXPECT_EQ(limit("unlimited").found, "without limit");
}

TEST_F(Host, HugePages) {
  file("/proc/meminfo",
       "MemTotal: 100 kB\nHugePages_Total:     512\nHugePages_Free:      500\nHugepagesize:       2048 kB");
  file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_EQ(found(check_memory(system()), "huge pages").found,
            "500 of 512 of 2048 KiB free; transparent huge pages off");
  EXPECT_EQ(found(check_memory(system()), "huge pages").level, Level::good);
  file("/proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB");
  EXPECT_EQ(found(check_memory(system()), "huge pages").level, Level::warning);
  file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
  EXPECT_EQ(found(check_memory(system()), "huge pages").level, Level::good);
}

client::gpu::GpuFacts gpu_at(const std::string& bus_id) {
  return {.device = 0,
          .name = "H200",
          .bus_id = bus_id,
          .gpudirect = true,
          .dma_buf = true,
          .can_flush = true,
          .write_ordering = 100};
}

TEST_F(Host, WithoutGpu) {
  const Findings findings = check_gpus(system(), {.missing = "this host has no NVIDIA driver"});
  EXPECT_EQ(found(findings, "CUDA driver").level, Level::good);
}

TEST_F(Host, WithGpuButWithoutItsDriver) {
  file("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de");
  file("/sys/bus/pci/devices/0000:3b:00.0/class", "0x030200");
  const Findings findings = check_gpus(system(), {.missing = "this host has no NVIDIA driver"});
  EXPECT_EQ(found(findings, "CUDA driver").level, Level::bad);
  EXPECT_THAT(found(findings, "CUDA driver").mend, HasSubstr("nvidia-smi"));
}

TEST_F(Host, GpuThatNoNetworkDeviceReaches) {
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  client::gpu::GpuFacts gpu = gpu_at("0000:3d:00.0");
  gpu.dma_buf = false;
  const GpuReport report{.driver_version = 13000, .gpus = {gpu}};
  EXPECT_THAT(found(check_gpus(system(), report), "GPU 0 0000:3d:00.0").mend, HasSubstr("modprobe nvidia_peermem"));
  file("/sys/module/nvidia_peermem/refcnt", "0");
  EXPECT_EQ(found(check_gpus(system(), report), "GPU 0 0000:3d:00.0").level, Level::good);
}

TEST_F(Host, ReadsTheLastNumberOfAMask) {
  file("/sys/devices/pci0000:00/0000:01:00.0/resource", "0x0 0x0 0x0\n0x6000000000 0x600fffffff 0x14220c");
  file("/sys/devices/pci0000:00/0000:01:00.0/resource1_resize", "0000000000007f00");
  const auto bar = largest_bar(system(), "/sys/devices/pci0000:00/0000:01:00.0");
  ASSERT_TRUE(bar);
  EXPECT_EQ(bar->bytes, 256U << 20);
  EXPECT_EQ(bar->bytes_max, std::uint64_t{16} << 30);
}

TEST_F(Host, DistancesAreThoseOfNvidiaSmi) {
  const std::string root = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  const std::string gpu = root + "/0000:3c:00.0/0000:3d:00.0";
  const auto to = [&](const std::string& other, const char* node) {
    file(gpu + "/numa_node", "0");
    file(other + "/numa_node", node);
    return std::string(to_string(pci_distance(system(), gpu, other)));
  };
  EXPECT_EQ(to(root + "/0000:3c:08.0/0000:3e:00.0", "0"), "PIX");
  EXPECT_EQ(to(root + "/0000:3c:08.0/0000:3e:00.0/0000:3f:00.0/0000:40:00.0", "0"), "PXB");
  EXPECT_EQ(to("/sys/devices/pci0000:3a/0000:3a:02.0/0000:4b:00.0", "0"), "PHB");
  EXPECT_EQ(to("/sys/devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0", "0"), "NODE");
  EXPECT_EQ(to("/sys/devices/pci0000:ae/0000:ae:00.0/0000:af:00.0", "1"), "SYS");
  EXPECT_STREQ(to_string(pci_distance(system(), gpu, "")), "distance unknown");
}

TEST_F(Host, BrokenConfigurationsOfBridgesEnd) {
  std::string circle(4096, '\0');
  circle[0x100] = 1;
  circle[0x103] = 0x10;  // the entry names itself as the next capability
  file("/sys/bus/pci/devices/0000:00:01.0/config", circle);
  EXPECT_EQ(acs_of(system(), "0000:00:01.0"), Acs::off);
  file("/sys/bus/pci/devices/0000:00:01.0/config", circle.substr(0, 63));
  EXPECT_EQ(acs_of(system(), "0000:00:01.0"), Acs::unreadable);
  EXPECT_EQ(acs_of(system(), "0000:00:02.0"), Acs::unreadable);
}

TEST(KernelText, ListsAndVariables) {
  EXPECT_THAT(numbers_in_list("0-2,7"), testing::ElementsAre(0, 1, 2, 7));
  EXPECT_EQ(numbers_in_list("0-4294967295").size(), 65'536U);
  EXPECT_EQ(variable_in(std::string("A=1\0AB=2\0", 9), "AB"), "2");
  EXPECT_EQ(variable_in("AB=2", "A"), std::nullopt);
  EXPECT_EQ(line_after("x\nMemTotal:   5 kB\n", "MemTotal:"), "5 kB");
}

TEST(Service, WithoutAManagerIsNoFault) {
  EXPECT_TRUE(all_good(check_service({})));
}

TEST(Service, AManagerThatDoesNotAnswerIsAFault) {
  EXPECT_FALSE(all_good(check_service({.url = "http://nowhere:7470", .trouble = "nowhere: no answer"})));
}

TEST(Service, NeedsOneAggregatorThatIsReached) {
  ServiceReport report{.url = "http://m:7470", .version = "0.1.0"};
  EXPECT_FALSE(all_good(check_service(report)));
  report.aggregators.push_back({.name = "a", .state = "active", .data = "10.0.0.1:7471", .trouble = {}});
  EXPECT_TRUE(all_good(check_service(report)));
  report.aggregators.push_back({.name = "b", .state = "expired", .data = "10.0.0.2:7471", .trouble = {}});
  EXPECT_TRUE(all_good(check_service(report)));
  report.aggregators.push_back({.name = "c", .state = "active", .data = "10.0.0.3:7471", .trouble = "refused"});
  EXPECT_FALSE(all_good(check_service(report)));
}

TEST(Service, ClocksThatDifferByAMinuteAreBad) {
  ServiceReport report{.url = "http://m:7470", .version = "0.1.0"};
  const auto level = [&](double seconds, double within) {
    report.clock = ClockSkew{.seconds = seconds, .within = within};
    return check_service(report)[1].level;
  };
  EXPECT_EQ(check_service(report)[1].level, Level::unknown);
  EXPECT_EQ(level(0.5, 0.01), Level::good);
  EXPECT_EQ(level(-3, 0.01), Level::warning);
  EXPECT_EQ(level(3, 2.5), Level::good) << "the measurement itself is this coarse";
  EXPECT_EQ(level(-61, 0.01), Level::bad);
}

TEST(Service, JumboFramesThatDoNotPassAreAWarning) {
  ServiceReport report{.url = "http://m:7470", .version = "0.1.0"};
  report.aggregators.push_back({.name = "a", .state = "active", .data = "10.0.0.1:7471"});
  const auto level = [&](std::uint32_t here, std::uint32_t there) {
    report.aggregators[0].mtu_here = here;
    report.aggregators[0].mtu_there = there;
    return check_service(report).back().level;
  };
  EXPECT_EQ(level(9000, 9000), Level::good);
  EXPECT_EQ(level(9000, 1500), Level::warning);
  EXPECT_EQ(level(1500, 1500), Level::good);
}

TEST(Findings, AreTheSameForPeopleAndPrograms) {
  const Findings findings{{.part = "rdma", .what = "x", .level = Level::bad, .found = "y", .why = "w", .mend = "z"},
                          {.part = "gpu", .what = "u", .level = Level::unknown, .found = "v"}};
  EXPECT_THAT(to_text(findings), HasSubstr("why:  w"));
  EXPECT_THAT(to_text(findings), HasSubstr("mend: z"));
  EXPECT_THAT(to_text(findings), HasSubstr("0 good, 0 warning, 1 bad, 1 unknown."));
  const auto json = nlohmann::json::parse(to_document(findings));
  EXPECT_EQ(json.at("good"), false);
  EXPECT_EQ(json.at("findings").size(), 2U);
  const nlohmann::json first = {{"part", "rdma"}, {"what", "x"}, {"level", "bad"},
                                {"found", "y"},   {"why", "w"},  {"mend", "z"}};
  EXPECT_EQ(json.at("findings")[0], first);
}

}  // namespace
}  // namespace tributary::cli::doctor
