#pragma once
// The channels between this rank and the others, made when first needed. The higher of two ranks connects: if one side
// needs the channel for an operation, so does the other. A connection that is refused, or ends before both sides have
// proved themselves, is tried again until the mesh closes. That hides no lost rank: rank 0 misses it, and the time-outs
// of operations that wait for the connection go on.
//
// Over a transport with a second way, all channels between two ranks go the first way until one of them breaks or
// cannot be made, and all go the second way from then on. The higher rank makes the new channels, too; if the lower one
// notices the break, it tells the higher one through rank 0.
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "client/collectives/fallback/peer_link.h"
#include "client/control/directory.h"
#include "client/control/retry.h"
#include "client/control/unique_id.h"
#include "tributary/transport/io_threads.h"

namespace tributary::client {

/// The transports that reach the ranks. Without a second way `second` is nullptr.
struct PeerWays {
  transport::Transport& first;
  transport::Transport* second = nullptr;
  std::uint32_t early_bytes_max = 0;      // as in HasSecondWay
  transport::HasIoThreads* io = nullptr;  // takes over accepted channels; nullptr: they stay where they are
};

/// A peer_hello's content besides its sender.
struct PeerHello {
  bool second = false;      // the connection has come the second way
  std::uint64_t taken = 0;  // if second: how many frames were taken on the first way
};
/// Reads a proof's detail.
[[nodiscard]] Result<PeerHello> peer_hello_of(const std::string& detail);

class PeerMesh final : private FirstWayWatch {
 public:
  /// `directory` knows where ranks are, or whom to ask.
  PeerMesh(PeerWays ways, Directory& directory, std::uint32_t rank, const Secret& secret,
           transport::Duration connect_limit);

  /// Sets the receiver of a class's callbacks; call it for all classes before the first link(). Events of a rank as a
  /// whole go to the receiver of collectives.
  void set_user(PeerClass peer_class, PeerLinkUser& user) { users_[static_cast<std::size_t>(peer_class)] = &user; }
  [[nodiscard]] PeerLink& link(PeerClass peer_class, std::uint32_t peer);
  struct Accepted {
    transport::ChannelHandler* handler = nullptr;  // gets the callbacks from now on; nullptr: not wanted, or not needed
    bool moved = false;                            // to an I/O thread: no callback comes to the handler before any more
  };
  /// Takes a connection to this rank that has proved to be `peer`'s.
  [[nodiscard]] Accepted accept(PeerClass peer_class, std::uint32_t peer, const PeerHello& hello,
                                std::unique_ptr<transport::Channel>& channel);
  /// Connects to `peer`, because the directory now knows where it is.
  void found(std::uint32_t peer);
  /// Uses the second way with `peer` from now on; no frame is lost. Returns false if it does so already, or if there is
  /// no second way.
  bool leave_first_way(std::uint32_t peer, const std::string& reason);
  /// Call this a few times a second at least.
  void tick(transport::TimePoint now);
  /// Extends the limits by `absence`, for which this process was away.
  void excuse(transport::Duration absence);
  void close();
  /// Returns how many channels are open, and how many of them go through shared memory.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> open_links() const noexcept;
  /// Returns the connections that could not be made so far, for people; empty if there are none.
  [[nodiscard]] std::string troubles() const;
  /// Calls `visit(peer, header)` for each frame of this class that waits for its receive.
  void visit_held_back(PeerClass peer_class, const std::function<void(std::uint32_t, const FrameHeader&)>& visit) const;

 private:
  /// Returns nullptr if there is no link yet.
  [[nodiscard]] PeerLink* existing(PeerClass peer_class, std::uint32_t peer) const;
  void connect(PeerClass peer_class, std::uint32_t peer);
  [[nodiscard]] PeerLink::Attempt attempt(PeerClass peer_class, std::uint32_t peer);
  void connect_again(transport::TimePoint now);
  void first_way_broken(std::uint32_t peer, const std::string& reason) override;

  const PeerWays ways_;
  Directory& directory_;
  const std::uint32_t rank_;
  const Secret secret_;
  const transport::Duration connect_limit_;
  std::array<PeerLinkUser*, kPeerClasses> users_{};
  std::array<std::map<std::uint32_t, std::unique_ptr<PeerLink>>, kPeerClasses> links_;  // by rank, those in use
  std::set<std::uint32_t> left_;  // ranks with which the first way was left
  struct Again {
    Retry retry;
    std::string reason;
  };
  std::map<std::pair<PeerClass, std::uint32_t>, Again> again_;  // connections of which an attempt has failed
  bool closed_ = false;
};

}  // namespace tributary::client
