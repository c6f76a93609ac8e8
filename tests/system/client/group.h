#pragma once
// A communicator of several ranks, each a thread of this process, over real TCP connections.
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "tributary/tributary.h"

namespace tributary::test {

using Milliseconds = std::chrono::milliseconds;

struct GroupOptions {
  Milliseconds timeout{20'000};
  std::function<void(int rank, tributary_config&)> configure;  // called after the time-out is set
};

using RankBody = std::function<void(tributary_comm* comm, int rank)>;

/// Makes a communicator of `nranks` ranks, runs `body` in each, and destroys it. Fails the test if a rank cannot be
/// made or destroyed.
void run_ranks(int nranks, const RankBody& body, const GroupOptions& options = {});

/// Does the same, but does not destroy the communicator: the body must end it.
void run_ranks_without_end(int nranks, const RankBody& body, const GroupOptions& options = {});

/// Runs `body` for 0 to count - 1 in threads of their own, and waits for all.
void in_threads(int count, const std::function<void(int index)>& body);

[[nodiscard]] tributary_unique_id make_id();
[[nodiscard]] tributary_config config_with(Milliseconds timeout);
/// Returns the last error of this thread.
[[nodiscard]] std::string last_error();

/// Returns the host of a rank if TRIBUTARY_TEST_HOSTS puts the ranks on several hosts; else an empty text. 2 means two
/// hosts, of which the first has the first half of the ranks; -2 means two hosts in turns.
[[nodiscard]] std::string host_of(int rank, int nranks);

/// True if all ranks are on one host and use its memory: TRIBUTARY_LOCAL is not off.
[[nodiscard]] bool shares_memory();

/// Returns a longer time for time-outs that a test waits for; under a sanitizer several times as long.
[[nodiscard]] Milliseconds patience(Milliseconds normal);

}  // namespace tributary::test
