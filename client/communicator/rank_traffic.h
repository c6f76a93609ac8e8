#pragma once
// Traffic between the ranks themselves: the fallback's rounds, messages and repairs, over one mesh of connections.
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/collectives/fallback/runner.h"
#include "client/communicator/message_queue.h"
#include "client/communicator/second_way_use.h"
#include "client/communicator/whole.h"
#include "client/control/directory.h"

namespace tributary::client {

class RankTrafficUser {
 public:
  virtual ~RankTrafficUser() = default;
  /// Called when a frame of an operation or of a repair has arrived.
  virtual void operation_progress(PeerClass of) = 0;
  /// Called when a frame of a message has arrived. Messages and operations make progress separately: frames of one do
  /// not show that the other makes progress.
  virtual void message_progress() = 0;
  /// Called when a message may have ended.
  virtual void message_moved() = 0;
  virtual void repair_received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload) = 0;
  virtual void repair_sent() = 0;
  /// Called when a frame that arrived does not match the posted receive.
  virtual void mismatch(std::uint32_t peer, const PostedReceive& expected, const FrameHeader& arrived) = 0;
};

class RankTraffic final : private PeerLinkUser {
 public:
  RankTraffic(Shared& shared, RankTrafficUser& user, SecondWayUse& second_way, Directory& directory)
      : shared_(shared),
        user_(user),
        second_way_(second_way),
        directory_(directory),
        messages_(shared.settings.rank, message_events()) {}

  /// Opens the mesh. All ranks must be known; `policy` must outlive this object.
  void open(const tuning::Policy& policy);
  /// Returns the mesh; nullptr before open().
  [[nodiscard]] PeerMesh* mesh() const noexcept { return mesh_.get(); }

  void send(std::uint32_t peer, Message message);
  /// Receives a message from `source`; without `source`, from any rank.
  void receive(std::optional<std::uint32_t> source, Message message);
  [[nodiscard]] const MessageQueue& messages() const noexcept { return messages_; }
  /// Runs `pieces` of an operation in order, then calls `done`. Call it only when busy() returns false.
  void run(const Operation& operation, std::span<const Piece> pieces, std::function<void()> done);
  [[nodiscard]] bool busy() const { return runner_->busy(); }
  /// Runs the ranks' share of an operation whose other part goes by trees, then calls `done`. Call it only when
  /// shares_busy() returns false.
  void run_share(const Operation& operation, const Piece& share, std::function<void()> done);
  [[nodiscard]] bool shares_busy() const { return shares_->busy(); }
  /// Returns whether the operation, or a piece of it, runs now; the operation's share does not count.
  [[nodiscard]] bool runs(const Operation& operation) const { return runner_->runs(operation); }
  /// Returns a text such as "the ranks' share of it, segment 3 of the fallback, which needs rank 5".
  [[nodiscard]] std::string share_waits_for(const Operation& operation) const;
  /// Returns how many rounds of the last share were started.
  [[nodiscard]] std::uint64_t share_rounds() const { return shares_->rounds_started(); }
  /// Returns how many rounds have started of those parts of the operation that run now.
  [[nodiscard]] std::uint64_t rounds_of(const Operation& operation) const;
  /// Returns a text such as "segment 3 of the fallback, which needs rank 5".
  [[nodiscard]] std::string waits_for() const;
  /// Returns a text for people that lists connections that could not be made so far, as " (...)"; it may be empty.
  [[nodiscard]] std::string troubles() const;

  void tick();
  /// Puts off all deadlines by `absence`, the time for which this process stood still.
  void excuse(transport::Duration absence);
  /// Stops all traffic, because the communicator has failed.
  void close();
  /// Ends all messages with `error`.
  void fail_messages(const Error& error) { messages_.fail_all(error); }
  /// Returns how many connections are open, and how many of them go through shared memory.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> open_links() const;

 private:
  [[nodiscard]] MessageEvents message_events();
  [[nodiscard]] std::string waits_for(const FallbackRunner& runner) const;
  [[nodiscard]] FallbackRunner& runner_of(PeerClass peer_class) const;
  void peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                     std::span<std::byte> payload) override;
  void peer_sent(std::uint32_t peer, PeerClass peer_class, std::uint64_t cookie) override;
  void peer_failed(std::uint32_t peer, PeerClass peer_class, const std::string& reason) override;
  void peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                     const FrameHeader& arrived) override;
  void peer_goes_second_way(std::uint32_t peer, const std::string& reason) override;
  void report_lost_peer();

  struct LostPeer {
    std::uint32_t peer;
    std::string reason;
    transport::TimePoint report_at;  // time at which this rank tells rank 0, unless the communicator fails before
  };

  Shared& shared_;
  RankTrafficUser& user_;
  SecondWayUse& second_way_;
  Directory& directory_;
  MessageQueue messages_;
  std::unique_ptr<PeerMesh> mesh_;
  std::unique_ptr<FallbackRunner> runner_;  // runs whole operations, and pieces that lost trees did not finish
  std::unique_ptr<FallbackRunner> shares_;
  std::optional<LostPeer> lost_;  // the first peer that was lost
};

}  // namespace tributary::client
