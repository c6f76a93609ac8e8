// The tests make folders like the kernel's folders.
#include "client/plugins/nccl/rdma_port.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace tributary::nccl {
namespace {

namespace fs = std::filesystem;

class RdmaPortOf : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tributary-rdma-port-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& line) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << line << '\n';
  }
  void add_port(const std::string& device, int port, const std::string& state, const std::string& rate) {
    const std::string folder = "class/infiniband/" + device + "/ports/" + std::to_string(port);
    write("class/infiniband/" + device + "/node_guid", "9803:9b03:0067:ab58");
    write(folder + "/state", state);
    write(folder + "/rate", rate);
  }

  fs::path root_;
};

TEST_F(RdmaPortOf, AnInterfaceWithoutOneIsNothing) {
  EXPECT_FALSE(rdma_port_of("eth0", root_)) << "there is no RDMA at all";
  add_port("mlx5_0", 1, "4: ACTIVE", "100 Gb/sec (4X EDR)");
  write("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth1");
  EXPECT_FALSE(rdma_port_of("eth0", root_));
  EXPECT_FALSE(rdma_port_of("eth10", root_));
  EXPECT_FALSE(rdma_port_of("", root_));
}

TEST_F(RdmaPortOf, RoceIsFoundByTheInterfacesOfItsGids) {
  add_port("mlx5_0", 1, "4: ACTIVE", "100 Gb/sec (4X EDR)");
  add_port("mlx5_1", 1, "4: ACTIVE", "25 Gb/sec (1X EDR)");
  write("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth1");
  write("class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0", "eth2");
  write("class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/3", "eth2.100");
  for (const char* interface : {"eth2", "eth2.100"}) {
    const auto port = rdma_port_of(interface, root_);
    ASSERT_TRUE(port) << interface;
    EXPECT_EQ(port->device, "mlx5_1");
    EXPECT_EQ(port->port, 1);
    EXPECT_TRUE(port->active);
    EXPECT_EQ(port->speed_mbps, 25'000);
    EXPECT_EQ(port->guid, 0x98039b030067ab58ULL);
  }
}

TEST_F(RdmaPortOf, InfinibandIsFoundByTheInterfaceBesideItsDevice) {
  add_port("mlx4_0", 1, "1: DOWN", "10 Gb/sec (4X SDR)");
  add_port("mlx4_0", 2, "4: ACTIVE", "2.5 Gb/sec (1X SDR)");
  write("class/infiniband/mlx4_0/device/net/ib0/type", "32");
  write("class/infiniband/mlx4_0/device/net/ib1/type", "32");
  write("class/net/ib0/dev_port", "0");
  write("class/net/ib1/dev_port", "1");
  const auto first = rdma_port_of("ib0", root_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->port, 1);
  EXPECT_FALSE(first->active);
  const auto second = rdma_port_of("ib1", root_);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->port, 2);
  EXPECT_TRUE(second->active);
  EXPECT_EQ(second->speed_mbps, 2'500);
}

}  // namespace
}  // namespace tributary::nccl
