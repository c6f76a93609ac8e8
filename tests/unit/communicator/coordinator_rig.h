#pragma once
// A coordinator of three ranks. The rig records its output, the manager answers when the test says so, and the test
// owns the time. Each message and request is one line of text, so that a table can hold it.
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "client/recovery/coordinator.h"

namespace tributary::client {

inline constexpr std::uint32_t kRanks = 3;
inline constexpr std::uint64_t kGroup = 77;
inline constexpr std::uint64_t kLinkRate = 25'000'000'000;
/// The line for the coordinator's request for new trees after it has lost the first trees.
inline constexpr const char* kAsksAgain = "asks for trees of 77 after epoch 1 without aggregator1";

/// Records all messages and requests of a coordinator since the last take(), separated by "; ".
class Record {
 public:
  void add(const std::string& line) { text_ += (text_.empty() ? "" : "; ") + line; }
  [[nodiscard]] std::string take() { return std::exchange(text_, {}); }

 private:
  std::string text_;
};

class RecordingOutput final : public CoordinatorOutput {
 public:
  explicit RecordingOutput(Record& record) : record_(record) {}
  void broadcast(const ControlMessage& message) override;
  void send(std::uint32_t rank, const ControlMessage& message) override;
  ControlMessage last;  // the last message that the coordinator sent to all ranks
  std::vector<std::pair<std::uint32_t, ControlMessage>> sent;

 private:
  Record& record_;
};

/// Keeps each request until the test answers it.
class ManagerOnDemand final : public GroupService {
 public:
  explicit ManagerOnDemand(Record& record) : record_(record) {}
  void request(const GroupRequest& request, DescriptorAnswer answer) override;
  void places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
              PageAnswer answer) override;
  void rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed, bool in_use,
               DescriptorAnswer answer) override;
  void renew(std::uint64_t group, const GroupTraffic& traffic, std::function<void(Result<GroupLease>)> answer) override;
  void release(std::uint64_t group, const std::vector<std::string>& lost) override;

  std::deque<DescriptorAnswer> trees;  // requests and rebuilds without an answer
  std::deque<std::function<void(Result<GroupLease>)>> leases;
  std::deque<PageAnswer> pages;
  std::vector<std::uint64_t> attempts;  // attempt numbers of the requests
  std::uint64_t link_rate = 0;          // link rate in the last request
  std::string rail;                     // rail in the last request
  GroupTraffic traffic{};               // traffic in the last renewal
  std::vector<std::string> lost;        // lost aggregators in the last release

 private:
  Record& record_;
};

/// Trees of one lane for `ranks` ranks.
[[nodiscard]] GroupDescriptor descriptor_of(std::uint32_t epoch, std::uint32_t ranks = kRanks);

enum class At : std::uint8_t { resting, asking, joining, proposing, in_network, amending, freezing, stopped };
inline constexpr At kEveryState[] = {At::resting,    At::asking,   At::joining,  At::proposing,
                                     At::in_network, At::amending, At::freezing, At::stopped};
[[nodiscard]] const char* to_string(At state);

/// One coordinator, and the ways to bring it into the states that tests need.
class Rig {
 public:
  explicit Rig(CoordinatorSettings settings = usual());
  [[nodiscard]] static CoordinatorSettings usual();

  /// Brings the coordinator from the start into this state by the usual messages; `resting` is the rest after trees
  /// were lost. The record does not contain these messages.
  void bring_to(At state);
  void start() { coordinator.start(now); }
  /// Answers the manager's oldest unanswered request.
  void answer(Result<GroupDescriptor> answer);
  void answer_lease(Result<GroupLease> answer);
  void from(std::uint32_t rank, ControlMessage message) { coordinator.on_message(rank, message, now); }
  void from_all(const ControlMessage& message);
  /// Ticks every 10 ms until `time` has passed.
  void wait(transport::Duration time);
  /// Ticks once, after `time`, as after a pause of the process.
  void jump(transport::Duration time) { coordinator.tick(now += time); }
  [[nodiscard]] std::string said() { return record.take(); }

  // The next functions make messages of the present generation, or of another
  [[nodiscard]] ControlMessage joined(int stale = 0) const { return of(FrameType::joined, stale); }
  [[nodiscard]] ControlMessage not_joined(int stale = 0) const;
  [[nodiscard]] ControlMessage cannot_join(int stale = 0) const;
  [[nodiscard]] ControlMessage next_operation(std::uint64_t operation, int stale = 0) const;
  [[nodiscard]] ControlMessage lane_failed(int stale = 0, const std::string& aggregator = "aggregator1") const;
  [[nodiscard]] ControlMessage holdings(const Holdings& prefixes, int stale = 0) const;
  [[nodiscard]] static ControlMessage stalled(std::uint64_t operation, std::uint64_t kind = 0);
  [[nodiscard]] static ControlMessage progress(std::uint64_t operation, const Progress& progress);

  Record record;
  RecordingOutput output{record};
  ManagerOnDemand manager{record};
  transport::TimePoint now = transport::TimePoint(std::chrono::hours(1));
  std::uint32_t generation = 0;  // generation of the last descriptor that was sent to the ranks
  Coordinator coordinator;

 private:
  [[nodiscard]] ControlMessage of(FrameType type, int stale) const {
    return {.type = type, .epoch = generation + static_cast<std::uint32_t>(stale)};
  }
  void forward_generation();
};

}  // namespace tributary::client
