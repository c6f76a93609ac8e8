#include "client/plugins/nccl/collective/observer.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "client/plugins/nccl/log.h"
#include "client/plugins/nccl/settings.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/blocked_signals.h"

namespace tributary::nccl {
namespace {

constexpr std::chrono::milliseconds kInterval{250};
// A group gets its tree within a few round trips to the manager. After this many rounds without a tree, a log line says
// so.
constexpr int kLooksUntilFallbackIsSaid = 12;

std::string milliseconds(std::uint64_t microseconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f ms", static_cast<double>(microseconds) / 1000);
  return text.data();
}

std::string name(int number, int ranks, int rank) {
  return "group " + std::to_string(number) + " (rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ")";
}

void sum_up(tributary_info& total, const tributary_info& one) {
  total.operations += one.operations;
  total.bytes_in_network += one.bytes_in_network;
  total.bytes_fallback += one.bytes_fallback;
  total.bytes_local += one.bytes_local;
  total.failovers += one.failovers;
  total.returns += one.returns;
}

bool ask(tributary_comm* comm, tributary_info& into) {
  into = {};
  into.struct_bytes = sizeof into;
  return tributary_comm_info(comm, &into) == TRIBUTARY_OK;
}

}  // namespace

Observer& Observer::process() {
  static auto* const one = new Observer;  // never destroyed: NCCL may close a group while the process ends
  return *one;
}

void Observer::add(tributary_comm* comm, int ranks, int rank) {
  const std::lock_guard lock(mutex_);
  groups_.emplace(comm, Group{.number = next_number_++, .ranks = ranks, .rank = rank});
  if (thread_.joinable()) return;
  const transport::BlockedSignals blocked;
  thread_ = std::thread([this, mine = ++generation_] { run(mine); });
}

void Observer::remove(tributary_comm* comm) {
  std::thread ended;
  {
    const std::lock_guard lock(mutex_);
    const auto at = groups_.find(comm);
    if (at == groups_.end()) return;
    Group& group = at->second;
    const int group_number = group.number;
    look(comm, group);
    const tributary_info& total = group.last;
    info(name(group.number, group.ranks, group.rank) + " ends: operations " + std::to_string(total.operations) +
         ", bytes in-network " + std::to_string(total.bytes_in_network) + ", bytes fallback " +
         std::to_string(total.bytes_fallback) + ", bytes local " + std::to_string(total.bytes_local) + ", failovers " +
         std::to_string(total.failovers) + ", returns " + std::to_string(total.returns) + ", longest pause " +
         milliseconds(total.longest_pause_us));
    sum_up(ended_, total);
    groups_.erase(at);
    write_metrics();
    if (!groups_.empty()) return;
    TRIBUTARY_ASSERT(thread_.joinable(), "group {} was observed by no thread", group_number);
    ++generation_;
    ended = std::move(thread_);
  }
  changed_.notify_all();
  ended.join();
}

void Observer::run(int generation) {
  std::unique_lock lock(mutex_);
  while (generation == generation_) {
    for (auto& [comm, group] : groups_) look(comm, group);
    write_metrics();
    changed_.wait_for(lock, kInterval, [&] { return generation != generation_; });
  }
}

void Observer::look(tributary_comm* comm, Group& group) {
  tributary_info now;
  if (!ask(comm, now)) return;  // the group has ended, and its operations have reported the reason
  ++group.looks;
  const tributary_info& before = group.last;
  const std::string who = name(group.number, group.ranks, group.rank);
  if (now.failovers > before.failovers) {
    warn(who + " lost its tree; the ranks have finished the calls under way without it, and nothing is lost: " +
         "failovers " + std::to_string(now.failovers) + ", pause " + milliseconds(now.last_pause_us) + "; " +
         now.reason);
  }
  if (now.returns > before.returns && group.said_how) info(who + " is back on a tree: " + now.reason);
  if (!group.said_how && now.path == TRIBUTARY_PATH_IN_NETWORK) {
    group.said_how = true;
    info(who + " sums in the network: lanes " + std::to_string(now.lanes) + ", tree depth " +
         std::to_string(now.levels) + ", window " + std::to_string(now.window) + " x " +
         std::to_string(now.segment_bytes) + " bytes");
  } else if (!group.said_how && now.path == TRIBUTARY_PATH_LOCAL) {
    group.said_how = true;
    info(who + " sums in shared memory: " + now.reason);
  } else if (!group.said_how && group.looks >= kLooksUntilFallbackIsSaid) {
    group.said_how = true;
    warn(who + " has no tree, and sums between the ranks until it gets one: " + now.reason);
  }
  group.last = now;
}

/// Writes a Prometheus text file. Readers see either the whole old file or the whole new file.
void Observer::write_metrics() const {
  const std::string& path = settings().metrics_file;
  if (path.empty()) return;
  tributary_info total = ended_;
  std::size_t in_network = 0;
  for (const auto& [comm, group] : groups_) {
    sum_up(total, group.last);
    in_network += group.last.path == TRIBUTARY_PATH_IN_NETWORK ? 1 : 0;
  }
  const std::string draft = path + ".new";
  {
    std::ofstream file(draft, std::ios::trunc);
    // Every process of a host needs series of its own, because a collector may join the files of several processes.
    const std::string process = "pid=\"" + std::to_string(::getpid()) + '"';
    const auto counter = [&](const char* metric, std::uint64_t value) {
      file << "# TYPE " << metric << " counter\n" << metric << '{' << process << "} " << value << '\n';
    };
    counter("tributary_nccl_operations_total", total.operations);
    counter("tributary_nccl_in_network_bytes_total", total.bytes_in_network);
    counter("tributary_nccl_fallback_bytes_total", total.bytes_fallback);
    counter("tributary_nccl_local_bytes_total", total.bytes_local);
    counter("tributary_nccl_failovers_total", total.failovers);
    counter("tributary_nccl_returns_total", total.returns);
    file << "# TYPE tributary_nccl_groups gauge\n"
         << "tributary_nccl_groups{" << process << ",path=\"in-network\"} " << in_network << '\n'
         << "tributary_nccl_groups{" << process << ",path=\"fallback\"} " << groups_.size() - in_network << '\n';
  }
  std::error_code ignored;  // ignored: a full or missing folder must not disturb the job
  std::filesystem::rename(draft, path, ignored);
}

}  // namespace tributary::nccl
