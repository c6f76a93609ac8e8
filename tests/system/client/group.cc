#include "tests/system/client/group.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <thread>

namespace tributary::test {

void in_threads(int count, const std::function<void(int index)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

void run_ranks_without_end(int nranks, const RankBody& body, const GroupOptions& options) {
  const tributary_unique_id id = make_id();
  in_threads(nranks, [&](int rank) {
    tributary_config config = config_with(options.timeout);
    const std::string host = host_of(rank, nranks);
    if (!host.empty()) config.host_id = host.c_str();
    if (options.configure) options.configure(rank, config);
    tributary_comm* comm = nullptr;
    ASSERT_EQ(tributary_comm_init_rank_config(&comm, nranks, &id, rank, &config), TRIBUTARY_OK) << last_error();
    body(comm, rank);
  });
}

void run_ranks(int nranks, const RankBody& body, const GroupOptions& options) {
  run_ranks_without_end(
      nranks,
      [&](tributary_comm* comm, int rank) {
        body(comm, rank);
        EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK) << "rank " << rank << ": " << last_error();
      },
      options);
}

std::string host_of(int rank, int nranks) {
  const char* hosts = std::getenv("TRIBUTARY_TEST_HOSTS");
  if (hosts == nullptr || nranks == 1) return {};
  const int places = std::atoi(hosts);
  return "host-" + std::to_string(places > 0 ? rank * places / nranks : rank % -places);
}

tributary_unique_id make_id() {
  tributary_unique_id id{};
  EXPECT_EQ(tributary_get_unique_id(&id), TRIBUTARY_OK) << last_error();
  return id;
}

tributary_config config_with(Milliseconds timeout) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.timeout_ms = timeout.count();
  return config;
}

std::string last_error() {
  return tributary_last_error(nullptr);
}

bool shares_memory() {
  const char* local = std::getenv("TRIBUTARY_LOCAL");
  if (std::getenv("TRIBUTARY_TEST_HOSTS") != nullptr) return false;
  return local == nullptr || std::string_view(local) != "off";
}

Milliseconds patience(Milliseconds normal) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  return normal * 4;
#else
  return normal;
#endif
}

}  // namespace tributary::test
