// Ranks name the rail of their only device, and a real manager puts their trees on this rail.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <thread>

#include "tests/system/manager/manager_process.h"
#include "tributary/tributary.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTwoRails = R"(
fabric: rail-optimised
switches: [{name: leaf-0, level: 1, rail: rail-0}, {name: leaf-1, level: 1, rail: rail-1}, {name: spine, level: 2}]
hosts: [node-0, node-1, agg-0, agg-1]
links:
  - {from: [node-0, node-1, agg-0], to: leaf-0, rate: 100Gbit/s, interface: nic0}
  - {from: [node-0, node-1, agg-1], to: leaf-1, rate: 100Gbit/s, interface: nic1}
  - {from: [leaf-0, leaf-1], to: spine, rate: 100Gbit/s}
)";

/// Takes connections and never answers, so that ranks wait for their trees while the test looks at the manager.
class SilentPort {
 public:
  SilentPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    EXPECT_EQ(::listen(fd_, 64), 0);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }
  ~SilentPort() { ::close(fd_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;
  [[nodiscard]] Endpoint endpoint() const { return {"127.0.0.1", port_}; }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

class Rail : public testing::Test {
 protected:
  // The stand-ins for aggregators never renew their leases, so these outlive the test.
  Rail()
      : manager_(ManagerProcess::serving(folder_.file("state"),
                                         {"--topology", folder_.write("topology.yaml", kTwoRails), "--config",
                                          folder_.write("manager.yaml", "aggregator_lease: 300s\n")})) {
    for (const char* number : {"0", "1"}) {
      const auto registered = manager_->for_aggregators().register_aggregator({.name = std::string("on-rail-") + number,
                                                                               .host = std::string("agg-") + number,
                                                                               .data = silent_.endpoint(),
                                                                               .http = silent_.endpoint(),
                                                                               .memory_bytes = 1ULL << 34,
                                                                               .version = "test"});
      EXPECT_TRUE(registered.has_value()) << registered.error().message;
    }
    ::setenv("TRIBUTARY_MANAGER", manager_->url().c_str(), 1);
    ::setenv("TRIBUTARY_TOKEN_FILE", folder_.file("state/job.token").c_str(), 1);
    ::setenv("TRIBUTARY_LOCAL", "off", 1);
    ::setenv("TRIBUTARY_LOG", "off", 1);
  }

  /// Makes a group of two ranks on two hosts. Returns the rails of its first trees, by lane: it looks while the ranks
  /// wait for the aggregators, because later the manager may plan other trees.
  std::vector<std::string> rails_of_a_group(const std::string& job) {
    tributary_unique_id id{};
    EXPECT_EQ(tributary_get_unique_id(&id), TRIBUTARY_OK) << tributary_last_error(nullptr);
    std::latch looked(1);
    const auto body = [&](int rank) {
      tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
      const std::string host = "node-" + std::to_string(rank);
      config.host_id = host.c_str();
      config.job = job.c_str();
      tributary_comm* comm = nullptr;
      const auto made = tributary_comm_init_rank_config(&comm, 2, &id, rank, &config);
      EXPECT_EQ(made, TRIBUTARY_OK) << tributary_last_error(nullptr);
      looked.wait();
      if (made == TRIBUTARY_OK) tributary_comm_destroy(comm);
    };
    std::array<std::thread, 2> ranks{std::thread(body, 0), std::thread(body, 1)};
    const std::vector<std::string> rails = listed_rails(job);
    looked.count_down();
    for (std::thread& rank : ranks) rank.join();
    return rails;
  }

  /// Returns the rails of the trees that `tributary plan --lanes 2` shows with these options, by lane.
  [[nodiscard]] std::vector<std::string> planned_rails(const std::string& options) const {
    const std::string command = std::string(TRIBUTARY_PROGRAM " plan node-0 node-1 --lanes 2 -o json --manager ") +
                                manager_->url() + " --token-file " + folder_.file("state/job.token") + " " + options;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
    std::string text;
    for (int c = 0; (c = std::fgetc(pipe.get())) != EOF;) text.push_back(static_cast<char>(c));
    const json plan = json::parse(text, nullptr, false);
    EXPECT_FALSE(plan.is_discarded()) << text;
    std::vector<std::string> rails;
    if (plan.is_discarded()) return rails;
    for (const json& tree : plan.value("trees", json::array())) rails.push_back(tree.at("rail"));
    return rails;
  }

 private:
  [[nodiscard]] std::vector<std::string> listed_rails(const std::string& job) const {
    auto jobs = manager_->for_jobs();
    std::vector<std::string> rails;
    for (const auto limit = std::chrono::steady_clock::now() + 30s; std::chrono::steady_clock::now() < limit;) {
      const json groups = jobs.get("/v1/groups").value_or(json::object()).value("groups", json::array());
      const auto ours = std::ranges::find_if(groups, [&](const json& it) { return it.at("job") == job; });
      if (ours == groups.end()) continue;
      const std::string path = "/v1/groups/" + std::to_string(ours->at("group").get<std::uint64_t>());
      for (const json& tree : jobs.get(path).value_or(json::object()).value("trees", json::array()))
        rails.push_back(tree.at("rail"));
      if (!rails.empty()) break;
    }
    return rails;
  }

  const Folder folder_;
  const SilentPort silent_;
  const std::unique_ptr<ManagerProcess> manager_;
};

TEST_F(Rail, ThePlanCommandShowsTheTreesOfRanksThatNameARail) {
  EXPECT_THAT(planned_rails("--rail rail-1"), testing::ElementsAre("rail-1", "rail-1"));
  EXPECT_THAT(planned_rails(""), testing::ElementsAre("rail-0", "rail-1"));
}

TEST_F(Rail, TreesAreOnTheRailThatAllRanksName) {
  ::setenv("TRIBUTARY_RAIL", "rail-1", 1);
  const auto rails = rails_of_a_group("one");
  EXPECT_THAT(rails, Not(IsEmpty()));
  EXPECT_THAT(rails, Each("rail-1"));
}

TEST_F(Rail, TreesTakeTheRailsInTurnIfTheRanksNameNone) {
  ::unsetenv("TRIBUTARY_RAIL");
  ::setenv("TRIBUTARY_LANES", "2", 1);
  EXPECT_THAT(rails_of_a_group("both"), testing::ElementsAre("rail-0", "rail-1"));
  ::unsetenv("TRIBUTARY_LANES");
}

}  // namespace
}  // namespace tributary::manager
