// One rank as a process of its own, for tests that kill it or stop it.
//   client_rank_process RANK NRANKS TIMEOUT_MS SCENARIO [ID]
// Rank 0 makes the unique id and prints it; the other ranks get it as an argument. Prints "ready" when the ranks have
// met, and then the end of the scenario: "end STATUS SENTENCE".
//   reduce  all_reduces of 4 MiB until one fails
//   barrier one barrier
//   late    one barrier, after the process was stopped and goes on (SIGCONT)
//   absent  no call: waits until the test kills it
//   other   as "reduce", but with another count than the other ranks
//   shrink:R all_reduces until one fails, then 20 all_reduces without rank R; first prints "prepared"
//   mixed   collectives and messages by several threads on two communicators; first prints both paths: "path PATH PATH"
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tributary/tributary.h"

namespace {

std::string to_hex(const tributary_unique_id& id) {
  std::string text;
  for (const unsigned char byte : id.bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text;
}

tributary_unique_id from_hex(const char* text) {
  tributary_unique_id id{};
  for (std::size_t i = 0; i < sizeof id.bytes && text[2 * i] != '\0'; ++i) {
    id.bytes[i] = static_cast<unsigned char>(std::stoi(std::string(text + 2 * i, 2), nullptr, 16));
  }
  return id;
}

[[noreturn]] void fail(const char* what) {
  std::printf("failed %s: %s\n", what, tributary_last_error(nullptr));
  std::exit(1);
}

void need(tributary_status status, const char* what) {
  if (status != TRIBUTARY_OK) fail(what);
}

/// Starts an all_reduce without waiting, passes a message around the ring, then waits: a rank that receives must not
/// prevent the other ranks from getting their sum.
void mix(tributary_comm* comm, int rank, int nranks, int rounds) {
  std::vector<float> mine(70'000), sum(mine.size());
  for (int round = 0; round < rounds; ++round) {
    const std::size_t count = round % 3 == 0 ? mine.size() : static_cast<std::size_t>(1 + round);
    std::fill(mine.begin(), mine.end(), static_cast<float>(rank + round));
    tributary_request* request = nullptr;
    need(tributary_all_reduce(mine.data(), sum.data(), count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, &request),
         "tributary_all_reduce");
    int said = rank, heard = -1;
    if (rank != 0) {
      need(tributary_recv(&heard, 1, TRIBUTARY_INT32, rank - 1, comm, nullptr), "tributary_recv");
    } else {
      need(tributary_wait(request, -1), "tributary_wait");  // the other ranks are in their recv() at this time
    }
    need(tributary_send(&said, 1, TRIBUTARY_INT32, (rank + 1) % nranks, comm, nullptr), "tributary_send");
    if (rank == 0) {
      need(tributary_recv(&heard, 1, TRIBUTARY_INT32, nranks - 1, comm, nullptr), "tributary_recv");
    } else {
      need(tributary_wait(request, -1), "tributary_wait");
    }
    const int sum_of_ranks = nranks * (nranks - 1) / 2;
    const auto expected = static_cast<float>(sum_of_ranks + nranks * round);
    if (heard != (rank + nranks - 1) % nranks || sum[0] != expected || sum[count - 1] != expected) fail("a wrong sum");
  }
}

void reduce_blocking(tributary_comm* comm, int nranks, int rounds) {
  std::vector<std::int64_t> data(40'000);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t count = round % 4 == 0 ? data.size() : 1;
    std::fill(data.begin(), data.end(), round);
    need(tributary_all_reduce(data.data(), data.data(), count, TRIBUTARY_INT64, TRIBUTARY_SUM, comm, nullptr),
         "tributary_all_reduce");
    if (data[count - 1] != std::int64_t{round} * nranks) fail("a wrong sum");
  }
}

const char* path_of(const tributary_comm* comm) {
  tributary_info info{};
  info.struct_bytes = sizeof info;
  need(tributary_comm_info(comm, &info), "tributary_comm_info");
  return info.path == TRIBUTARY_PATH_LOCAL        ? "local"
         : info.path == TRIBUTARY_PATH_IN_NETWORK ? "in-network"
                                                  : "fallback";
}

tributary_status play_mixed(tributary_comm* comm, int rank, int nranks, const tributary_config& config) {
  tributary_unique_id id{};
  if (rank == 0) need(tributary_get_unique_id(&id), "tributary_get_unique_id");
  need(tributary_broadcast(id.bytes, id.bytes, sizeof id.bytes, TRIBUTARY_UINT8, 0, comm, nullptr),
       "tributary_broadcast");
  tributary_comm* second = nullptr;
  need(tributary_comm_init_rank_config(&second, nranks, &id, rank, &config), "tributary_comm_init_rank");
  std::printf("path %s %s\n", path_of(comm), path_of(second));
  std::thread one([&] { mix(comm, rank, nranks, 60); });
  std::thread two([&] { reduce_blocking(second, nranks, 100); });
  one.join();
  two.join();
  return tributary_comm_destroy(second);
}

tributary_status reduce_until_error(tributary_comm* comm, std::size_t count) {
  std::vector<float> data(count, 1.0F), sum(count);
  while (true) {
    const auto status =
        tributary_all_reduce(data.data(), sum.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr);
    if (status != TRIBUTARY_OK) return status;
  }
}

/// Goes on without the rank that the test kills.
tributary_status play_shrunk(tributary_comm* comm, int rank, int nranks, int excluded, const tributary_config& config) {
  need(tributary_comm_prepare_shrink(comm, &config), "tributary_comm_prepare_shrink");
  std::printf("prepared\n");
  static_cast<void>(reduce_until_error(comm, 1 << 18));
  tributary_comm* rest = nullptr;
  need(tributary_comm_shrink(comm, &excluded, 1, &rest, &config), "tributary_comm_shrink");
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> data(40'000, rank);
    need(tributary_all_reduce(data.data(), data.data(), data.size(), TRIBUTARY_INT64, TRIBUTARY_SUM, rest, nullptr),
         "tributary_all_reduce");
    if (data.back() != std::int64_t{nranks} * (nranks - 1) / 2 - excluded) fail("a wrong sum");
  }
  return tributary_comm_destroy(rest);
}

sigset_t only_sigcont() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCONT);
  return set;
}

tributary_status play(const std::string& scenario, tributary_comm* comm) {
  if (scenario == "late") {
    const sigset_t continued = only_sigcont();
    int number = 0;
    sigwait(&continued, &number);
  }
  if (scenario == "barrier" || scenario == "late") return tributary_barrier(comm, nullptr);
  if (scenario == "absent") {
    while (true) pause();
  }
  return reduce_until_error(comm, (1U << 20) - (scenario == "other" ? 1 : 0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 64;
  const sigset_t continued = only_sigcont();
  pthread_sigmask(SIG_BLOCK, &continued, nullptr);  // blocked in all threads, so that the waiting thread gets the
                                                    // signal
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const int rank = std::atoi(argv[1]), nranks = std::atoi(argv[2]);
  tributary_unique_id id{};
  if (rank == 0) {
    if (tributary_get_unique_id(&id) != TRIBUTARY_OK) fail("tributary_get_unique_id");
    std::printf("id %s\n", to_hex(id).c_str());
  } else {
    id = from_hex(argc > 5 ? argv[5] : "");
  }
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.timeout_ms = std::atol(argv[3]);
  tributary_comm* comm = nullptr;
  if (tributary_comm_init_rank_config(&comm, nranks, &id, rank, &config) != TRIBUTARY_OK)
    fail("tributary_comm_init_rank");
  if (tributary_barrier(comm, nullptr) != TRIBUTARY_OK) fail("tributary_barrier");
  std::printf("ready\n");
  const std::string scenario = argv[4];
  if (scenario.starts_with("shrink:")) {
    const auto status = play_shrunk(comm, rank, nranks, std::stoi(scenario.substr(7)), config);
    std::printf("end %d\n", static_cast<int>(status));
    tributary_comm_abort(comm);
    return status == TRIBUTARY_OK ? 0 : 1;
  }
  const auto status = scenario == "mixed" ? play_mixed(comm, rank, nranks, config) : play(scenario, comm);
  std::printf("end %d %s\n", static_cast<int>(status), tributary_last_error(comm));
  return tributary_comm_destroy(comm) == TRIBUTARY_OK ? 0 : 1;
}
