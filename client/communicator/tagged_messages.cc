#include "client/communicator/tagged_messages.h"

#include <utility>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::client {

void TaggedMessages::send(std::uint32_t peer, Message message) {
  TRIBUTARY_ASSERT(message.sends && message.tag != 0, "a message with tag {}", message.tag);
  Peer& to = peers_[peer];
  if (to.unanswered.size() >= kOffersMax)
    return message.on_done(fail(Errc::exhausted, describe(message, peer) + ": " + std::to_string(kOffersMax) +
                                                     " sends with tags to that rank wait for their receives"));
  const Offer offer{.from = rank_, .tag = message.tag, .number = to.offers_sent++, .signature = signature_of(message)};
  to.unanswered.emplace(offer.number, std::move(message));
  ++unanswered_;
  TRIBUTARY_ASSERT(to.unanswered.size() <= kOffersMax && to.unanswered.size() <= unanswered_,
                   "{} messages are offered to rank {}, {} to all", to.unanswered.size(), peer, unanswered_);
  if (peer == rank_) {
    if (auto receive = matching_.offered(offer)) match(offer, std::move(*receive));
    return;
  }
  FrameHeader header;
  header.type = FrameType::offer;
  header.operation = offer.number;
  header.sequence = offer.tag;
  header.set_signature(offer.signature);
  mesh_->link(PeerClass::tagged, peer).send(header, {}, 0);
}

void TaggedMessages::receive(std::optional<std::uint32_t> source, Message message) {
  TRIBUTARY_ASSERT(!message.sends && message.tag != 0, "a message with tag {}", message.tag);
  // Connect now: the higher of two ranks connects, and the higher rank may be the receiver, which waits for an offer.
  if (source && *source != rank_) static_cast<void>(mesh_->link(PeerClass::tagged, *source));
  if (const auto offer = matching_.called(source, message)) match(*offer, std::move(message));
}

Status TaggedMessages::noted(std::uint32_t peer, const FrameHeader& note) {
  return note.type == FrameType::offer ? on_offer(peer, note) : on_want(peer, note);
}

Status TaggedMessages::on_offer(std::uint32_t peer, const FrameHeader& note) {
  Peer& from = peers_[peer];
  if (note.operation != from.offers_come)
    return fail(Errc::corrupt, "it offers message " + std::to_string(note.operation) + " with a tag, after " +
                                   std::to_string(from.offers_come) + " earlier offers");
  if (note.sequence == 0 || note.sequence > UINT32_MAX)
    return fail(Errc::corrupt, "it offers a message with tag " + std::to_string(note.sequence));
  if (matching_.offers_of(peer) >= kOffersMax)
    return fail(Errc::corrupt, "it offers more than " + std::to_string(kOffersMax) + " messages that nobody receives");
  ++from.offers_come;
  const Offer offer{.from = peer,
                    .tag = static_cast<std::uint32_t>(note.sequence),
                    .number = note.operation,
                    .signature = note.signature()};
  if (auto receive = matching_.offered(offer)) match(offer, std::move(*receive));
  return {};
}

Status TaggedMessages::on_want(std::uint32_t peer, const FrameHeader& note) {
  Peer& to = peers_[peer];
  const auto it = to.unanswered.find(note.operation);
  if (it == to.unanswered.end())
    return fail(Errc::corrupt, "it wants message " + std::to_string(note.operation) +
                                   " with a tag, which was not offered to it, or which it has received");
  under_way_.begin(mesh_->link(PeerClass::tagged, peer), peer, answered(to, it), note.operation);
  return {};
}

Message TaggedMessages::answered(Peer& peer, std::map<std::uint64_t, Message>::iterator it) {
  Message message = std::move(it->second);
  peer.unanswered.erase(it);
  TRIBUTARY_ASSERT(unanswered_ > 0, "no message is offered");
  --unanswered_;
  return message;
}

void TaggedMessages::match(const Offer& offer, Message receive) {
  if (offer.from == rank_) return match_own(offer, receive);
  if (receive.on_source) receive.on_source(offer.from);
  const Signature expected = signature_of(receive);
  PeerLink& link = mesh_->link(PeerClass::tagged, offer.from);
  under_way_.begin(link, offer.from, std::move(receive), offer.number);
  if (offer.signature != expected)  // disagree_() ends the communicator
    return disagree_(disagreement(offer.from, offer.signature, rank_, expected, offer.tag));
  FrameHeader header;
  header.type = FrameType::want;
  header.operation = offer.number;
  link.send(header, {}, 0);
}

void TaggedMessages::match_own(const Offer& offer, const Message& receive) {
  Peer& self = peers_[rank_];
  const auto it = self.unanswered.find(offer.number);
  TRIBUTARY_ASSERT(it != self.unanswered.end(), "message {} to this rank itself is not offered", offer.number);
  const Message from = answered(self, it);
  finish_own(from, receive, rank_);
}

void TaggedMessages::fail_all(const Error& error) {
  std::vector<std::pair<std::uint32_t, Message>> waiting;
  for (auto& [peer, state] : peers_) {
    for (auto& [number, message] : std::exchange(state.unanswered, {})) waiting.emplace_back(peer, std::move(message));
  }
  unanswered_ = 0;
  for (auto& [peer, message] : waiting)
    message.on_done(fail(error.code, describe(message, peer) + ": " + error.message));
  matching_.fail_receives(error);
}

std::string TaggedMessages::overdue(transport::TimePoint before) const {
  for (const auto& [peer, state] : peers_) {
    if (state.unanswered.empty()) continue;
    const Message& oldest = state.unanswered.begin()->second;  // numbers grow in the order of the calls
    if (oldest.called_at < before) return describe(oldest, peer);
  }
  return matching_.overdue(before);
}

}  // namespace tributary::client
