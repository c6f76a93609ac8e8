// The doctor's checks, on hosts that the tests make.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "client/cli/doctor/checks.h"

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
  EXPECT_EQ(findings.size(), 4U);
  EXPECT_EQ(found(findings, "eth0").level, Level::good);
  EXPECT_EQ(found(findings, "eth0").says, "up, MTU 9000, 100000 Mbit/s");
  EXPECT_EQ(found(findings, "eth1").level, Level::note);
  EXPECT_THAT(found(findings, "eth1").advice, HasSubstr("mtu 9000"));
  EXPECT_EQ(found(findings, "eth2").level, Level::note);
  EXPECT_EQ(found(findings, "tcp").level, Level::good);
}

TEST_F(Host, NetworkOfAContainer) {
  EXPECT_EQ(found(check_network(system()), "interfaces").level, Level::note);
  EXPECT_TRUE(all_good(check_network(system())));
}

TEST_F(Host, WithoutRdmaIsAThingToMendOnlyWhereItIsWanted) {
  EXPECT_TRUE(all_good(check_rdma(system(), "")));
  EXPECT_TRUE(all_good(check_rdma(system(), "tcp")));
  const Findings wanted = check_rdma(system(), "verbs,tcp");
  EXPECT_EQ(found(wanted, "devices").level, Level::mend);
  EXPECT_THAT(found(wanted, "devices").advice, HasSubstr("rdma link add"));
}

TEST_F(Host, WithGoodRoceDevice) {
  rdma("mlx5_0", "4: ACTIVE", "Ethernet");
  gid("mlx5_0", 0, kGid, "IB/RoCE v1");
  gid("mlx5_0", 1, kGid, "RoCE v2");
  gid("mlx5_0", 2, kNoGid, "RoCE v2");
  rdma_modules();
  const Findings findings = check_rdma(system(), "verbs");
  EXPECT_TRUE(all_good(findings)) << to_text(findings);
  EXPECT_EQ(found(findings, "mlx5_0 port 1").says,
            "ACTIVE, RoCE or iWARP, 100 Gb/sec (4X EDR), GIDs: 1 IB/RoCE v1, 1 RoCE v2");
}

TEST_F(Host, WithoutAnAddressForRoce) {
  rdma("mlx5_0", "4: ACTIVE", "Ethernet");
  gid("mlx5_0", 0, kGid, "IB/RoCE v1");
  rdma_modules();
  EXPECT_EQ(found(check_rdma(system(), ""), "mlx5_0 port 1").level, Level::mend);
}

TEST_F(Host, WithInfiniBandThatIsDown) {
  rdma("mlx5_0", "1: DOWN", "InfiniBand");
  rdma("mlx5_1", "2: INIT", "InfiniBand");
  rdma_modules();
  const Findings findings = check_rdma(system(), "");
  EXPECT_EQ(found(findings, "ports").level, Level::mend);
  EXPECT_THAT(found(findings, "mlx5_1 port 1").advice, HasSubstr("subnet manager"));
  rdma("mlx5_1", "4: ACTIVE", "InfiniBand");
  EXPECT_TRUE(all_good(check_rdma(system(), "")));  // one port is enough
}

TEST_F(Host, WithoutTheKernelModulesForPrograms) {
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  const Findings findings = check_rdma(system(), "");
  EXPECT_EQ(found(findings, "verbs for programs").advice, "modprobe ib_uverbs");
  EXPECT_EQ(found(findings, "connection manager").advice, "modprobe rdma_ucm");
  EXPECT_FALSE(all_good(findings));
}

TEST_F(Host, LockedMemoryCountsWhereThereIsRdma) {
  constexpr std::uint64_t kSmall = 64 << 10, kLarge = std::uint64_t{8} << 30;
  EXPECT_EQ(found(check_memory(system(), kSmall), "locked memory").level, Level::note);
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  EXPECT_EQ(found(check_memory(system(), kSmall), "locked memory").level, Level::mend);
  EXPECT_THAT(found(check_memory(system(), kSmall), "locked memory").advice, HasSubstr("LimitMEMLOCK"));
  EXPECT_EQ(found(check_memory(system(), kLarge), "locked memory").level, Level::good);
  EXPECT_EQ(found(check_memory(system(), std::nullopt), "locked memory").says, "without limit");
}

TEST_F(Host, HugePages) {
  file("/proc/meminfo",
       "MemTotal: 100 kB\nHugePages_Total:     512\nHugePages_Free:      500\nHugepagesize:       2048 kB");
  file("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
  EXPECT_EQ(found(check_memory(system(), std::nullopt), "huge pages").says,
            "500 of 512 of 2048 KiB free; transparent huge pages off");
  EXPECT_EQ(found(check_memory(system(), std::nullopt), "huge pages").level, Level::good);
  file("/proc/meminfo", "HugePages_Total: 0\nHugePages_Free: 0\nHugepagesize: 2048 kB");
  EXPECT_EQ(found(check_memory(system(), std::nullopt), "huge pages").level, Level::note);
  file("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never");
  EXPECT_EQ(found(check_memory(system(), std::nullopt), "huge pages").level, Level::good);
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
  EXPECT_EQ(found(findings, "CUDA driver").level, Level::note);
}

TEST_F(Host, WithGpuButWithoutItsDriver) {
  file("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de");
  file("/sys/bus/pci/devices/0000:3b:00.0/class", "0x030200");
  const Findings findings = check_gpus(system(), {.missing = "this host has no NVIDIA driver"});
  EXPECT_EQ(found(findings, "CUDA driver").level, Level::mend);
  EXPECT_THAT(found(findings, "CUDA driver").advice, HasSubstr("nvidia-smi"));
}

TEST_F(Host, GpuBesideItsNetworkDevice) {
  constexpr const char* kSwitch = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";
  link("/sys/bus/pci/devices/0000:3d:00.0", std::string(kSwitch) + "/0000:3c:00.0/0000:3d:00.0");
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  link("/sys/class/infiniband/mlx5_0/device", std::string(kSwitch) + "/0000:3c:10.0/0000:3e:00.0");
  rdma("mlx5_1", "4: ACTIVE", "InfiniBand");
  link("/sys/class/infiniband/mlx5_1/device", "/sys/devices/pci0000:ae/0000:ae:00.0/0000:af:00.0");
  const Findings findings = check_gpus(system(), {.driver_version = 13000, .gpus = {gpu_at("0000:3D:00.0")}});
  EXPECT_EQ(found(findings, "CUDA driver").says, "for CUDA 13.0, 1 GPU(s)");
  EXPECT_THAT(found(findings, "GPU 0 to RDMA").says, HasSubstr("mlx5_0: below one switch"));
  EXPECT_EQ(found(findings, "GPU 0 to RDMA").level, Level::good);
  EXPECT_TRUE(all_good(findings));
}

TEST_F(Host, GpuThatNoNetworkDeviceReaches) {
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  client::gpu::GpuFacts gpu = gpu_at("0000:3d:00.0");
  gpu.dma_buf = false;
  const GpuReport report{.driver_version = 13000, .gpus = {gpu}};
  EXPECT_THAT(found(check_gpus(system(), report), "GPU 0 0000:3d:00.0").advice, HasSubstr("modprobe nvidia_peermem"));
  file("/sys/module/nvidia_peermem/refcnt", "0");
  EXPECT_EQ(found(check_gpus(system(), report), "GPU 0 0000:3d:00.0").level, Level::good);
}

TEST_F(Host, IommuThatTranslates) {
  rdma("mlx5_0", "4: ACTIVE", "InfiniBand");
  const GpuReport report{.driver_version = 13000, .gpus = {gpu_at("0000:3d:00.0")}};
  file("/sys/class/iommu/dmar0/devices", "");
  EXPECT_EQ(found(check_gpus(system(), report), "IOMMU").level, Level::note);
  file("/proc/cmdline", "quiet intel_iommu=on iommu=pt");
  EXPECT_EQ(found(check_gpus(system(), report), "IOMMU").level, Level::good);
}

TEST(PciDistance, IsThatOfTheFirstCommonAncestor) {
  constexpr const char* kGpu = "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0/0000:3d:00.0";
  EXPECT_EQ(distance(kGpu, 0, "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:08.0/0000:3e:00.0", 0),
            Distance::same_switch);
  EXPECT_EQ(distance(kGpu, 0, "/sys/devices/pci0000:3a/0000:3a:02.0/0000:4b:00.0", 0), Distance::same_root);
  EXPECT_EQ(distance(kGpu, 0, "/sys/devices/pci0000:5d/0000:5d:00.0/0000:5e:00.0", 0), Distance::same_node);
  EXPECT_EQ(distance(kGpu, 0, "/sys/devices/pci0000:ae/0000:ae:00.0/0000:af:00.0", 1), Distance::other_node);
  EXPECT_EQ(distance(kGpu, 0, "", std::nullopt), Distance::unknown);
}

TEST(Service, WithoutAManagerIsNoFault) {
  EXPECT_TRUE(all_good(check_service({})));
}

TEST(Service, ThatDoesNotAnswerIs) {
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

TEST(Findings, AreTheSameForPeopleAndPrograms) {
  const Findings findings{{.part = "rdma", .what = "x", .level = Level::mend, .says = "y", .advice = "z"},
                          {.part = "gpu", .what = "u", .says = "v", .advice = {}}};
  EXPECT_THAT(to_text(findings), HasSubstr("-> z"));
  EXPECT_THAT(to_text(findings), HasSubstr("1 to mend."));
  const auto json = nlohmann::json::parse(to_json(findings));
  EXPECT_EQ(json.at("good"), false);
  EXPECT_EQ(json.at("findings").size(), 2U);
  EXPECT_EQ(json.at("findings")[0].at("level"), "mend");
  EXPECT_EQ(json.at("findings")[0].at("advice"), "z");
}

}  // namespace
}  // namespace tributary::cli::doctor
