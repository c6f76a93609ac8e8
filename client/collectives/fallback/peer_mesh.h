#pragma once
// The channels between this rank and the others, made when first needed. Of two ranks the higher one connects: whoever
// needs the channel, the other side's part in the same operation makes it need it too.
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "client/bootstrap/unique_id.h"
#include "client/collectives/fallback/peer_link.h"

namespace tributary::client {

class PeerMesh {
 public:
  PeerMesh(transport::Transport& transport, std::uint32_t rank, std::vector<Endpoint> ranks, const Secret& secret,
           transport::Duration connect_limit);

  /// Who gets a class's callbacks; all three before the first link().
  void set_user(PeerClass peer_class, PeerLinkUser& user) { users_[static_cast<std::size_t>(peer_class)] = &user; }
  [[nodiscard]] PeerLink& link(PeerClass peer_class, std::uint32_t peer);
  /// A connection to us has proved to be `peer`'s. The returned handler gets its callbacks from now on; nullptr: there
  /// is one already.
  [[nodiscard]] transport::ChannelHandler* accept(PeerClass peer_class, std::uint32_t peer,
                                                  std::unique_ptr<transport::Channel>& channel);
  void close();
  /// Channels that are open, and how many of them go through shared memory.
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> open_links() const noexcept;
  /// Calls `visit(peer, header)` for each frame of this class that waits for its receive.
  void visit_held_back(PeerClass peer_class, const std::function<void(std::uint32_t, const FrameHeader&)>& visit) const;

 private:
  [[nodiscard]] std::unique_ptr<PeerLink>& slot(PeerClass peer_class, std::uint32_t peer) {
    return links_[static_cast<std::size_t>(peer_class)][peer];
  }

  transport::Transport& transport_;
  const std::uint32_t rank_;
  const std::vector<Endpoint> ranks_;
  const Secret secret_;
  const transport::Duration connect_limit_;
  std::array<PeerLinkUser*, kPeerClasses> users_{};
  std::array<std::vector<std::unique_ptr<PeerLink>>, kPeerClasses> links_;
  bool closed_ = false;
};

}  // namespace tributary::client
