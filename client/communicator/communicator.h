#pragma once
// One rank of one communicator: membership, the order of operations, and the choice between tree and fallback.
// Single-threaded, driven by its transport and by tick(); the C API puts a thread around it, the simulator virtual
// time.
//
// Which operation may start when (advance()):
//   - operations start in the order of their calls;
//   - one that runs between the ranks (no tree, or nothing to reduce) starts when every earlier one has ended here, and
//   runs alone;
//   - in-network ones run together, after every earlier fallback operation has ended here.
// Which of the two an operation is, where there is a tree, is the policy's to say: rank 0's, which comes with the
// welcome, so that every rank says the same of the same operation.
// That makes the order of frames on each channel between two ranks the same for both, whenever a tree is lost.
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/fallback/runner.h"
#include "client/collectives/hosts/host_map.h"
#include "client/collectives/in_network/lane_link.h"
#include "client/collectives/local/call_queue.h"
#include "client/collectives/local/meeting_place.h"
#include "client/communicator/message_queue.h"
#include "client/control/arrivals.h"
#include "client/control/control_link.h"
#include "client/control/directory.h"
#include "client/control/retry.h"
#include "client/control/unique_id.h"
#include "client/operation/absences.h"
#include "client/recovery/coordinator.h"
#include "client/recovery/repair.h"
#include "client/tuning/table.h"
#include "tributary/transport/second_way.h"

namespace tributary::client {

class HostLevel;
class LocalMeeting;

enum class PathMode : std::uint8_t { automatic, in_network, fallback };

/// What decides between a tree and the ranks by themselves, where both can be had. Rank 0's counts.
enum class TuningMode : std::uint8_t {
  off,        // a tree whenever there is one
  automatic,  // the cost model with its built-in figures
  table,      // CommunicatorSettings::tuning_table
};

struct CommunicatorSettings {
  std::uint32_t rank = 0;
  std::uint32_t nranks = 1;
  UniqueId id;
  Endpoint listen;              // where this rank's own listeners are; rank 0: ignored, the id's
  std::string advertised_host;  // the address that other ranks are told; empty: what rank 0 sees
  std::string host_id;          // place in the topology
  std::string job = "default";
  std::uint32_t lanes = 1;
  PathMode path = PathMode::automatic;
  TuningMode tuning = TuningMode::off;
  tuning::Table tuning_table;  // of TuningMode::table
  bool local =
      false;  // ranks of one host may share memory: for all collectives, or as the lowest level of several hosts
  bool attach = true;  // ranks of one host copy from each other's memory by the kernel, where it allows that
  std::function<void()> local_left_alone{};  // CallQueue's
  bool manager_configured = false;
  std::shared_ptr<transport::LinkKeys> link_keys{};  // the transport's, where it seals packets
  transport::Duration timeout = std::chrono::seconds(300);
  transport::Duration
      suspect_after{};        // nothing comes back from the tree: is it the tree? 0: timeout / 10, at most 5 s
  LanePulseSettings pulse{};  // of the lanes: an aggregator that does not answer at all
  transport::Duration begin_within = std::chrono::milliseconds(500);  // without trees, unless they are there by then
  transport::Duration drain_grace =
      std::chrono::milliseconds(300);     // after a rank is gone: for results that are on their way
  std::vector<std::uint32_t> known_as{};  // by rank: what people know it as, if not by that number
};

/// A snapshot for tributary_comm_info.
struct CommunicatorInfo {
  bool in_network = false;
  bool local = false;
  std::uint32_t epoch = 0;
  std::uint32_t lanes = 0;
  std::uint32_t levels = 0;
  std::uint32_t window = 0;
  std::uint32_t segment_bytes = 0;
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_fallback = 0;
  std::uint64_t bytes_local = 0;
  std::uint64_t direct = 0;    // of the collectives, or their pieces, in shared memory: without copies
  std::string attach_refusal;  // why ranks of this host do not copy from each other's memory by the kernel
  std::uint32_t lanes_shared = 0, links = 0, links_shared = 0;  // see tributary_info
  std::uint32_t hosts = 0;  // whose ranks reduce among themselves first; 0: all ranks are alike
  std::uint64_t failovers = 0;
  std::uint64_t returns = 0;
  std::uint64_t last_pause_us = 0;
  std::uint64_t longest_pause_us = 0;
  std::uint64_t strangers_turned_away = 0;
  std::string reason;
  std::string transport;  // between hosts; the caller's to fill in
};

class Communicator final : public transport::Acceptor,
                           private ControlLinkUser,
                           private ArrivalUser,
                           private LaneUser,
                           private PeerLinkUser,
                           private CoordinatorOutput {
 public:
  /// `service`: rank 0's way to the manager, or nullptr. Both must outlive the communicator. Rank 0's listener is the
  /// unique id's: it is made before, by whoever made the id, and its connections are passed to on_accept.
  ///
  /// A transport may have a second way (tributary/transport/second_way.h). Then the ranks talk to rank 0 by that, and
  /// the unique id is of an endpoint there; to each other and to aggregators by the first. Where that fails between two
  /// ranks, the second takes over, and nobody need know; a tree is lost as ever.
  Communicator(transport::Transport& transport, GroupService* service, CommunicatorSettings settings);
  ~Communicator() override;

  /// Begins to meet the others; `on_ready` is called once, with success or the reason why not.
  void start(std::function<void(const Status&)> on_ready);
  /// Queues a collective; `operation.on_done` is called once. number and state are set here.
  void submit(std::unique_ptr<Operation> operation);
  /// More of the input of operations with StagedMemory is there.
  void staged_input_arrived();
  /// Makes ready what operations with this memory need. Why they would not go as they are, if so.
  [[nodiscard]] Status prepare_direct(DirectMemory& memory);
  void send_message(std::uint32_t peer, Message message);
  /// No source: from any rank.
  void receive_message(std::optional<std::uint32_t> source, Message message);
  /// `on_done` when every rank has called it and every operation everywhere has ended.
  void finalize(std::function<void(const Status&)> on_done);
  /// Ends every operation here and elsewhere.
  void abort(const std::string& reason);
  /// A few times a second at least; more often makes time-outs sharper.
  void tick(transport::TimePoint now);
  /// Before each wait for the transport: does what other ranks of this host have made possible. How long the wait may
  /// be, at most `limit`.
  [[nodiscard]] transport::Duration attend(transport::TimePoint now, transport::Duration limit);

  [[nodiscard]] CommunicatorInfo info() const;
  /// Where buffers are announced to the other ranks of this host; empty where those share no memory.
  [[nodiscard]] std::vector<std::shared_ptr<local::Regions>> regions() const;
  [[nodiscard]] bool ready() const noexcept { return ready_; }
  /// All ranks have introduced themselves.
  [[nodiscard]] bool has_met() const noexcept override { return mesh_ != nullptr; }
  /// When something arrived last.
  [[nodiscard]] transport::TimePoint progress_at() const noexcept { return progress_at_; }
  /// From on_ready on: where all collectives go, instead of to submit(), if the ranks share memory; else nullptr.
  [[nodiscard]] const std::shared_ptr<local::GroupCalls>& local() const noexcept { return local_; }
  /// Where this rank stands on each lane of the trees in use, for those who check invariants.
  struct LanePosition {
    std::uint64_t group, prefix, contributed;
    std::uint32_t epoch, window;
  };
  [[nodiscard]] std::vector<LanePosition> lane_positions() const;
  [[nodiscard]] const std::optional<Error>& error() const noexcept { return error_; }
  /// Of an error by mismatch: the operation that ranks called differently.
  [[nodiscard]] std::uint64_t disputed() const noexcept { return disputed_; }
  /// Nothing is queued or running.
  [[nodiscard]] bool idle() const noexcept { return operations_.empty() && messages_idle(); }
  /// Told on every change of path, with the line for the log.
  std::function<void(const std::string&)> on_path_change;
  /// Told when connections of this rank go the second way from now on, with the line for the log. `device_gone`: all
  /// of them, because this rank's first way is gone.
  std::function<void(const std::string&, bool device_gone)> on_second_way;

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  void keep_registered(Operation& operation);
  /// One generation of trees.
  struct Trees {
    std::uint32_t generation = 0;
    GroupDescriptor descriptor;
    std::vector<std::unique_ptr<LaneLink>> lanes;
    std::uint32_t ready = 0;
    bool failed = false;
    std::uint64_t first_operation = kNever;  // kNever: not committed yet
    [[nodiscard]] std::vector<LaneLink*> links() const;
  };

  struct LostPeer {
    std::uint32_t peer;
    std::string reason;
  };

  // membership (communicator_membership.cc, communicator_members.cc)
  void meet_rank_0();
  [[nodiscard]] const Secret& secret() const override { return settings_.id.secret; }
  [[nodiscard]] std::uint32_t rank() const override { return settings_.rank; }
  [[nodiscard]] std::string introduction() const override;
  void on_hello(Arrival& arrival, const std::string& body) override;
  void on_peer_hello(Arrival& arrival) override;
  void welcome_all();
  [[nodiscard]] tuning::Policy make_policy() const;
  void start_coordinator();
  void on_welcome(const std::string& body);
  [[nodiscard]] std::string missing_ranks() const;
  void have_members();
  void ask_for_members();
  void answer_whereabouts(std::uint32_t from, const std::string& body);
  void on_members(const std::string& body);
  [[nodiscard]] ControlMessage report_of(const LostPeer& lost) const;
  void on_control(std::uint32_t from, const ControlMessage& message) override;
  void handle(const ControlMessage& message);
  void control_closed(std::uint32_t rank, const std::string& why) override;
  void not_rank_0(const std::string& why) override;
  void tell_rank_0(ControlMessage message);
  void broadcast(const ControlMessage& message) override;
  void send(std::uint32_t rank, const ControlMessage& message) override;

  // the second way (communicator_ways.cc)
  [[nodiscard]] Status open_listeners();
  [[nodiscard]] PeerWays ways() const;
  void peer_goes_second_way(std::uint32_t peer, const std::string& reason) override;
  void tell_second_way(const std::string& whose, const std::string& reason, bool device_gone) const;
  void check_first_way();
  void spread_second_way(const ControlMessage& message);
  void on_second_way_of(const ControlMessage& message);
  [[nodiscard]] Status may_reach_trees() const;

  // ranks that share a host (communicator_local.cc)
  [[nodiscard]] std::string host_token() const;
  [[nodiscard]] local::GroupSettings local_settings() const;
  [[nodiscard]] std::optional<local::MeetingPlace> open_local_place();
  void meet_locally(std::optional<local::MeetingPlace> place);
  void on_local_meeting(Result<std::unique_ptr<local::LocalGroup>> outcome);
  [[nodiscard]] bool agrees_on_local(const ControlMessage& commit);
  void check_local();
  [[nodiscard]] Error one_error(Error error);
  void tell_no_local(const Error& why);

  // several hosts, some with several ranks (communicator_hosts.cc)
  [[nodiscard]] std::optional<Endpoint> open_host_level();
  void make_host_level(hosts::HostMap map);
  void meet_by_hosts(const Endpoint& place);
  void on_met_by_hosts(const Status& status);
  void do_without_hosts(const std::string& why);
  void on_hosts_failed(std::uint32_t from, const ControlMessage& message);
  [[nodiscard]] bool agrees_on_hosts(const ControlMessage& commit);
  void tell_path_between();
  [[nodiscard]] std::string path_between() const;
  void report_hosts_path(const std::string& body);
  [[nodiscard]] bool goes_by_hosts(const Operation& operation) const;
  void check_hosts();

  // trees coming and going (communicator_trees.cc)
  void on_descriptor(const ControlMessage& message);
  [[nodiscard]] Status take_link_secrets(const GroupDescriptor& descriptor);
  void on_propose(const ControlMessage& message);
  void on_commit(const ControlMessage& message);
  void on_freeze(const ControlMessage& message);
  void on_recover(const ControlMessage& message);
  void bring_down();
  [[nodiscard]] bool brought_down() const;
  void continue_by_fallback();
  [[nodiscard]] std::vector<Piece> remainder(const Operation& operation, std::uint64_t& segments_left) const;
  void discard(std::unique_ptr<Trees> trees);
  void report_path(std::string reason);
  Operation* started_operation(std::uint64_t number) override;
  std::uint64_t first_operation_kept() const override { return first_number_; }
  void lane_ready(std::uint32_t lane) override;
  void lane_failed(std::uint32_t lane, const std::string& reason) override;
  void look_at_lanes();
  void lane_progress() override { progress_at_ = transport_.now(); }
  void lane_fault(const MismatchReport& report) override;
  void segments_finished(Operation& operation) override;

  // operations (communicator.cc)
  void advance();
  void finalize_when_idle();
  [[nodiscard]] bool goes_in_network(const Operation& operation) const;
  [[nodiscard]] bool may_start(const Operation& operation) const;
  [[nodiscard]] bool copies_own_part(const Operation& operation) const noexcept;
  void next_remainder();
  void settle_memory(Operation& operation);
  void leave_direct(Operation& operation, const Status& why);
  void start_operation(Operation& operation);
  void run_fallback(Operation& operation, std::vector<Piece> pieces);
  void finish(Operation& operation, const Status& status);
  void forget_finished();
  [[nodiscard]] Operation* operation(std::uint64_t number);
  void fail_all(Error error);
  void begin_failing(Error error);
  void take_leave();
  [[nodiscard]] std::uint32_t known_as(std::uint32_t rank) const noexcept {
    return settings_.known_as.empty() ? rank : settings_.known_as[rank];
  }
  [[nodiscard]] MessageEvents message_events();
  [[nodiscard]] bool messages_idle() const noexcept { return messages_.idle(); }
  void peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                     std::span<std::byte> payload) override;
  void peer_sent(std::uint32_t peer, PeerClass peer_class, std::uint64_t cookie) override;
  void peer_failed(std::uint32_t peer, PeerClass peer_class, const std::string& reason) override;

  // who waits too long, and who called something else (communicator_stalls.cc)
  [[nodiscard]] transport::Duration suspect_after() const;
  [[nodiscard]] bool rank_0_hangs(const Operation& o) const noexcept;
  void check_stall();
  /// Since then this process has been there, and has waited, for so long.
  [[nodiscard]] bool waited(transport::TimePoint since, transport::Duration time) const noexcept;
  void look_at_clock(transport::TimePoint now);
  [[nodiscard]] std::string stood_still() const;
  void excuse(transport::Duration absence);
  void check_unwanted_frames();
  void report_mismatch(std::uint64_t number, const Signature& mine, std::uint32_t peer, const Signature& theirs);
  void on_inquiry(const ControlMessage& message);
  [[nodiscard]] std::string waits_for(const Operation& operation) const;
  void peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                     const FrameHeader& arrived) override;

  transport::Transport& transport_;
  transport::HasSecondWay* const two_ways_;  // transport_, if it has
  transport::Transport& star_;               // where rank 0 is
  GroupService* const service_;
  const CommunicatorSettings settings_;
  std::vector<LinkName> sealed_links_;  // of the newest trees, in settings_.link_keys
  transport::TimePoint now_{};
  Absences absences_;

  // membership
  std::unique_ptr<transport::Listener> listener_;         // none: rank 0's is the id's
  std::unique_ptr<transport::Listener> second_listener_;  // on the second way
  Arrivals arrivals_;
  std::vector<std::unique_ptr<ControlLink>> control_;  // rank 0: by rank, [0] empty. else: one, to rank 0
  Directory directory_{settings_.rank, settings_.nranks};
  bool first_way_gone_ = false;           // of this rank, with all others
  std::vector<std::string> host_tokens_;  // rank 0
  std::uint32_t met_ = 0;
  bool ready_ = false;
  std::function<void(const Status&)> on_ready_;
  transport::TimePoint ready_deadline_ = transport::TimePoint::max();
  Retry reconnect_{std::chrono::milliseconds(50), std::chrono::seconds(1)};  // to rank 0, until all have met
  std::function<void(const Status&)> on_finalized_;
  bool finalize_sent_ = false;
  transport::TimePoint finalize_sent_at_{};
  bool finalized_ = false;

  // operations, in order; those that have ended leave from the front
  std::deque<std::unique_ptr<Operation>> operations_;
  std::deque<std::unique_ptr<Operation>> graveyard_;  // of a failed communicator: lanes may still point at them
  std::uint64_t first_number_ = 0;                    // of operations_.front()
  std::uint64_t next_number_ = 0;                     // of the next call
  std::uint64_t next_to_start_ = 0;
  bool advancing_ = false;
  std::uint32_t fallback_unfinished_ = 0;  // started, fallback or direct
  std::uint32_t unfinished_ = 0;           // started, any
  struct Remainder {
    Operation* operation;
    std::vector<Piece> pieces;
  };
  std::deque<Remainder> remainders_;               // taken off a lost tree, to be ended by fallback
  transport::TimePoint progress_at_{};             // something of an operation arrived,
  transport::TimePoint messages_progress_at_{};    // or of a message: neither is the other's sign of life
  std::array<Signature, 256> recent_{};            // by number: for inquiries after operations that have ended
  std::optional<ControlMessage> waiting_propose_;  // while a repair is under way
  std::optional<ControlMessage> waiting_recover_;  // while what it needs comes down from other memory
  std::shared_ptr<std::atomic<std::size_t>> coming_down_ = std::make_shared<std::atomic<std::size_t>>(0);  // copies
  bool holding_ = false;  // between propose and commit, freeze and recover: start nothing

  // paths
  std::unique_ptr<PeerMesh> mesh_;
  tuning::Policy policy_;  // of the whole group, from have_members() on
  std::unique_ptr<FallbackRunner> runner_;
  MessageQueue messages_;
  std::unique_ptr<Trees> forming_;
  std::unique_ptr<Trees> trees_;  // in use, or frozen until repaired
  bool frozen_ = false;
  std::unique_ptr<Repair> repair_;
  std::vector<std::unique_ptr<Trees>> discarded_;  // their channels may be in a callback
  std::vector<std::unique_ptr<Repair>> discarded_repairs_;
  std::vector<std::unique_ptr<ControlLink>> discarded_control_;
  std::unique_ptr<Coordinator> coordinator_;  // rank 0
  CommunicatorInfo info_;
  transport::TimePoint lost_at_{};

  // ranks that share a host
  std::shared_ptr<local::GroupCalls> local_;
  std::optional<Error> local_error_;              // why there is none
  std::optional<ControlMessage> waiting_commit_;  // until it is known whether this rank has a group

  // several hosts
  std::unique_ptr<HostLevel> host_level_;
  std::vector<std::unique_ptr<HostLevel>> discarded_host_levels_;  // they may be in a callback
  transport::TimePoint hosts_failed_at_{};

  std::optional<Error> error_;          // it is over
  std::optional<Error> error_pending_;  // while failing_: results that are on their way may still come, until fail_at_
  bool failing_ = false;
  std::uint64_t disputed_ = 0;
  std::optional<LostPeer> peer_lost_;  // told to rank 0 at report_lost_at_, unless it knew better before
  transport::TimePoint report_lost_at_{};
  transport::TimePoint fail_at_{};
  std::shared_ptr<bool> alive_;                  // calls that were posted and come too late find it false
  std::unique_ptr<LocalMeeting> local_meeting_;  // last: its end may still post
};

}  // namespace tributary::client
