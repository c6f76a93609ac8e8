#pragma once
// Messages with tags other than 0, which may be received in any order of tags. The sender offers a message by number,
// tag, count and dtype. The receiver keeps offers until a receive takes one. Then it posts the receives of the data and
// says that it wants that number. The sender sends data in the order of the wants. So data never wait in the network,
// no buffer is needed at either end, and the cost is one round trip for each message. (Gloo does the same between its
// unbound buffers.)
//
// No message waits for ever for room: offers and wants are always taken, and data come only where their receives are
// posted.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/communicator/messages_under_way.h"
#include "client/communicator/tag_matching.h"

namespace tributary::client {

/// The limit of sends with tags from one rank to another that no receive has taken yet. The record of each is below 256
/// bytes, so another rank, whatever it says, costs at most 16 MiB here; and a program that leaves more messages
/// unreceived has a mistake.
inline constexpr std::size_t kOffersMax = 65536;

class TaggedMessages {
 public:
  /// `disagree`: gets the sentence for people when both sides of a message want another count or dtype.
  TaggedMessages(std::uint32_t rank, MessagesUnderWay& under_way, std::function<void(std::string)> disagree)
      : rank_(rank), under_way_(under_way), disagree_(std::move(disagree)) {}
  void use(PeerMesh& mesh) { mesh_ = &mesh; }
  /// Ends the message with Errc::exhausted if kOffersMax other messages wait for the peer's receives.
  void send(std::uint32_t peer, Message message);
  /// Connections must be there, or under way, to every rank that may be the source.
  void receive(std::optional<std::uint32_t> source, Message message);
  /// Takes an offer or a want. Returns an error for a frame that no correct rank sends.
  [[nodiscard]] Status noted(std::uint32_t peer, const FrameHeader& note);
  void fail_all(const Error& error);
  [[nodiscard]] bool idle() const noexcept { return unanswered_ == 0 && !matching_.receives_wait(); }
  /// Describes a message that was called before `before`; empty if there is none.
  [[nodiscard]] std::string overdue(transport::TimePoint before) const;

 private:
  struct Peer {
    std::uint64_t offers_sent = 0, offers_come = 0;
    std::map<std::uint64_t, Message> unanswered;  // by number: offered, and not wanted yet
  };
  [[nodiscard]] Status on_offer(std::uint32_t peer, const FrameHeader& note);
  [[nodiscard]] Status on_want(std::uint32_t peer, const FrameHeader& note);
  void match(const Offer& offer, Message receive);
  void match_own(const Offer& offer, const Message& receive);
  [[nodiscard]] Message answered(Peer& peer, std::map<std::uint64_t, Message>::iterator it);

  const std::uint32_t rank_;
  MessagesUnderWay& under_way_;
  const std::function<void(std::string)> disagree_;
  PeerMesh* mesh_ = nullptr;
  std::map<std::uint32_t, Peer> peers_;  // by rank, this rank included
  std::size_t unanswered_ = 0;           // unanswered messages of all peers
  TagMatching matching_;
};

}  // namespace tributary::client
