#pragma once
// One rank of one communicator. It is single-threaded, and driven by its transport and by tick(): on a thread of the C
// API, or in the simulator's virtual time. This class is the table of contents; each part has a file of its own:
//
//   life.h               the states from meeting to the end
//   membership.h         the ranks, and the star of connections to rank 0
//   welcome.h            rank 0's decisions for all ranks
//   operation_queue.h    the order of operations
//   operation_routes.h   the choice of each operation's path
//   operation_memory.h   the memory of operations
//   tree_life.h          trees: forming, in use, lost
//   rank_traffic.h       fallback, messages and repairs between the ranks
//   local_path.h         a communicator with all ranks on one host
//   host_path.h          a communicator with hosts as the lowest level
//   second_way_use.h     transports with a second way
//   stall_watch.h        operations that take too long, or differ between ranks
//   online_tuning.h      the quickest path, learned from the times that operations take
//   recovery/coordinator.h   rank 0's part
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/local/call_queue.h"
#include "client/communicator/host_path.h"
#include "client/communicator/local_path.h"
#include "client/communicator/membership.h"
#include "client/communicator/operation_routes.h"
#include "client/communicator/rank_traffic.h"
#include "client/communicator/second_way_use.h"
#include "client/communicator/settings.h"
#include "client/communicator/stall_watch.h"
#include "client/communicator/tree_life.h"
#include "client/communicator/welcome.h"
#include "client/recovery/coordinator.h"

namespace tributary::client {

class Communicator final : public transport::Acceptor,
                           private Whole,
                           private MembershipUser,
                           private RankTrafficUser,
                           private CoordinatorOutput {
 public:
  /// `service`: rank 0's way to the manager, or nullptr. `transport` and `service` must outlive the communicator.
  /// Rank 0 uses the listener of the unique id: the id's maker has opened it, and passes its connections to on_accept.
  ///
  /// A transport may have a second way (tributary/transport/second_way.h). Then the ranks talk to rank 0 over the
  /// second way, which also has the unique id's endpoint. They talk to each other and to aggregators over the first
  /// way. If the first way between two ranks fails, the second way takes over, and no operation fails. If the first way
  /// to an aggregator fails, the tree is lost.
  Communicator(transport::Transport& transport, GroupService* service, CommunicatorSettings settings);
  ~Communicator() override;

  /// Begins to meet the other ranks. Calls `on_ready` once, with success or with the error.
  void start(std::function<void(const Status&)> on_ready);
  /// Queues a collective, and sets its number and state. Calls `owned->on_done` once.
  void submit(std::unique_ptr<Operation> owned);
  /// Notes that more input of operations with StagedMemory has arrived.
  void staged_input_arrived();
  /// Prepares for operations with this memory. The error says why the operations would not go direct.
  [[nodiscard]] Status prepare_direct(DirectMemory& memory) { return memory_.prepare(memory); }
  void send_message(std::uint32_t peer, Message message);
  /// Receives a message from `source`; without `source`, from any rank.
  void receive_message(std::optional<std::uint32_t> source, Message message);
  /// Calls `on_done` when every rank has called finalize(), and every operation has ended on all ranks.
  void finalize(std::function<void(const Status&)> on_done);
  /// Ends every operation, on this rank and on all others.
  void abort(const std::string& reason) override;
  /// Call this at least a few times a second; more frequent calls make time-outs more exact.
  void tick(transport::TimePoint now);
  /// Does the work that no longer waits for other ranks of this host; call this before each wait for the transport.
  /// Returns how long the wait may be, at most `limit`.
  [[nodiscard]] transport::Duration attend(transport::TimePoint now, transport::Duration limit);

  [[nodiscard]] CommunicatorInfo info() const;
  /// Returns the objects that announce buffers to the other ranks of this host; empty if they share no memory.
  [[nodiscard]] std::vector<std::shared_ptr<local::Regions>> regions() const;
  [[nodiscard]] bool ready() const noexcept { return shared_.life.has_begun(); }
  /// Returns whether all ranks have introduced themselves.
  [[nodiscard]] bool has_met() const noexcept { return shared_.life.has_met(); }
  /// Returns the time at which a part of an operation last arrived.
  [[nodiscard]] transport::TimePoint progress_at() const noexcept { return operations_.progress_at(); }
  /// Returns, after on_ready, the object that takes all collectives in place of submit(), if all ranks share memory.
  [[nodiscard]] const std::shared_ptr<local::GroupCalls>& local() const noexcept { return local_.calls(); }
  /// Returns this rank's position on each lane of the trees in use, for checks of invariants.
  struct LanePosition {
    std::uint64_t group, prefix, contributed;
    std::uint32_t epoch, window;
  };
  [[nodiscard]] std::vector<LanePosition> lane_positions() const;
  /// Returns the error with which the communicator has ended; none if it has not failed.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return shared_.life.error(); }
  /// Returns, after an error Errc::mismatch, the operation that ranks called differently.
  [[nodiscard]] std::uint64_t disputed() const noexcept { return disputed_; }
  /// Returns whether no operation and no message is queued or running.
  [[nodiscard]] bool idle() const noexcept { return operations_.empty() && traffic_.messages().idle(); }
  /// Called on every change of path, with the line for the log. `unwanted`: the ranks use no tree, although no setting
  /// forbids trees.
  std::function<void(const std::string&, bool unwanted)> on_path_change;
  /// Called when connections of this rank begin to use the second way, with the line for the log. `device_gone`: all
  /// connections use it, because this rank's device of the first way is gone.
  std::function<void(const std::string&, bool device_gone)> on_second_way;
  /// Called on rank 0 with a line for the log about the rank for which the others wait. `late`: false if the line says
  /// that it is no longer late.
  std::function<void(const std::string&, bool late)> on_late;

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    return membership_.on_accept(std::move(channel));
  }

 private:
  // The meeting, and rank 0's messages (communicator_meeting.cc).
  void all_have_come() override;
  void on_welcome(const std::string& body);
  void have_met(tuning::Policy policy);
  void start_coordinator();
  void paths_are_known();
  void on_word_of_rank_0(const ControlMessage& message) override;
  void on_word_to_rank_0(std::uint32_t from, const ControlMessage& message) override;
  void on_rank_gone(std::uint32_t rank, const std::string& why) override;
  void on_commit(const ControlMessage& message);
  void take_leave();
  void tell_path_between();
  void check_meeting();
  [[nodiscard]] std::string missing_ranks() const;
  void broadcast(const ControlMessage& message) override { membership_.tell_all(message); }
  void send(std::uint32_t rank, const ControlMessage& message) override { membership_.tell(rank, message); }

  // Calls that the parts make on the communicator.
  void tell_rank_0(ControlMessage message) override { membership_.tell_rank_0(std::move(message)); }
  void tell(std::uint32_t rank, const ControlMessage& message) override { membership_.tell(rank, message); }
  void begin_failing(Error error) override;
  void path_changed(const std::string& line, bool unwanted) override;
  void look_at_clock() override { look_at_clock(shared_.transport.now()); }
  void look_at_clock(transport::TimePoint now);

  // Frames that arrive from other ranks.
  void operation_progress(PeerClass of) override {
    of == PeerClass::share ? operations_.touch_shares(shared_.clock.now()) : operations_.touch(shared_.clock.now());
  }
  void message_progress() override { stalls_.message_arrived(); }
  void message_moved() override { finalize_when_idle(); }
  void repair_received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload) override {
    trees_.repair_received(peer, receive, payload);
  }
  void repair_sent() override { trees_.repair_sent(); }
  void mismatch(std::uint32_t peer, const PostedReceive& expected, const FrameHeader& arrived) override {
    stalls_.on_mismatch(peer, expected, arrived);
  }

  // The end of the communicator.
  void finalize_when_idle();
  void fail_all(Error error);

  Shared shared_;
  GroupService* const service_;
  SecondWayUse second_way_;
  Membership membership_;
  OperationQueue operations_;
  TreeLife trees_;
  OperationMemory memory_;
  RankTraffic traffic_;
  StallWatch stalls_;
  HostPath hosts_;
  OperationRoutes routes_;
  std::unique_ptr<Coordinator> coordinator_;  // only on rank 0
  std::function<void(const Status&)> on_ready_;
  std::function<void(const Status&)> on_finalized_;
  transport::TimePoint ready_deadline_ = transport::TimePoint::max();
  std::optional<ControlMessage> waiting_commit_;  // the first commit, kept until this rank's meetings have ended
  std::uint64_t disputed_ = 0;
  LocalPath local_;  // last member: the end of its meeting may still post a call
};

}  // namespace tributary::client
