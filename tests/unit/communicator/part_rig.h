#pragma once
// Tests one part of a communicator by itself, on a network of virtual time, with a recorder in place of the other
// parts.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "client/communicator/operation_queue.h"
#include "client/communicator/whole.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {

class RecordingWhole final : public Whole {
 public:
  void tell_rank_0(ControlMessage message) override { to_rank_0.push_back(std::move(message)); }
  void tell(std::uint32_t rank, const ControlMessage& message) override { told.emplace_back(rank, message); }
  void begin_failing(Error error) override { errors.push_back(std::move(error)); }
  void abort(const std::string& reason) override { errors.push_back({Errc::aborted, reason}); }
  void path_changed(const std::string& line, bool unwanted) override {
    lines.push_back(unwanted ? "unwanted: " + line : line);
  }
  void look_at_clock() override {}

  std::vector<ControlMessage> to_rank_0;
  std::vector<std::pair<std::uint32_t, ControlMessage>> told;
  std::vector<Error> errors;
  std::vector<std::string> lines;
};

class PartTest : public testing::Test {
 protected:
  static CommunicatorSettings settings_of(std::uint32_t rank, std::uint32_t nranks) {
    CommunicatorSettings settings;
    settings.rank = rank;
    settings.nranks = nranks;
    settings.host_id = "node-" + std::to_string(rank);
    settings.timeout = std::chrono::seconds(100);
    settings.id.root = {"rank-0", 7471};
    settings.neighbours = std::make_shared<Neighbours>();
    return settings;
  }
  explicit PartTest(std::uint32_t rank = 1, std::uint32_t nranks = 4)
      : shared_{.transport = network_.transport("rank-" + std::to_string(rank)),
                .settings = settings_of(rank, nranks),
                .whole = whole_} {}
  void begin() {
    shared_.life.meet();
    shared_.life.begin();
  }
  /// Lets `time` pass in steps of at most a second, as if the process ran all the time.
  void pass(transport::Duration time) {
    for (; time > transport::Duration::zero(); time -= std::chrono::milliseconds(500)) {
      now_ += std::min<transport::Duration>(time, std::chrono::milliseconds(500));
      (void)shared_.clock.look(now_);
    }
  }

  transport::SimNetwork network_;
  RecordingWhole whole_;
  Shared shared_;
  transport::TimePoint now_{std::chrono::hours(1)};
};

/// Stands in for the paths of operations: records which operations start, and ends none by itself.
class ManualWays final : public OperationWays {
 public:
  [[nodiscard]] bool may_begin() const override { return open; }
  [[nodiscard]] Route route_of(const Operation& o) const override {
    Route route;
    if (o.number < ways.size()) route.way = ways[o.number];
    if (o.number < split.size() && split[o.number]) route.cut = Cut{.segments = 1, .element = 8};
    return route;
  }
  void run_share(Operation& o) override {
    shares_run = true;
    shares.push_back(o.number);
  }
  [[nodiscard]] bool shares_busy() const override { return shares_run; }
  void settle_memory(Operation&) override {}
  void begin(Operation& o, const Route&) override { begun.push_back(o.number); }
  void run_remainder(Operation& o, std::span<const Piece> pieces) override {
    busy = true;
    remainders.emplace_back(o.number, pieces.size());
  }
  [[nodiscard]] bool fallback_busy() const override { return busy; }
  void account(const Operation&, Operation::State, bool) override {}
  void after_end() override { ++ends; }

  bool open = true, busy = false, shares_run = false;
  std::vector<Operation::State> ways;  // by the operation's number
  std::vector<bool> split;             // by the operation's number
  std::vector<std::uint64_t> shares;   // numbers of the operations whose ranks' share has begun
  std::vector<std::uint64_t> begun;
  std::vector<std::pair<std::uint64_t, std::size_t>> remainders;  // numbers of operations, and of their pieces
  int ends = 0;
};

/// Queues a sum of 16 numbers.
inline Operation& add_operation(
    OperationQueue& queue, transport::TimePoint now,
    std::function<void(const Status&)> on_done = [](const Status&) {}) {
  auto owned = std::make_unique<Operation>();
  Operation& o = *owned;
  o.number = queue.take_number();
  o.signature = {Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 16};
  o.called_at = now;
  o.on_done = std::move(on_done);
  queue.add(std::move(owned));
  return o;
}

}  // namespace tributary::client
