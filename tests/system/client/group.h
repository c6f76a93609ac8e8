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
  std::function<void(int rank, tributary_config&)> configure;  // called after the time-out was set
};

using RankBody = std::function<void(tributary_comm* comm, int rank)>;

/// Makes a communicator of `nranks` ranks, runs `body` in each, and destroys it. Fails the test if a rank cannot be
/// made or destroyed.
void run_ranks(int nranks, const RankBody& body, const GroupOptions& options = {});

/// The same without destroying: the body must end the communicator.
void run_ranks_without_end(int nranks, const RankBody& body, const GroupOptions& options = {});

/// Runs `body` for 0 to count - 1 in threads of their own, and waits for all.
void in_threads(int count, const std::function<void(int index)>& body);

[[nodiscard]] tributary_unique_id make_id();
[[nodiscard]] tributary_config config_with(Milliseconds timeout);
/// Returns the last error of this thread.
[[nodiscard]] std::string last_error();

/// Returns the host of a rank if TRIBUTARY_TEST_HOSTS puts the ranks on several hosts; else an empty text. 2: two
/// hosts, the first with the first half; -2: two hosts in turns.
[[nodiscard]] std::string host_of(int rank, int nranks);

/// True if all ranks are on one host and use its memory: TRIBUTARY_LOCAL is not off.
[[nodiscard]] bool shares_memory();

/// Lengthens time-outs that a test waits for, several times under a sanitizer.
[[nodiscard]] Milliseconds patience(Milliseconds normal);

}  // namespace tributary::test
