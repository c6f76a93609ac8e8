#pragma once
// The channels between this rank and the other ranks, made when first needed. The higher of two ranks connects: if one
// side needs the channel for an operation, the other side does, too. If a connection is refused, or ends before both
// sides have proved themselves, the mesh tries again until it closes. This hides no lost rank: rank 0 notices that the
// rank is lost, and the time-outs of operations that wait for the connection continue.
//
// Over a transport with a second way, all channels between two ranks use the first way until one of them breaks or
// cannot be made. From then on all use the second way. The higher rank makes the new channels, too. If the lower rank
// notices the break, it tells the higher rank through rank 0.
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
  std::uint32_t early_bytes_max = 0;      // see HasSecondWay
  transport::HasIoThreads* io = nullptr;  // takes over accepted channels; nullptr: they stay where they are
};

/// The content of a peer_hello frame, without its sender.
struct PeerHello {
  bool second = false;      // the connection uses the second way
  std::uint64_t taken = 0;  // if second: how many frames its sender took on the first way
};
/// Reads the `detail` text of a proof.
[[nodiscard]] Result<PeerHello> peer_hello_of(const std::string& detail);

class PeerMesh final : private FirstWayWatch {
 public:
  /// `directory` knows the ranks' addresses, or asks for them.
  PeerMesh(PeerWays ways, Directory& directory, std::uint32_t rank, const Secret& secret,
           transport::Duration connect_limit);

  /// Sets the receiver of a class's callbacks; call it for all classes before the first link(). The receiver of
  /// collectives also gets the events that concern all channels of a rank.
  void set_user(PeerClass peer_class, PeerLinkUser& user) { users_[static_cast<std::size_t>(peer_class)] = &user; }
  [[nodiscard]] PeerLink& link(PeerClass peer_class, std::uint32_t peer);
  struct Accepted {
    transport::ChannelHandler* handler = nullptr;  // gets the callbacks from now on; nullptr: channel not taken
    bool moved = false;                            // an I/O thread took the channel: its old handler gets no callback
  };
  /// Takes a connection to this rank that has proved that it comes from `peer`.
  [[nodiscard]] Accepted accept(PeerClass peer_class, std::uint32_t peer, const PeerHello& hello,
                                std::unique_ptr<transport::Channel>& channel);
  /// Connects to `peer`, because the directory now knows where it is.
  void found(std::uint32_t peer);
  /// Uses the second way with `peer` from now on; no frame is lost. Returns false if it uses it already, or if there is
  /// no second way.
  bool leave_first_way(std::uint32_t peer, const std::string& reason);
  /// Call this at least a few times a second.
  void tick(transport::TimePoint now);
  /// Extends the limits of all links by `absence`, the time for which this process was away.
  void excuse(transport::Duration absence);
  void close();
  /// Returns how many channels are open, and how many of them go through shared memory.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> open_links() const noexcept;
  /// Returns a text for people about the connections that could not be made so far; empty if there are none.
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
  std::array<std::map<std::uint32_t, std::unique_ptr<PeerLink>>, kPeerClasses> links_;  // by rank: links in use
  std::set<std::uint32_t> left_;  // ranks with which this rank has left the first way
  struct Again {
    Retry retry;
    std::string reason;
  };
  std::map<std::pair<PeerClass, std::uint32_t>, Again> again_;  // connections with a failed attempt
  bool closed_ = false;
};

}  // namespace tributary::client
