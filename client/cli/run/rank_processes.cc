#include "client/cli/run/rank_processes.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "client/cli/terminal/exit_code.h"
#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kNever = steady_clock::time_point::max();

}  // namespace

RankProcesses::RankProcesses(RankProcessesSettings settings, const SignalQueue& signals, const Guardian& guardian)
    : settings_(std::move(settings)), signals_(signals), guardian_(guardian), ranks_(settings_.ranks) {}

Result<int> RankProcesses::run() {
  for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) {
    if (auto ok = start(rank); !ok) return std::unexpected(ok.error());  // an error kills the ranks that run already
  }
  const auto has_output = [](const Rank& rank) {
    return std::any_of(rank.outputs.begin(), rank.outputs.end(), [](const auto& o) { return o->read_end() >= 0; });
  };
  // Wait for output only for a limited time: a process that a rank has left behind may never close its output.
  while (running_ > 0 ||
         (steady_clock::now() < output_until_ && std::any_of(ranks_.begin(), ranks_.end(), has_output))) {
    wait_for_something();
    read_outputs();
    take_signals();
    look_at_ranks();
    escalate();
  }
  return code_.value_or(0);
}

Status RankProcesses::start(std::uint32_t index) {
  Rank& rank = ranks_[index];
  TRIBUTARY_ASSERT(!rank.process && rank.outputs.empty(), "rank {} is started twice", index);
  SpawnRequest request{
      .arguments = settings_.command, .environment = settings_.environment(index), .guardian = &guardian_};
  if (settings_.host) request.host = settings_.host(index);
  if (settings_.prefix || settings_.ranks > 1) {
    const std::string prefix = settings_.prefix ? "[" + std::to_string(index) + "] " : "";
    for (const int destination : {settings_.output, settings_.error}) {
      auto output = RankOutput::open(prefix, destination);
      if (!output) return std::unexpected(output.error());
      rank.outputs.push_back(std::make_unique<RankOutput>(std::move(*output)));
    }
    TRIBUTARY_ASSERT(rank.outputs.size() == 2, "rank {} has {} outputs", index, rank.outputs.size());
    request.output = rank.outputs[0]->write_end();
    request.error = rank.outputs[1]->write_end();
  }
  auto process = ChildProcess::spawn(request);
  if (!process) return std::unexpected(process.error());
  rank.process = std::make_unique<ChildProcess>(std::move(*process));
  for (const auto& output : rank.outputs) output->close_write_end();
  ++running_;
  TRIBUTARY_ASSERT(running_ <= settings_.ranks, "{} of {} ranks run", running_, settings_.ranks);
  return {};
}

void RankProcesses::wait_for_something() {
  std::vector<pollfd> list{{signals_.descriptor(), POLLIN, 0}};
  for (const Rank& rank : ranks_) {
    for (const auto& output : rank.outputs) {
      if (output->read_end() >= 0) list.push_back({output->read_end(), POLLIN, 0});
    }
  }
  const auto until = std::min({terminate_at_, kill_at_, output_until_});
  int timeout = -1;
  if (until != kNever) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
    timeout = static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
  }
  static_cast<void>(poll(list.data(), list.size(), timeout));
}

void RankProcesses::read_outputs() {
  for (const Rank& rank : ranks_) {
    for (const auto& output : rank.outputs) {
      if (!output->forward()) stop_by(SIGPIPE);
    }
  }
}

void RankProcesses::take_signals() {
  bool child_ended = false;
  while (const auto number = signals_.take()) {
    if (*number == SIGCHLD) {
      child_ended = true;
      continue;
    }
    ++stop_signals_;
    stop_by(*number);
    if (stop_signals_ > 1) kill_at_ = steady_clock::now();  // the user has pressed the key again: kill at once
  }
  if (child_ended && settings_.on_child_ended) settings_.on_child_ended();
}

void RankProcesses::look_at_ranks() {
  // A look ends with a pass that finds no more ended ranks. So if a rank ended because another rank had been killed,
  // the look also has the killed rank, and notes it first.
  std::vector<std::uint32_t> ended;
  for (auto more = find_ended_ranks(); !more.empty(); more = find_ended_ranks())
    ended.insert(ended.end(), more.begin(), more.end());
  const auto status_of = [this](std::uint32_t index) { return *ranks_[index].process->status(); };
  std::stable_partition(ended.begin(), ended.end(), [&](std::uint32_t index) { return status_of(index).signal != 0; });
  for (const std::uint32_t index : ended) {
    if (!status_of(index).good()) note_failure(index, status_of(index));
  }
  if (!ended.empty() && running_ == 0) output_until_ = steady_clock::now() + settings_.grace;
}

std::vector<std::uint32_t> RankProcesses::find_ended_ranks() {
  std::vector<std::uint32_t> ended;
  for (std::uint32_t index = 0; index < settings_.ranks; ++index) {
    ChildProcess& process = *ranks_[index].process;
    if (process.status() || !process.poll()) continue;
    guardian_.forget(process.pid());
    TRIBUTARY_ASSERT(running_ > 0, "rank {} has ended, and none was running", index);
    --running_;
    ended.push_back(index);
  }
  return ended;
}

void RankProcesses::note_failure(std::uint32_t index, const ExitStatus& status) {
  const bool is_cause = status.shell_code() != kExitOtherRank && !(signalled_ && status.signal != 0);
  if (code_is_final_ || (code_ && !is_cause)) return;
  spdlog::error("rank {} {}", index, to_string(status));
  if (!code_) stop_in(settings_.grace);
  code_ = status.shell_code();
  code_is_final_ = is_cause;
}

void RankProcesses::stop_by(int number) {
  if (!code_is_final_) code_ = 128 + number;
  code_is_final_ = true;
  stop_in(milliseconds(0));
}

void RankProcesses::stop_in(milliseconds from_now) {
  terminate_at_ = std::min(terminate_at_, steady_clock::now() + from_now);
}

void RankProcesses::escalate() {
  const auto now = steady_clock::now();
  if (running_ == 0) return;
  if (now >= terminate_at_) {
    terminate_at_ = kNever;
    kill_at_ = std::min(kill_at_, now + settings_.grace);
    signal_all(SIGTERM);
  }
  if (now >= kill_at_) {
    kill_at_ = kNever;
    signal_all(SIGKILL);
  }
}

void RankProcesses::signal_all(int number) {
  signalled_ = true;
  for (const Rank& rank : ranks_) {
    if (rank.process) rank.process->signal(number);
  }
}

}  // namespace tributary::cli
