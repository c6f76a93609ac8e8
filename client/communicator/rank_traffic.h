#pragma once
// Traffic between the ranks themselves: the fallback's rounds, messages and repairs, over one mesh of connections.
#include <functional>
#include <memory>
#include <optional>
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
  /// A frame of an operation or of a repair has arrived.
  virtual void operation_progress(PeerClass of) = 0;
  /// A frame of a message has arrived. It is no sign that an operation moves, nor is an operation's frame a sign that a
  /// message moves.
  virtual void message_progress() = 0;
  /// A message may have ended.
  virtual void message_moved() = 0;
  virtual void repair_received(std::uint32_t peer, const PostedReceive& receive, std::span<std::byte> payload) = 0;
  virtual void repair_sent() = 0;
  /// The frame that arrived does not fit the posted receive.
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
  /// Returns nullptr before open().
  [[nodiscard]] PeerMesh* mesh() const noexcept { return mesh_.get(); }

  void send(std::uint32_t peer, Message message);
  /// Without `source`, takes a message from any rank.
  void receive(std::optional<std::uint32_t> source, Message message);
  [[nodiscard]] const MessageQueue& messages() const noexcept { return messages_; }
  /// Runs `pieces` of an operation in order, then `done`. Call it only when not busy().
  void run(const Operation& operation, std::vector<Piece> pieces, std::function<void()> done);
  [[nodiscard]] bool busy() const { return runner_->busy(); }
  /// Runs the ranks' share of an operation whose other part goes by trees, then `done`. Call it only when no share
  /// runs.
  void run_share(const Operation& operation, const Piece& share, std::function<void()> done);
  [[nodiscard]] bool shares_busy() const { return shares_->busy(); }
  /// Returns whether the operation, or a piece of it, runs now, its share left out.
  [[nodiscard]] bool runs(const Operation& operation) const { return runner_->runs(operation); }
  /// "the ranks' share of it, segment 3 of the fallback, which needs rank 5"
  [[nodiscard]] std::string share_waits_for(const Operation& operation) const;
  /// Returns how many rounds of the last share were started.
  [[nodiscard]] std::uint64_t share_rounds() const { return shares_->rounds_started(); }
  /// Returns how many rounds were started of the parts of the operation that run now.
  [[nodiscard]] std::uint64_t rounds_of(const Operation& operation) const;
  /// "segment 3 of the fallback, which needs rank 5"
  [[nodiscard]] std::string waits_for() const;
  /// Lists, for people, connections that could not be made so far: " (...)", or an empty text.
  [[nodiscard]] std::string troubles() const;

  void tick();
  /// Puts off all deadlines by `absence`, for which this process stood still.
  void excuse(transport::Duration absence);
  /// Stops all traffic, because the communicator has failed.
  void close();
  /// Ends all messages with `error`.
  void fail_messages(const Error& error) { messages_.fail_all(error); }
  /// Counts open connections, and how many of them go through shared memory.
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
    transport::TimePoint report_at;  // this rank tells rank 0 then, unless the communicator has failed before
  };

  Shared& shared_;
  RankTrafficUser& user_;
  SecondWayUse& second_way_;
  Directory& directory_;
  MessageQueue messages_;
  std::unique_ptr<PeerMesh> mesh_;
  std::unique_ptr<FallbackRunner> runner_;  // runs whole operations, and parts that lost trees leave
  std::unique_ptr<FallbackRunner> shares_;
  std::optional<LostPeer> lost_;  // the first that was lost
};

}  // namespace tributary::client
