// One rank of a job in which a test plants a slow rank: rounds of work, rest and an all_reduce, until it is killed.
//
//   tributary_planted_rank FOLDER ELEMENTS WORK_MS REST_MS SLEEP_MS
//
// WORK_MS is processor time, REST_MS a sleep. The first word of the file FOLDER/plant-RANK says what this rank does
// before its next calls:
//   sleep  it sleeps for SLEEP_MS in each round
//   skip   it makes no call until the file is gone
//   loop   the same, but it computes without a pause
// A wrong sum ends the program with exit code 4.
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "client/cli/perf/id_exchange.h"
#include "client/cli/perf/launch.h"
#include "tributary/tributary.h"

namespace tributary {
namespace {

constexpr int kExitError = 3, kExitWrong = 4;

struct Options {
  std::string folder;
  std::size_t elements = 0;
  std::chrono::milliseconds work{}, rest{}, sleep{};
};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, tributary_last_error(nullptr));
  std::exit(kExitError);
}

std::chrono::nanoseconds processor_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

void compute(std::chrono::nanoseconds time) {
  const auto end = processor_time() + time;
  while (processor_time() < end) {
  }
}

std::string planted(const std::string& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

/// Does what the test has planted.
void obey(const std::string& file, std::chrono::milliseconds sleep) {
  for (std::string word = planted(file); !word.empty(); word = planted(file)) {
    if (word == "loop") {
      compute(std::chrono::milliseconds(20));
    } else if (word == "skip") {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } else {
      return std::this_thread::sleep_for(sleep);
    }
  }
}

tributary_comm* meet(const cli::Launch& launch) {
  cli::IdBytes bytes{};
  tributary_unique_id id{};
  const cli::IdMeeting meeting{
      .rank = launch.rank, .ranks = launch.ranks, .host = launch.master_host, .port = launch.master_port, .job = {}};
  if (launch.rank == 0) {
    if (tributary_get_unique_id(&id) != TRIBUTARY_OK) give_up("tributary_get_unique_id");
    std::memcpy(bytes.data(), id.bytes, bytes.size());
    if (auto ok = cli::hand_out_id(bytes, meeting); !ok) give_up(ok.error().message.c_str());
  } else {
    const auto got = cli::fetch_id(meeting);
    if (!got) give_up(got.error().message.c_str());
    std::memcpy(id.bytes, got->data(), got->size());
  }
  tributary_comm* comm = nullptr;
  if (tributary_comm_init_rank(&comm, static_cast<int>(launch.ranks), &id, static_cast<int>(launch.rank)) !=
      TRIBUTARY_OK)
    give_up("tributary_comm_init_rank");
  return comm;
}

[[noreturn]] void run(const Options& options, const cli::Launch& launch) {
  tributary_comm* const comm = meet(launch);
  const std::string file = options.folder + "/plant-" + std::to_string(launch.rank);
  std::vector<float> mine(options.elements), sum(options.elements);
  for (std::uint64_t round = 0;; ++round) {
    obey(file, options.sleep);
    compute(options.work);
    std::this_thread::sleep_for(options.rest);
    const auto value = static_cast<float>(round % 1000);
    std::fill(mine.begin(), mine.end(), value);
    if (tributary_all_reduce(mine.data(), sum.data(), mine.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr) !=
        TRIBUTARY_OK)
      give_up("tributary_all_reduce");
    for (const float element : sum) {
      if (element == value * static_cast<float>(launch.ranks)) continue;
      std::fputs("a wrong sum\n", stderr);
      std::exit(kExitWrong);
    }
  }
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  if (argc != 6) return tributary::kExitError;
  const auto milliseconds = [argv](int at) { return std::chrono::milliseconds(std::stoul(argv[at])); };
  const auto launch = tributary::cli::detect_launch([](const char* name) -> const char* { return std::getenv(name); });
  if (!launch) return tributary::kExitError;
  tributary::run({.folder = argv[1],
                  .elements = std::stoul(argv[2]),
                  .work = milliseconds(3),
                  .rest = milliseconds(4),
                  .sleep = milliseconds(5)},
                 *launch);
}
