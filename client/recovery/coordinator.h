#pragma once
// Rank 0's part in a communicator's life: it gets trees from the manager, moves all ranks onto them at one agreed
// operation, takes them off when a tree is lost, and finds out who is missing when an operation does not end. A pure
// state machine: messages and time in, messages out.
//
//   resting --descriptor--> joining --all joined--> proposing --all answered--> in_network
//      ^  ^                    |                       |                            |
//      |  +------ commit(never): some lane failed -----+                            | lane_failed
//      +--------- recover: all holdings are here ------------- freezing <-----------+
//                                                                  ^  better trees are there
//
// In the network it asks for better trees when the manager has some (an aggregator is back), at most now and then, and
// goes on with the present ones meanwhile. Moving is losing the present ones on purpose: freezing, recover, and then
// joining at once.
// Where a rank says that it can join no tree any more, resting is for good.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/control/control_message.h"
#include "client/recovery/group_service.h"
#include "client/recovery/lost_aggregators.h"
#include "client/recovery/own_absence.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

struct CoordinatorSettings {
  std::uint32_t nranks = 1;
  std::vector<std::string> hosts;  // by rank
  std::string job;
  std::uint32_t lanes = 1;
  PacketSecurity packet_security = PacketSecurity::off;
  ExchangePublicKey exchange_key{};       // GroupRequest's
  bool use_trees = false;                 // a manager is configured and the path is not "fallback"
  std::string why_not;                    // else the reason, for people
  std::uint64_t first_commit = 0;         // kCommit...: what says that the ranks need no tree of these
  std::vector<std::uint32_t> known_as{};  // CommunicatorSettings'
  transport::Duration join_limit = std::chrono::seconds(10);
  transport::Duration answer_limit = std::chrono::seconds(10);         // of the manager
  transport::Duration ask_after_loss = std::chrono::milliseconds(20);  // more ranks may tell who was lost meanwhile
  transport::Duration retry_first = std::chrono::milliseconds(200);
  transport::Duration retry_last = std::chrono::seconds(5);
  /// The ranks begin without trees if they have none by then; Duration::max(): they wait for the limits above.
  transport::Duration begin_within = std::chrono::milliseconds(500);
  bool may_move = true;  // to better trees
  // Twice as long after each time, so that an aggregator that comes and goes does not take the group along for ever.
  transport::Duration move_pause_first = std::chrono::seconds(10);
  transport::Duration move_pause_last = std::chrono::minutes(10);
  transport::Duration inquiry_limit = std::chrono::seconds(1);
  transport::Duration finalize_limit = std::chrono::seconds(300);  // from the first rank that finalizes to the last
  transport::Duration timeout = std::chrono::seconds(300);         // of operations, for people
};

class CoordinatorOutput {
 public:
  virtual ~CoordinatorOutput() = default;
  /// To every rank, this one included.
  virtual void broadcast(const ControlMessage& message) = 0;
  virtual void send(std::uint32_t rank, const ControlMessage& message) = 0;
};

class Coordinator {
 public:
  Coordinator(CoordinatorOutput& output, GroupService* service, CoordinatorSettings settings);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();

  /// All ranks have met. The first commit that follows lets them begin.
  void start(transport::TimePoint now);
  void on_message(std::uint32_t rank, const ControlMessage& message, transport::TimePoint now);
  void on_rank_gone(std::uint32_t rank, const std::string& why);
  void tick(transport::TimePoint now);
  /// So long was this process away until now: what it waits for could not come.
  void excuse(transport::Duration absence, transport::TimePoint now);
  /// For people: the ranks that have not answered rank 0 yet; empty while none is asked.
  [[nodiscard]] std::string unanswered() const;
  /// The communicator ends: gives the group back.
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
  void give_up_trees();
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
  /// Counts one answer per rank; true when all are in.
  bool count(std::uint32_t rank);
  void expect_answers();
  [[nodiscard]] std::string rank_name(std::uint32_t rank) const;

  CoordinatorOutput& output_;
  GroupService* service_;
  const CoordinatorSettings settings_;
  State state_ = State::resting;
  bool initial_ = true;    // no commit was sent yet
  bool hopeless_ = false;  // a rank cannot join trees any more: none are asked for
  transport::TimePoint now_{};
  transport::TimePoint deadline_ = transport::TimePoint::max();
  transport::TimePoint begin_at_ = transport::TimePoint::max();  // while initial_
  transport::TimePoint retry_at_ = transport::TimePoint::max();
  transport::TimePoint renew_at_ = transport::TimePoint::max();
  transport::Duration retry_delay_;
  transport::TimePoint may_move_at_{};  // not before: better trees are asked for
  transport::Duration move_pause_;
  std::optional<GroupDescriptor> better_;  // the trees that the present ones are frozen for
  std::uint64_t group_ = 0;                // 0: none
  std::uint32_t epoch_ = 0;                // the manager's, of the last descriptor
  std::uint64_t attempt_ = 0;              // GroupRequest's
  std::uint32_t generation_ =
      0;  // ours: counts descriptors, whichever group they are of; what control messages carry as epoch
  std::uint32_t lease_seconds_ = 0;
  LostAggregators lost_;
  OwnAbsence own_absence_;
  std::vector<bool> answered_;
  std::uint32_t answers_ = 0;
  std::uint64_t next_operation_ = 0;
  std::vector<Holdings> holdings_;
  std::vector<bool> finalized_;
  std::uint32_t finalized_count_ = 0;
  transport::TimePoint finalize_deadline_ = transport::TimePoint::max();
  bool finalize_asked_ = false;  // who is missing there
  // an inquiry under way
  std::optional<std::uint64_t> stalled_operation_;
  bool suspicion_ = false;     // early: only a hanging tree or a mismatch is acted on
  bool disagreement_ = false;  // only a mismatch is acted on
  std::uint32_t stalled_rank_ = 0;
  std::string stalled_text_;
  transport::TimePoint decide_at_{};
  std::vector<std::optional<Progress>> progress_;
  std::vector<bool> silent_;     // did not answer an earlier inquiry, and has not answered since
  std::shared_ptr<bool> alive_;  // answers of the service that come too late find it false
};

}  // namespace tributary::client
