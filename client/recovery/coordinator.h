#pragma once
// Rank 0's part in a communicator's life. It gets trees from the manager, moves all ranks to them at one agreed
// operation, and moves them to the fallback when a tree is lost. When an operation does not end, it finds out which
// rank is at fault. A pure state machine: messages and time go in, messages come out.
//
//   resting --descriptor--> joining --all joined--> proposing --all answered--> in_network
//      ^  ^                    |                       |                            |
//      |  +------ commit(never): some lane failed -----+                            | lane_failed
//      +--------- recover: all holdings have come ------------ freezing <-----------+
//                                                                  ^  better trees are there
//
// In state in_network, rank 0 may amend the policy. The ranks answer `amend` as they answer `propose`, and `amended`
// says from which operation on the change holds: 2^64-1 (never) if some rank does not use the trees yet. If the trees
// are lost before `amended`, the policy does not change.
//
// In state in_network, each renewal of the lease tells rank 0 the rates of its trees beside other groups. Rank 0 calls
// rates_changed if they have changed. It asks for better trees when the manager has some (an aggregator is back), and
// uses the present trees until it gets them. It pauses between two moves. A move gives up the present trees on purpose:
// freezing, recover, and then joining at once. If a rank says that it cannot join any tree again, rank 0 stays in state
// resting.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/control/control_message.h"
#include "client/recovery/group_service.h"
#include "client/recovery/late_inquiry.h"
#include "client/recovery/lost_aggregators.h"
#include "client/recovery/own_absence.h"
#include "client/recovery/roll_call.h"
#include "tributary/protocol/sum_form.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

struct CoordinatorSettings {
  std::uint32_t nranks = 1;
  std::vector<std::string> hosts;                  // by rank: place in the topology
  FormSenders form_senders = FormSenders::nobody;  // the processes of the trees that send forms of exact sums
  std::uint64_t link_rate = 0;                     // rate of the slowest rank's link, in bits per second; 0: not known
  std::string rail{};  // rail on which all ranks have their device; empty: none, or different rails
  std::string job;
  std::string user{};           // user of the ranks' processes
  std::string priority{};       // class of the trees; empty: normal
  std::uint32_t processes = 0;  // number of ranks that the members represent, with themselves; 0: only themselves
  std::uint32_t lanes = 1;
  PacketSecurity packet_security = PacketSecurity::off;
  ExchangePublicKey exchange_key{};       // key exchange of the GroupRequest
  bool use_trees = false;                 // a manager is configured and the path is not "fallback"
  std::string why_not;                    // the reason if use_trees is false, for people
  std::uint64_t first_commit = 0;         // kCommit... if the ranks need no tree from this coordinator; else 0
  std::vector<std::uint32_t> known_as{};  // as in CommunicatorSettings
  /// Returns the text of the policy for the time in which these trees are in use. An empty text, or no function: the
  /// welcome's policy holds.
  std::function<std::string(const GroupDescriptor&)> tuning_of{};
  /// Gets the new rates of the trees in use when other groups have come or gone; no function: rates are ignored.
  std::function<void(const PathRates&)> rates_changed{};
  /// Returns the counts of the group's traffic, for the manager's listings; no function: all counts are zero.
  std::function<GroupTraffic()> traffic{};
  struct Waiting {
    bool by_trees = false;  // trees carry the operation, so aggregators see who is late
    LateInquiry::Wait wait{};
  };
  /// Returns the operation in which rank 0 waits; nullopt: it waits in none. While it waits, rank 0 asks who is late:
  /// the manager if trees carry the operation, else all ranks. No function: rank 0 asks nobody.
  std::function<std::optional<Waiting>()> waits{};
  /// Returns the ranks that see this rank's process; no function: none does.
  std::function<std::vector<std::uint32_t>(std::uint32_t)> witnesses{};
  /// Gets a line about a late rank, as LateLog::Tell.
  LateLog::Tell tell_late{};
  transport::Duration join_limit = std::chrono::seconds(10);
  transport::Duration answer_limit = std::chrono::seconds(10);  // limit of the manager's answer
  // The time from the loss of trees to the request to the manager: more ranks can report lost aggregators meanwhile.
  transport::Duration ask_after_loss = std::chrono::milliseconds(20);
  transport::Duration retry_first = std::chrono::milliseconds(200);
  transport::Duration retry_last = std::chrono::seconds(5);
  /// The time after which ranks begin without trees; Duration::max(): they wait for trees until the limits above.
  transport::Duration begin_within = std::chrono::milliseconds(500);
  bool may_move = true;        // rank 0 may ask for better trees
  bool require_trees = false;  // the ranks do not begin before they have trees
  // Limits of the pause between two moves. It doubles with each move, so that the group does not move again and again
  // because of an aggregator that comes and goes.
  transport::Duration move_pause_first = std::chrono::seconds(10);
  transport::Duration move_pause_last = std::chrono::minutes(10);
  transport::Duration inquiry_limit = std::chrono::seconds(1);
  transport::Duration finalize_limit = std::chrono::seconds(300);  // from the first finalize to the last rank's call
  transport::Duration timeout = std::chrono::seconds(300);         // time-out of operations, for error texts
  transport::Duration away{};  // how long this process was away while the ranks met, before this coordinator existed
};

class CoordinatorOutput {
 public:
  virtual ~CoordinatorOutput() = default;
  /// Sends a message to every rank, including this rank.
  virtual void broadcast(const ControlMessage& message) = 0;
  virtual void send(std::uint32_t rank, const ControlMessage& message) = 0;
};

class Coordinator {
 public:
  Coordinator(CoordinatorOutput& output, GroupService* service, CoordinatorSettings settings);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  ~Coordinator();

  /// Starts the coordinator; call it when all ranks have met. The first commit then lets the ranks begin.
  void start(transport::TimePoint now);
  void on_message(std::uint32_t rank, const ControlMessage& message, transport::TimePoint now);
  void on_rank_gone(std::uint32_t rank, const std::string& why);
  /// Makes all ranks use `amendment`, a text, from one agreed operation on; until they agree, they start no operation.
  /// Returns false, and does nothing, if no trees are in use or the ranks have not agreed on an earlier amendment yet.
  bool amend(std::string amendment);
  void tick(transport::TimePoint now);
  /// Extends the limits by `absence`: this process was away until now, and could receive no message meanwhile.
  void excuse(transport::Duration absence, transport::TimePoint now);
  /// Returns the ranks that have not answered rank 0 yet, for people; empty while no answer is due.
  [[nodiscard]] std::string unanswered() const;
  struct Search {
    bool under_way = false;    // rank 0 waits for an answer that may bring trees, of the manager or of a rank
    bool hopeless = false;     // rank 0 asks for no trees: a rank can never join trees, or the manager denies them
    std::string why_not = {};  // reason in the last answer; empty if there are trees, or no answer has come
  };
  /// Returns the state of the search for trees.
  [[nodiscard]] Search search() const {
    const bool ends = state_ == State::resting || state_ == State::in_network || state_ == State::stopped;
    return {!ends, search_.hopeless, search_.why_not};
  }
  /// Gives the group back to the manager, because the communicator ends.
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
  bool initial_ = true;  // rank 0 has sent no commit yet
  Search search_;
  transport::TimePoint now_{};
  transport::TimePoint deadline_ = transport::TimePoint::max();
  transport::TimePoint begin_at_ = transport::TimePoint::max();  // if initial_: time to begin without trees
  transport::TimePoint retry_at_ = transport::TimePoint::max();
  struct Renewals {
    transport::TimePoint next = transport::TimePoint::max();
    transport::TimePoint last{};
    bool under_way = false;  // the manager has not answered the last renewal
    LateLog late;
    /// Returns true if it is time for the next renewal. `waits`: the ranks may wait for a late rank.
    [[nodiscard]] bool due(transport::TimePoint now, bool waits);
    std::optional<transport::TimePoint> waited{};  // the last time when the ranks waited
  };
  Renewals renewals_;
  LateInquiry late_inquiry_;
  transport::Duration retry_delay_;
  transport::TimePoint may_move_at_{};  // the earliest time to ask for better trees
  transport::Duration move_pause_;
  std::optional<GroupDescriptor> better_;  // better trees, which replace the frozen trees
  std::uint64_t group_ = 0;                // number of the group at the manager; 0: no group
  std::uint32_t epoch_ = 0;                // the manager's epoch in the last descriptor
  std::uint64_t attempt_ = 0;              // number in the last GroupRequest
  std::uint32_t generation_ = 0;           // number of the last descriptor, over all groups; the epoch of messages
  std::uint32_t lease_seconds_ = 0;
  struct Terms {
    std::string tuning{};  // the policy's text for the trees that are forming
    PathRates rates{};     // the trees' rates in the manager's last answer that had rates
  };
  Terms terms_;
  LostAggregators lost_;
  OwnAbsence own_absence_;
  RollCall answers_;
  std::uint64_t next_operation_ = 0;
  std::optional<std::string> amendment_;  // the amendment about which the ranks have not answered yet
  std::vector<Holdings> holdings_;
  std::uint64_t begun_ = 0;  // no rank has begun this operation or a later one on the frozen trees
  RollCall finalized_;
  transport::TimePoint finalize_deadline_ = transport::TimePoint::max();
  bool finalize_asked_ = false;  // rank 0 has asked the ranks in which operation they wait
  struct Inquiry {
    std::optional<std::uint64_t> operation{};  // the operation that does not end; nullopt: no inquiry is under way
    bool suspicion = false;     // asked before the time-out: only a hanging tree or a mismatch has consequences
    bool disagreement = false;  // asked because of a mismatch: only a mismatch has consequences
    std::uint32_t rank = 0;     // the rank that waits
    std::string text{};         // the event for which it waits
    transport::TimePoint decide_at{};
    std::vector<std::optional<Progress>> progress{};  // by rank
  };
  Inquiry inquiry_;
  std::vector<bool> silent_;     // by rank: true if the rank has not answered since the last inquiry
  std::shared_ptr<bool> alive_;  // false once this object is gone; late answers of the service check it
};

}  // namespace tributary::client
