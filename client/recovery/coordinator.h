#pragma once
// Rank 0's part in a communicator's life: it gets trees from the manager, moves all ranks onto them at one agreed
// operation, takes them off when a tree is lost, and finds out which rank is missing when an operation does not end. A
// pure state machine: messages and time in, messages out.
//
//   resting --descriptor--> joining --all joined--> proposing --all answered--> in_network
//      ^  ^                    |                       |                            |
//      |  +------ commit(never): some lane failed -----+                            | lane_failed
//      +--------- recover: all holdings are here ------------- freezing <-----------+
//                                                                  ^  better trees are there
//
// While in_network, rank 0 may amend the policy: the ranks answer amend as they answer propose, and amended says from
// which operation on the new step holds, or 2^64-1 if some rank does not use the trees yet. If the trees are lost
// before that, the policy stays as it was.
//
// While in the network, rank 0 asks for better trees when the manager has some (an aggregator is back), and goes on
// with the present trees until it has them. It pauses between two moves. A move gives up the present trees on purpose:
// freezing, recover, and then joining at once. If a rank says that it can join no tree any more, rank 0 stays in
// resting for good.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/control/control_message.h"
#include "client/recovery/group_service.h"
#include "client/recovery/lost_aggregators.h"
#include "client/recovery/own_absence.h"
#include "client/recovery/roll_call.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

struct CoordinatorSettings {
  std::uint32_t nranks = 1;
  std::vector<std::string> hosts;  // by rank
  std::uint64_t link_rate = 0;     // rate of the slowest rank's link, in bits per second; 0: not known
  std::string job;
  std::string user{};           // user of the ranks' processes
  std::uint32_t processes = 0;  // ranks for which the members speak; 0: for themselves alone
  std::uint32_t lanes = 1;
  PacketSecurity packet_security = PacketSecurity::off;
  ExchangePublicKey exchange_key{};       // for the GroupRequest
  bool use_trees = false;                 // a manager is configured and the path is not "fallback"
  std::string why_not;                    // the reason if use_trees is false, for people
  std::uint64_t first_commit = 0;         // kCommit..., if the ranks need no tree from this coordinator; else 0
  std::vector<std::uint32_t> known_as{};  // as in CommunicatorSettings
  /// Returns the policy's text while these trees are in use; no text, or no function: the welcome's policy.
  std::function<std::string(const GroupDescriptor&)> tuning_of{};
  /// Returns what the group has done, for the manager's listings; no function: nothing is counted.
  std::function<GroupTraffic()> traffic{};
  transport::Duration join_limit = std::chrono::seconds(10);
  transport::Duration answer_limit = std::chrono::seconds(10);  // for the manager's answer
  // Lets more ranks report lost aggregators before the manager is asked.
  transport::Duration ask_after_loss = std::chrono::milliseconds(20);
  transport::Duration retry_first = std::chrono::milliseconds(200);
  transport::Duration retry_last = std::chrono::seconds(5);
  /// After this time, ranks without trees begin without them; Duration::max(): they wait for the limits above.
  transport::Duration begin_within = std::chrono::milliseconds(500);
  bool may_move = true;        // to better trees
  bool require_trees = false;  // the ranks do not begin before they have trees
  // The pause doubles with each move, so that an aggregator that comes and goes does not move the group again and
  // again.
  transport::Duration move_pause_first = std::chrono::seconds(10);
  transport::Duration move_pause_last = std::chrono::minutes(10);
  transport::Duration inquiry_limit = std::chrono::seconds(1);
  transport::Duration finalize_limit = std::chrono::seconds(300);  // from the first rank that finalizes to the last
  transport::Duration timeout = std::chrono::seconds(300);         // the time-out of operations, for error texts
};

class CoordinatorOutput {
 public:
  virtual ~CoordinatorOutput() = default;
  /// Sends to every rank, this one included.
  virtual void broadcast(const ControlMessage& message) = 0;
  virtual void send(std::uint32_t rank, const ControlMessage& message) = 0;
};

class Coordinator {
 public:
  Coordinator(CoordinatorOutput& output, GroupService* service, CoordinatorSettings settings);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();

  /// Begins when all ranks have met. The first commit after this lets the ranks begin.
  void start(transport::TimePoint now);
  void on_message(std::uint32_t rank, const ControlMessage& message, transport::TimePoint now);
  void on_rank_gone(std::uint32_t rank, const std::string& why);
  /// Lets all ranks take `amendment`, a text, from one agreed operation on; until it is agreed, they start none.
  /// Returns false, and does nothing, if no trees are in use or an earlier amendment is not agreed yet.
  bool amend(std::string amendment);
  void tick(transport::TimePoint now);
  /// Extends the limits by `absence`, for which this process was away until now: nothing could arrive meanwhile.
  void excuse(transport::Duration absence, transport::TimePoint now);
  /// Returns the ranks that have not answered rank 0 yet, for people; empty while no answer is due.
  [[nodiscard]] std::string unanswered() const;
  struct Search {
    bool under_way = false;    // an answer is due, of the manager or of the ranks, that may bring trees
    bool hopeless = false;     // a rank cannot join trees any more, or the manager denies them: none are asked for
    std::string why_not = {};  // by the last answer; empty while there are trees, or none was asked for yet
  };
  /// Returns how the search for trees stands.
  [[nodiscard]] Search search() const {
    const bool ends = state_ == State::resting || state_ == State::in_network || state_ == State::stopped;
    return {!ends, search_.hopeless, search_.why_not};
  }
  /// Gives the group back, as the communicator ends.
  void stop();

 private:
  enum class State : std::uint8_t { resting, asking, joining, proposing, in_network, freezing, stopped };

  void ask(transport::TimePoint now);
  void on_descriptor(Result<GroupDescriptor> answer);
  void take(const GroupDescriptor& descriptor);
  void join(const GroupDescriptor& descriptor);
  void give_place(std::uint32_t rank, const GroupDescriptor& part);
  void ask_for_better(const std::string& why);
  void on_better(std::uint32_t generation, const std::string& why, Result<GroupDescriptor> answer);
  void rest(const std::string& reason);
  void begin_without(std::uint32_t generation, const std::string& reason);
  void abandon(const std::string& reason);
  void on_joined(std::uint32_t rank, const ControlMessage& message);
  void on_next_operation(std::uint32_t rank, const ControlMessage& message);
  void on_lane_failed(const ControlMessage& message);
  void on_holdings(std::uint32_t rank, const ControlMessage& message);
  void on_stalled(std::uint32_t rank, const ControlMessage& message, transport::TimePoint now);
  void on_progress(std::uint32_t rank, const ControlMessage& message);
  void on_finalize(std::uint32_t rank);
  void check_finalize();
  [[nodiscard]] std::string not_finalized() const;
  void inquire(std::uint64_t operation, std::uint32_t rank, const std::string& waits_for);
  void decide();
  [[nodiscard]] bool heard_enough() const;
  [[nodiscard]] bool tree_hangs() const;
  void lose_tree(const std::string& reason, std::uint64_t how = 0);
  void abort(Errc code, const std::string& text, std::uint64_t operation = 0);
  void abort_as_gone(const std::string& text);
  void renew(transport::TimePoint now);

  CoordinatorOutput& output_;
  GroupService* service_;
  const CoordinatorSettings settings_;
  State state_ = State::resting;
  bool initial_ = true;  // no commit was sent yet
  Search search_;
  transport::TimePoint now_{};
  transport::TimePoint deadline_ = transport::TimePoint::max();
  transport::TimePoint begin_at_ = transport::TimePoint::max();  // while initial_
  transport::TimePoint retry_at_ = transport::TimePoint::max();
  transport::TimePoint renew_at_ = transport::TimePoint::max();
  transport::Duration retry_delay_;
  transport::TimePoint may_move_at_{};  // the earliest time to ask for better trees
  transport::Duration move_pause_;
  std::optional<GroupDescriptor> better_;  // the trees for which the present ones are frozen
  std::uint64_t group_ = 0;                // 0: none
  std::uint32_t epoch_ = 0;                // the manager's epoch in the last descriptor
  std::uint64_t attempt_ = 0;              // the number in the last GroupRequest
  std::uint32_t generation_ = 0;           // counts descriptors of all groups; control messages carry it as their epoch
  std::uint32_t lease_seconds_ = 0;
  std::string tuning_;  // the policy's text for the trees that are forming
  LostAggregators lost_;
  OwnAbsence own_absence_;
  RollCall answers_;
  std::uint64_t next_operation_ = 0;
  std::optional<std::string> amendment_;  // while the ranks say which operation is next
  std::vector<Holdings> holdings_;
  std::uint64_t begun_ = 0;  // no rank has begun this operation or a later one on the frozen trees
  RollCall finalized_;
  transport::TimePoint finalize_deadline_ = transport::TimePoint::max();
  bool finalize_asked_ = false;  // the ranks were asked which one is missing
  // an inquiry under way
  std::optional<std::uint64_t> stalled_operation_;
  bool suspicion_ = false;     // an early question: only a hanging tree or a mismatch is acted on
  bool disagreement_ = false;  // only a mismatch is acted on
  std::uint32_t stalled_rank_ = 0;
  std::string stalled_text_;
  transport::TimePoint decide_at_{};
  std::vector<std::optional<Progress>> progress_;
  std::vector<bool> silent_;     // did not answer an earlier inquiry, and has not answered since
  std::shared_ptr<bool> alive_;  // false for an answer of the service that comes too late
};

}  // namespace tributary::client
