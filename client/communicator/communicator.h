#pragma once
// One rank of one communicator. It is single-threaded, and driven by its transport and by tick(): on a thread of the C
// API, or in the simulator's virtual time. This class is the table of contents; each part has a file of its own:
//
//   life.h               the states from meeting to the end
//   membership.h         who is here, and the star of connections to rank 0
//   welcome.h            what rank 0 decides for all
//   operation_queue.h    the order of operations
//   operation_routes.h   which way each of them goes
//   operation_memory.h   where their memory is
//   tree_life.h          trees: forming, in use, lost
//   rank_traffic.h       fallback, messages and repairs between the ranks
//   local_path.h         all ranks on one host
//   host_path.h          hosts as the lowest level
//   second_way_use.h     transports with a second way
//   stall_watch.h        what takes too long, or differs
//   online_tuning.h      which path is quickest, by what operations take
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
  /// `service`: rank 0's way to the manager, or nullptr. Both must outlive the communicator. Rank 0 uses the listener
  /// of the unique id: its maker opened that listener before, and passes its connections to on_accept.
  ///
  /// A transport may have a second way (tributary/transport/second_way.h). Then the ranks talk to rank 0 over the
  /// second way, where the unique id's endpoint is, too, and to each other and to aggregators over the first. If the
  /// first way between two ranks fails, the second takes over unseen; if it fails to an aggregator, the tree is lost.
  Communicator(transport::Transport& transport, GroupService* service, CommunicatorSettings settings);
  ~Communicator() override;

  /// Begins to meet the others; `on_ready` is called once, with success or the reason why not.
  void start(std::function<void(const Status&)> on_ready);
  /// Queues a collective; `owned->on_done` is called once. number and state are set here.
  void submit(std::unique_ptr<Operation> owned);
  /// Notes that more input of operations with StagedMemory has arrived.
  void staged_input_arrived();
  /// Prepares for operations with this memory. The error says why they would not go direct.
  [[nodiscard]] Status prepare_direct(DirectMemory& memory) { return memory_.prepare(memory); }
  void send_message(std::uint32_t peer, Message message);
  /// Without `source`, receives from any rank.
  void receive_message(std::optional<std::uint32_t> source, Message message);
  /// Calls `on_done` when every rank has called this and every operation everywhere has ended.
  void finalize(std::function<void(const Status&)> on_done);
  /// Ends every operation here and elsewhere.
  void abort(const std::string& reason) override;
  /// Call this a few times a second at least; more often makes time-outs more exact.
  void tick(transport::TimePoint now);
  /// Call this before each wait for the transport: it goes on with work for which other ranks of this host have done
  /// their part. Returns how long the wait may be, at most `limit`.
  [[nodiscard]] transport::Duration attend(transport::TimePoint now, transport::Duration limit);

  [[nodiscard]] CommunicatorInfo info() const;
  /// Returns the places where buffers are announced to the other ranks of this host; empty if they share no memory.
  [[nodiscard]] std::vector<std::shared_ptr<local::Regions>> regions() const;
  [[nodiscard]] bool ready() const noexcept { return shared_.life.has_begun(); }
  /// Returns whether all ranks have introduced themselves.
  [[nodiscard]] bool has_met() const noexcept { return shared_.life.has_met(); }
  /// Returns when something last arrived.
  [[nodiscard]] transport::TimePoint progress_at() const noexcept { return operations_.progress_at(); }
  /// Returns, after on_ready, the object that takes all collectives in place of submit() if ranks share memory.
  [[nodiscard]] const std::shared_ptr<local::GroupCalls>& local() const noexcept { return local_.calls(); }
  /// Returns this rank's position on each lane of the trees in use, for checks of invariants.
  struct LanePosition {
    std::uint64_t group, prefix, contributed;
    std::uint32_t epoch, window;
  };
  [[nodiscard]] std::vector<LanePosition> lane_positions() const;
  /// Returns why the communicator has ended, once it has.
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return shared_.life.error(); }
  /// After an error by mismatch: returns the operation that ranks called differently.
  [[nodiscard]] std::uint64_t disputed() const noexcept { return disputed_; }
  /// Returns whether nothing is queued or running.
  [[nodiscard]] bool idle() const noexcept { return operations_.empty() && traffic_.messages().idle(); }
  /// Called on every change of path, with the line for the log. `unwanted`: the ranks are on no tree although nobody
  /// asked for that.
  std::function<void(const std::string&, bool unwanted)> on_path_change;
  /// Called when connections of this rank go the second way from now on, with the line for the log. `device_gone`: all
  /// of them do, because this rank's first way is gone.
  std::function<void(const std::string&, bool device_gone)> on_second_way;

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    return membership_.on_accept(std::move(channel));
  }

 private:
  // meeting, and rank 0's messages (communicator_meeting.cc)
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

  // requests of the parts to the whole
  void tell_rank_0(ControlMessage message) override { membership_.tell_rank_0(std::move(message)); }
  void tell(std::uint32_t rank, const ControlMessage& message) override { membership_.tell(rank, message); }
  void begin_failing(Error error) override;
  void path_changed(const std::string& line, bool unwanted) override;
  void look_at_clock() override { look_at_clock(shared_.transport.now()); }
  void look_at_clock(transport::TimePoint now);

  // arrivals from other ranks
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

  // the end
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
  std::unique_ptr<Coordinator> coordinator_;  // rank 0
  std::function<void(const Status&)> on_ready_;
  std::function<void(const Status&)> on_finalized_;
  transport::TimePoint ready_deadline_ = transport::TimePoint::max();
  std::optional<ControlMessage> waiting_commit_;  // until this rank knows whether it shares memory
  std::uint64_t disputed_ = 0;
  LocalPath local_;  // last: the end of its meeting may still post
};

}  // namespace tributary::client
