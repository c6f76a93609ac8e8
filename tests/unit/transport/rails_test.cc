// The choice of RDMA ports on hosts that the tests make: they have two sockets, with a GPU and two adapters below each
// socket.
#include "tributary/transport/rails.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tributary::transport {
namespace {

namespace fs = std::filesystem;

class Rails : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("rails-" + std::to_string(getpid()));
    for (int node = 0; node < 2; ++node) {
      const std::string top = std::string("/sys/devices/pci0000:") + (node == 0 ? "00" : "80");
      const std::string bus = node == 0 ? "0" : "8";
      function(top + "/0000:" + bus + "0:01.0/0000:" + bus + "f:00.0/0000:" + bus + "1:00.0", node,
               "0000:" + bus + "1:00.0", "");
      function(top + "/0000:" + bus + "0:01.0/0000:" + bus + "f:00.0/0000:" + bus + "2:00.0", node, "",
               "mlx5_" + std::to_string(2 * node));
      function(top + "/0000:" + bus + "0:03.0/0000:" + bus + "3:00.0", node, "",
               "mlx5_" + std::to_string(2 * node + 1));
    }
    for (int i = 0; i < 4; ++i)
      all_.push_back({.device = "mlx5_" + std::to_string(i), .address = "10.0.0." + std::to_string(i)});
  }
  void TearDown() override { fs::remove_all(root_); }

  void function(const std::string& folder, int node, const std::string& bus_id, const std::string& rdma) {
    fs::create_directories(root_.string() + folder);
    std::ofstream(root_.string() + folder + "/numa_node") << node << "\n";
    const auto link = [&](const std::string& at) {
      fs::create_directories(fs::path(root_.string() + at).parent_path());
      fs::create_directory_symlink(root_.string() + folder, root_.string() + at);
    };
    if (!bus_id.empty()) link("/sys/bus/pci/devices/" + bus_id);
    if (!rdma.empty()) link("/sys/class/infiniband/" + rdma + "/device");
  }
  std::vector<std::string> chosen(const RailWish& wish) {
    const auto rails = choose_rails(SystemTree(root_.string()), all_, wish);
    std::vector<std::string> names;
    if (!rails) return {rails.error().message};
    for (const Rail& rail : *rails) names.push_back(rail.device);
    return names;
  }
  using Names = std::vector<std::string>;
  fs::path root_;
  std::vector<Rail> all_;
};

TEST(SystemTree, AFileThatTheKernelRefusesToReadHasNoText) {
  EXPECT_EQ(SystemTree().read("/proc/self/mem"), std::nullopt) << "as the rate of a link that is down";
  EXPECT_EQ(SystemTree().read("/proc/self/nothing"), std::nullopt);
}

TEST_F(Rails, ThePortNearestToTheGpuIsChosen) {
  EXPECT_EQ(chosen({.names = {}, .gpu = "0000:01:00.0", .node = {}}), Names{"mlx5_0"});
  EXPECT_EQ(chosen({.names = {}, .gpu = "0000:81:00.0", .node = 0}), Names{"mlx5_2"}) << "the GPU counts, not the node";
}

TEST_F(Rails, RanksOfANodeTakeItsPortsInTurn) {
  EXPECT_EQ(chosen({.names = {}, .gpu = "", .node = 1}), (Names{"mlx5_2", "mlx5_3"}));
  EXPECT_EQ(chosen({.names = {}, .gpu = "", .node = 1, .turn = 3}), (Names{"mlx5_3", "mlx5_2"}));
}

TEST_F(Rails, WithoutAGpuOrNodeAllPortsAreUsed) {
  EXPECT_EQ(chosen({}), (Names{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}));
  EXPECT_EQ(chosen({.names = {}, .gpu = "", .node = {}, .turn = 6}), (Names{"mlx5_2", "mlx5_3", "mlx5_0", "mlx5_1"}));
  all_.clear();
  EXPECT_EQ(choose_rails(SystemTree(root_.string()), all_, {}).error().code, Errc::unsupported);
}

TEST_F(Rails, NamedPortsAreUsedInTheirOrder) {
  all_.push_back({.device = "mlx5_3", .port = 2, .address = "10.0.0.9"});
  EXPECT_EQ(chosen({.names = {"mlx5_3", "mlx5_0:1"}, .gpu = "0000:01:00.0", .node = {}}), (Names{"mlx5_3", "mlx5_0"}));
  const auto second = choose_rails(SystemTree(root_.string()), all_, {.names = {"mlx5_3:2"}, .gpu = {}, .node = {}});
  EXPECT_EQ(second->front().address, "10.0.0.9");
  const auto none = choose_rails(SystemTree(root_.string()), all_, {.names = {"mlx5_7"}, .gpu = {}, .node = {}});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::bad_config);
  EXPECT_NE(none.error().message.find("mlx5_7"), std::string::npos);
  EXPECT_NE(none.error().message.find("10.0.0.9"), std::string::npos) << "the error lists the ports that there are";
}

TEST_F(Rails, NamesAreReadFromAList) {
  EXPECT_EQ(names_of_rails("mlx5_0, mlx5_1:2"), (Names{"mlx5_0", "mlx5_1:2"}));
  EXPECT_EQ(names_of_rails("auto"), Names{});
  EXPECT_EQ(names_of_rails(""), Names{});
}

}  // namespace
}  // namespace tributary::transport
