#include "tests/system/chaos/rank_fleet.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "client/cli/cluster/machine.h"
#include "client/cli/free_port/free_port.h"

namespace tributary::chaos {
namespace {

using std::chrono::ceil;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kRoundsRemembered = 4096;  // ranks meet in every round, so no rank is that far behind another

RoundReport parse_round(std::istringstream& in) {
  RoundReport report;
  in >> report.number >> report.end_us >> report.gap_us;
  GroupReport group;
  for (std::string path; in >> group.name >> path >> group.epoch >> group.failovers >> group.returns >>
                         group.longest_pause_us >> std::hex >> group.digest >> std::dec;) {
    group.in_network = path == "in-network";
    report.groups.push_back(group);
  }
  return report;
}

}  // namespace

std::uint64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

Result<std::unique_ptr<RankFleet>> RankFleet::start(FleetSettings settings) {
  std::unique_ptr<RankFleet> fleet(new RankFleet(std::move(settings)));
  const auto port = cli::free_port();
  if (!port) return std::unexpected(port.error());
  for (std::uint32_t index = 0; index < fleet->settings_.ranks; ++index) {
    if (auto ok = fleet->start_rank(index, *port); !ok) return std::unexpected(ok.error());
  }
  return fleet;
}

RankFleet::~RankFleet() {
  for (RankState& rank : ranks_) {
    if (rank.output >= 0) close(rank.output);
  }
}

std::string RankFleet::log_of(std::size_t index) const {
  return settings_.folder + "/rank-" + std::to_string(index) + ".log";
}

Status RankFleet::start_rank(std::uint32_t index, std::uint16_t port) {
  cli::Environment environment = cli::current_environment();
  environment["TRIBUTARY_TUNING"] = "off";  // these tests are about trees, so every operation must use them
  for (const auto& [name, value] : settings_.environment) environment[name] = value;
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(index);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(settings_.ranks);
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = std::to_string(port);
  if (!settings_.environment.contains("TRIBUTARY_MANAGER")) environment.erase("TRIBUTARY_MANAGER");
  if (settings_.cluster != nullptr) settings_.cluster->add_to(environment, index);
  if (index < settings_.host_ids.size()) environment["TRIBUTARY_HOST_ID"] = settings_.host_ids[index];
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(Errc::io, std::string("no pipe: ") + std::strerror(errno));
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  const int log = open(log_of(index).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  auto process = cli::ChildProcess::spawn({settings_.command, std::move(environment), ends[1], log});
  close(ends[1]);
  if (log >= 0) close(log);
  ranks_[index].output = ends[0];
  ranks_[index].heard_us = now_us();
  if (!process) return std::unexpected(process.error());
  ranks_[index].process = std::make_unique<cli::ChildProcess>(std::move(*process));
  return {};
}

void RankFleet::listen(milliseconds time, const std::function<bool()>& stop) {
  auto deadline = steady_clock::now() + time;
  absences_.begin(steady_clock::now());
  do {
    if (stop && stop()) return;
    std::vector<pollfd> list;
    for (const RankState& rank : ranks_) list.push_back({rank.output, POLLIN, 0});  // poll() ignores -1
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    poll(list.data(), list.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 50)));
    // If this process was stopped together with the ranks, it must not report the ranks as silent.
    const auto absence = absences_.look(steady_clock::now());
    deadline += absence;
    for (RankState& rank : ranks_) rank.heard_us += static_cast<std::uint64_t>(ceil<microseconds>(absence).count());
    for (std::size_t index = 0; index < ranks_.size(); ++index) {
      if (list[index].revents != 0) read_from(index);
    }
  } while (steady_clock::now() < deadline);
}

void RankFleet::read_from(std::size_t index) {
  RankState& rank = ranks_[index];
  std::array<char, 16384> buffer;
  const ssize_t got = read(rank.output, buffer.data(), buffer.size());
  if (got == 0) {
    close(std::exchange(rank.output, -1));
    return;
  }
  if (got < 0) return;
  rank.pending.append(buffer.data(), static_cast<std::size_t>(got));
  rank.heard_us = now_us();
  for (std::size_t end; (end = rank.pending.find('\n')) != std::string::npos; rank.pending.erase(0, end + 1))
    take_line(index, rank.pending.substr(0, end));
}

void RankFleet::take_line(std::size_t index, const std::string& line) {
  RankState& rank = ranks_[index];
  std::istringstream in(line);
  std::string word;
  in >> word;
  if (word == "round") {
    rank.last = parse_round(in);
    compare(index, rank.last);
    if (on_round) on_round(index, rank.last);
  } else if (word == "ready") {
    rank.ready = true;
  } else if (word == "done") {
    rank.done = true;
    in >> rank.operations >> rank.bytes_in_network >> rank.bytes_fallback;
  } else {
    rank.trouble = line;
  }
}

void RankFleet::compare(std::size_t index, const RoundReport& report) {
  for (const GroupReport& group : report.groups) {
    const auto [at, is_new] = digests_.emplace(std::pair(group.name, report.number), group.digest);
    if (!is_new && at->second != group.digest && disagreement_.empty()) {
      disagreement_ = "rank " + std::to_string(index) + " has other bits than another rank of group " + group.name +
                      " after round " + std::to_string(report.number);
    }
  }
  while (digests_.size() > 8 * kRoundsRemembered) digests_.clear();
}

bool RankFleet::all_ready() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) { return rank.ready; });
}

bool RankFleet::all_ended() {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](RankState& rank) { return rank.output < 0 && rank.process->poll().has_value(); });
}

bool RankFleet::all_in_network() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) {
    return !rank.last.groups.empty() && std::all_of(rank.last.groups.begin(), rank.last.groups.end(),
                                                    [](const GroupReport& group) { return group.in_network; });
  });
}

std::string RankFleet::trouble(milliseconds silence_max) {
  std::string text = disagreement_;
  const std::uint64_t now = now_us();
  for (std::size_t index = 0; index < ranks_.size(); ++index) {
    RankState& rank = ranks_[index];
    std::string what = rank.trouble;
    const bool silent = now - rank.heard_us > static_cast<std::uint64_t>(silence_max.count()) * 1000;
    if (what.empty() && silent && !rank.done) {
      what = "silent for " + std::to_string((now - rank.heard_us) / 1'000'000) + " s, after round " +
             std::to_string(rank.last.number);
    }
    if (what.empty() && rank.process->poll() && !rank.process->status()->good())
      what = to_string(*rank.process->status());
    if (!what.empty())
      text += (text.empty() ? "" : "\n") + ("rank " + std::to_string(index) + ": " + what) + "\n" +
              cli::tail_of(log_of(index), 12);
  }
  return text;
}

}  // namespace tributary::chaos
