// Ranks of several hosts over a tree: the aggregator gets one contribution from each host, the sums contain all ranks,
// and each rank knows its path.
#include <gmock/gmock.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/system/chaos/workshop.h"
#include "tests/system/client/tensors.h"
#include "tributary/manager_client/manager_client.h"
#include "tributary/protocol/numerics.h"
#include "tributary/tributary.h"

namespace tributary::test {
namespace {

using Hosts = std::vector<std::uint32_t>;  // by rank

class HostsOverTrees : public testing::Test {
 protected:
  static constexpr std::uint32_t kHosts = 3;

  HostsOverTrees() {
    // With a short lease the aggregator often reports its load.
    auto cluster = cli::LocalCluster::start({.shape = {.ranks = kHosts, .aggregators = 1, .levels = 1},
                                             .lanes = 1,
                                             .folder = workshop_.folder(),
                                             .manager_settings = "aggregator_lease: 2s\n"},
                                            workshop_.guardian());
    if (!cluster) throw std::runtime_error(cluster.error().message);
    cluster_ = std::move(*cluster);
    token_file_ = cluster_->job_token_file();
    setenv("TRIBUTARY_TOKEN_FILE", token_file_.c_str(), 1);
  }

  /// Makes a communicator whose ranks, which are threads of this process, are on these hosts.
  template <class Body>
  void run(const Hosts& hosts, Body body) {
    tributary_unique_id id{};
    ASSERT_EQ(tributary_get_unique_id(&id), TRIBUTARY_OK) << tributary_last_error(nullptr);
    std::vector<std::thread> ranks;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      ranks.emplace_back([&, rank] {
        tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
        config.manager = cluster_->manager_url().c_str();
        config.host_id = cluster_->layout().host_of_rank[hosts[rank]].c_str();
        config.tuning = tuning_;
        config.timeout_ms = 30'000;
        tributary_comm* comm = nullptr;
        ASSERT_EQ(tributary_comm_init_rank_config(&comm, static_cast<int>(hosts.size()), &id, static_cast<int>(rank),
                                                  &config),
                  TRIBUTARY_OK)
            << tributary_last_error(nullptr);
        body(comm, static_cast<std::uint32_t>(rank));
        EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK) << tributary_last_error(nullptr);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  [[nodiscard]] std::uint64_t contribution_bytes() const {
    auto client = manager_client::ManagerClient::create({.url = cluster_->manager_url(), .token = {}});
    const auto answer = client ? client->get("/v1/aggregators") : std::unexpected(client.error());
    if (!answer) return 0;
    return answer->at("aggregators").at(0).at("load").at("contribution_bytes_total").get<std::uint64_t>();
  }

  chaos::Workshop workshop_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::string token_file_;
  const char* tuning_ = "off";
};

tributary_info info_of(const tributary_comm* comm) {
  tributary_info info{};
  info.struct_bytes = sizeof info;
  EXPECT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK);
  return info;
}

TEST_F(HostsOverTrees, EachHostSendsOneContributionWhateverItsRanks) {
  constexpr std::size_t kCount = 1'000'003;
  constexpr int kCalls = 5;
  run({0, 0, 0, 1, 1, 2}, [&](tributary_comm* comm, std::uint32_t rank) {
    std::vector<float> send(kCount, static_cast<float>(rank + 1)), recv(kCount);
    for (int call = 0; call < kCalls; ++call) {
      ASSERT_EQ(tributary_all_reduce(send.data(), recv.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
                TRIBUTARY_OK)
          << tributary_last_error(comm);
      ASSERT_EQ(recv[0], 21.0F);
      ASSERT_EQ(recv[kCount - 1], 21.0F);
    }
    const tributary_info info = info_of(comm);
    EXPECT_EQ(info.path, TRIBUTARY_PATH_IN_NETWORK) << info.reason;
    EXPECT_EQ(info.hosts, kHosts);
    EXPECT_EQ(info.levels, 1U);
    EXPECT_EQ(info.operations, static_cast<std::uint64_t>(kCalls));
    EXPECT_EQ(info.bytes_in_network, kCalls * kCount * sizeof(float));
    EXPECT_EQ(info.bytes_fallback + info.bytes_local, 0U);
  });
  constexpr std::uint64_t kExpected = kHosts * kCalls * kCount * sizeof(float);
  for (int tries = 0; tries < 600 && contribution_bytes() < kExpected; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // wait until the aggregator has told the manager
  EXPECT_EQ(contribution_bytes(), kExpected);
}

TEST_F(HostsOverTrees, EveryRankOfAHostCountsTheBytesOfItsLeaderByPath) {
  // The leaders send short calls between themselves, and long calls by the tree.
  constexpr std::size_t kShort = 1000, kLong = 500'003;
  const std::string table = workshop_.folder() + "/tuning.json";
  std::ofstream(table) << R"({"format": "tributary-tuning-1", "rules": [
      {"collective": "all_reduce", "ranks": [1, 100], "bytes_max": 65536, "path": "ranks", "algorithm": "ring"},
      {"collective": "all_reduce", "ranks": [1, 100], "bytes_max": null, "path": "tree", "algorithm": "ring"}]})";
  tuning_ = table.c_str();
  run({0, 0, 0, 1, 1, 2}, [&](tributary_comm* comm, std::uint32_t rank) {
    std::vector<std::int32_t> data(kLong);
    for (const std::size_t count : {kShort, kLong, kShort, kShort}) {
      data.assign(kLong, static_cast<std::int32_t>(rank));
      ASSERT_EQ(tributary_all_reduce(data.data(), data.data(), count, TRIBUTARY_INT32, TRIBUTARY_SUM, comm, nullptr),
                TRIBUTARY_OK)
          << tributary_last_error(comm);
      ASSERT_EQ(data[count - 1], 15);
    }
    const tributary_info info = info_of(comm);
    EXPECT_EQ(info.path, TRIBUTARY_PATH_IN_NETWORK) << info.reason;
    EXPECT_EQ(info.hosts, kHosts);
    EXPECT_EQ(info.bytes_in_network, kLong * sizeof(std::int32_t)) << "rank " << rank;
    EXPECT_EQ(info.bytes_fallback, 3 * kShort * sizeof(std::int32_t)) << "rank " << rank;
    EXPECT_EQ(info.bytes_local, 0U);
  });
}

TEST_F(HostsOverTrees, EveryTypeAndOperationOnHostsOfDifferentSizes) {
  const Hosts hosts{0, 1, 1, 1};
  for (std::uint8_t d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    run(hosts, [&](tributary_comm* comm, std::uint32_t rank) {
      for (std::uint8_t o = 0; o < kReduceOpCount; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        if (!is_defined(op, dtype)) continue;
        for (const std::size_t count : {std::size_t{5}, std::size_t{600'001}}) {
          std::vector<Bytes> inputs;
          for (std::size_t r = 0; r < hosts.size(); ++r)
            inputs.push_back(reducible(dtype, op, count, static_cast<int>(r)));
          Bytes result = inputs[rank];
          ASSERT_EQ(tributary_all_reduce(result.data(), result.data(), count, static_cast<tributary_dtype>(d),
                                         static_cast<tributary_op>(o), comm, nullptr),
                    TRIBUTARY_OK)
              << tributary_last_error(comm);
          EXPECT_EQ(difference(reduced(dtype, op, inputs), result), "")
              << to_string(dtype) << " " << to_string(op) << " " << count;
        }
      }
      EXPECT_GT(info_of(comm).bytes_in_network, 0U);  // a slow manager answers after the first operations
    });
  }
}

TEST_F(HostsOverTrees, APathIsLoggedOnceThoughItsTuningChanges) {
  tuning_ = "auto";
  testing::internal::CaptureStderr();
  run({0, 0, 1, 1}, [&](tributary_comm* comm, std::uint32_t) {
    std::vector<float> data(1U << 18, 1.0F);
    for (int i = 0; i < 300; ++i) {
      data.assign(data.size(), 1.0F);
      ASSERT_EQ(
          tributary_all_reduce(data.data(), data.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
          TRIBUTARY_OK);
      ASSERT_EQ(data.back(), 4.0F);
    }
  });
  const std::string log = testing::internal::GetCapturedStderr();
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = log.find("in-network reduction in use", at)) != std::string::npos; ++at) ++lines;
  EXPECT_LE(lines, 1U) << log;
}

TEST_F(HostsOverTrees, AKilledAggregatorIsSeenByEveryRankAndCostsNoOperation) {
  constexpr std::size_t kCount = 1 << 20;
  std::atomic<int> calls{0};
  std::thread killer([&] {
    while (calls.load() < 40) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    cluster_->kill(0);
  });
  run({0, 1, 0, 1}, [&](tributary_comm* comm, std::uint32_t rank) {
    std::vector<std::int32_t> send(kCount), recv(kCount);
    for (int call = 0; call < 200; ++call) {
      send.assign(kCount, static_cast<std::int32_t>(rank) + call);
      ASSERT_EQ(tributary_all_reduce(send.data(), recv.data(), kCount, TRIBUTARY_INT32, TRIBUTARY_SUM, comm, nullptr),
                TRIBUTARY_OK)
          << tributary_last_error(comm);
      ASSERT_EQ(recv, std::vector<std::int32_t>(kCount, 6 + 4 * call));
      if (rank == 3) calls.store(call);
    }
    tributary_info info = info_of(comm);
    EXPECT_EQ(info.failovers, 1U);
    EXPECT_EQ(info.path, TRIBUTARY_PATH_FALLBACK);
    EXPECT_EQ(info.hosts, 2U);
  });
  killer.join();
}

}  // namespace
}  // namespace tributary::test
