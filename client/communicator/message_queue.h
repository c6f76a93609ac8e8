#pragma once
// send and recv: messages between two ranks, cut into frames of one piece.
//
// Messages with tag 0 match receives in the order of each pair's calls: a call sends, or posts its receive, at once. A
// receive from any rank takes the first message that has come and that no receive has taken, or else the next message
// that comes. While it waits, all later receives wait behind it, as in MPI: an earlier call gets its message first.
// tagged_messages.h handles messages with other tags.
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/communicator/early_peers.h"
#include "client/communicator/message.h"
#include "client/communicator/messages_under_way.h"
#include "client/communicator/tagged_messages.h"

namespace tributary::client {

/// The events that a MessageQueue reports.
struct MessageEvents {
  std::function<void()> arrived;              // a part of a message or a `want` has come: a sign of life
  std::function<void()> ended;                // messages may have ended
  std::function<void(std::string)> disagree;  // a message cannot end: its ranks gave different counts or dtypes
  std::function<void(std::uint32_t peer, const std::string& reason)> lost;  // the connection to a rank broke
};

class MessageQueue final : private PeerLinkUser {
 public:
  MessageQueue(std::uint32_t rank, MessageEvents events);
  void use(PeerMesh& mesh);
  void send(std::uint32_t peer, Message message);
  /// Receives a message from `source`; without `source`, from any rank, including this rank.
  void receive(std::optional<std::uint32_t> source, Message message);
  void fail_all(const Error& error);
  [[nodiscard]] bool idle() const noexcept {
    return under_way_.empty() && own_sends_.empty() && own_receives_.empty() && waiting_.empty() && tagged_.idle();
  }
  /// Describes an unfinished message whose call was before `before` ("send of 10 float32 to rank 3"); empty if there is
  /// no such message.
  [[nodiscard]] std::string overdue(transport::TimePoint before) const;

 private:
  struct Waiting {
    std::optional<std::uint32_t> source;
    Message message;
  };
  void peer_received(std::uint32_t peer, PeerClass peer_class, const PostedReceive& receive,
                     std::span<std::byte> payload) override;
  void peer_sent(std::uint32_t peer, PeerClass peer_class, std::uint64_t cookie) override;
  void peer_waits(std::uint32_t peer, PeerClass peer_class) override;
  Status peer_noted(std::uint32_t peer, const FrameHeader& note) override;
  void peer_failed(std::uint32_t peer, PeerClass peer_class, const std::string& reason) override;
  void peer_mismatch(std::uint32_t peer, PeerClass peer_class, const PostedReceive& expected,
                     const FrameHeader& arrived) override;
  void connect_to_all(PeerClass peer_class);
  void take(std::uint32_t peer, Message message);
  void serve_waiting();
  void match_own();

  const std::uint32_t rank_;
  const MessageEvents events_;
  PeerMesh* mesh_ = nullptr;
  MessagesUnderWay under_way_;
  TaggedMessages tagged_;
  std::map<std::uint32_t, std::uint64_t> sends_;  // by peer: number of the next send
  std::map<std::uint32_t, std::uint64_t> receives_;
  std::deque<Message> own_sends_, own_receives_;  // messages from this rank to itself
  std::deque<Waiting> waiting_;                   // the oldest waiting receive from any rank, and all later receives
  bool serving_ = false;                          // serve_waiting() runs
  EarlyPeers early_;                              // includes this rank if it has sent to itself
  std::array<bool, kPeerClasses> connected_{};    // by class: connect_to_all() was called
};

}  // namespace tributary::client
