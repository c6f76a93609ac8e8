// One rank as a process of its own, for tests that kill it or stop it.
//   client_rank_process RANK NRANKS TIMEOUT_MS SCENARIO [ID]
// Rank 0 makes the unique id and prints it; the others are given it. Prints "ready" when the ranks have met, and then
// what the scenario ends with: "end STATUS SENTENCE".
//   reduce  all_reduces of 4 MiB until one fails
//   barrier one barrier
//   absent  nothing: waits to be killed
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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

tributary_status play(const std::string& scenario, tributary_comm* comm) {
  if (scenario == "barrier") return tributary_barrier(comm, nullptr);
  if (scenario == "absent") {
    while (true) pause();
  }
  std::vector<float> data(1 << 20, 1.0F), sum(data.size());
  while (true) {
    const auto status =
        tributary_all_reduce(data.data(), sum.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr);
    if (status != TRIBUTARY_OK) return status;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 64;
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
  const auto status = play(argv[4], comm);
  std::printf("end %d %s\n", static_cast<int>(status), tributary_last_error(comm));
  return tributary_comm_destroy(comm) == TRIBUTARY_OK ? 0 : 1;
}
