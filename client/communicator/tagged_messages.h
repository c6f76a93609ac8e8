#pragma once
// Messages with tags other than 0, which may be received in any order of tags. The sender offers a message by number,
// tag, count and dtype. The receiver keeps offers. When a receive takes an offer, the receiver posts the receives of
// the data, and sends a frame `want` with the offer's number. The sender sends data in the order of the wants. So data
// never wait in the network, neither end needs a buffer, and each message costs one additional round trip. (Gloo does
// the same between its unbound buffers.)
//
// No message waits without end for room: both sides take all offers and wants at once, and data come only after their
// receives are posted.
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/communicator/messages_under_way.h"
#include "client/communicator/tag_matching.h"

namespace tributary::client {

/// The most sends with tags from one rank to another that no receive has taken yet. Each send's record has less than
/// 256 bytes, so another rank, even a hostile one, uses at most 16 MiB on this rank. A program that leaves more
/// messages unreceived has a mistake.
inline constexpr std::size_t kOffersMax = 65536;

class TaggedMessages {
 public:
  /// `disagree`: gets a sentence for people when the two sides of a message have different counts or dtypes.
  TaggedMessages(std::uint32_t rank, MessagesUnderWay& under_way, std::function<void(std::string)> disagree)
      : rank_(rank), under_way_(under_way), disagree_(std::move(disagree)) {}
  void use(PeerMesh& mesh) { mesh_ = &mesh; }
  /// Offers the message. If kOffersMax other messages wait for the peer's receives, ends it with Errc::exhausted.
  void send(std::uint32_t peer, Message message);
  /// Receives a message. This rank must have a connection, or be making one, to every rank that may be the source.
  void receive(std::optional<std::uint32_t> source, Message message);
  /// Takes an offer or a want. Returns an error for a frame that no correct rank sends.
  [[nodiscard]] Status noted(std::uint32_t peer, const FrameHeader& note);
  void fail_all(const Error& error);
  [[nodiscard]] bool idle() const noexcept { return unanswered_ == 0 && !matching_.receives_wait(); }
  /// Describes an unfinished message whose call was before `before`; empty if there is no such message.
  [[nodiscard]] std::string overdue(transport::TimePoint before) const;

 private:
  struct Peer {
    std::uint64_t offers_sent = 0, offers_come = 0;
    std::map<std::uint64_t, Message> unanswered;  // by number: messages that were offered, without a want so far
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
