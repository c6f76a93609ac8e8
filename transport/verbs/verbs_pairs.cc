// Class VerbsConnection: connects its queue pairs with the peer's queue pairs, and puts the messages of all queue pairs
// in order.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/verbs/verbs_connection.h"
#include "transport/verbs/verbs_sealing.h"

namespace tributary::transport::verbs {

/// iWARP's connection manager makes its one queue pair, and iWARP devices have no writes with immediates.
bool VerbsConnection::made_by_manager() const noexcept {
  return id_->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

std::uint32_t VerbsConnection::pairs_wanted() const noexcept {
  if (made_by_manager() || seal_) return 1;
  return std::clamp(core_.settings().queue_pairs, 1U, kQueuePairsMax);
}

Greeting VerbsConnection::greeting_with_pairs() const {
  Greeting ours = greeting();
  ours.first_packet = number_24(opening_.first_packet);
  for (std::size_t i = 1; i < pairs_.size(); ++i) ours.further[i - 1] = number_24(pairs_[i].get()->qp_num);
  return ours;
}

/// Keeps as many queue pairs as both sides have. Each begins with a random packet number, so that late packets of an
/// older connection with the same queue pair numbers are not taken for its own.
Status VerbsConnection::join_pairs(const Greeting& theirs) {
  std::size_t count = 1;
  while (count < pairs_.size() && value_of(theirs.further[count - 1]) != 0) ++count;
  core_.statistics.queue_pairs -= pairs_.size() - count;
  while (pairs_.size() > count) pairs_.pop_back();
  if (made_by_manager()) return {};
  const RdmaPath& path = core_.settings().path;
  for (std::size_t i = 1; i < count; ++i) {
    if (auto ok = pairs_[i].prepare(*id_, path); !ok) return ok;
    post_first_receives(pairs_[i]);
    const QueuePair::Peer peer{.number = value_of(theirs.further[i - 1]),
                               .its_first_packet = value_of(theirs.first_packet),
                               .our_first_packet = opening_.first_packet};
    if (auto ok = pairs_[i].connect(*id_, path, &peer); !ok) return ok;
  }
  return pairs_.front().connect(*id_, path, nullptr);
}

void VerbsConnection::post_first_receives(QueuePair& pair) {
  for (std::uint32_t i = 0; i < credit_.depth(); ++i) pair.to_receive.push_back(i);
  static_cast<void>(post_receives(pair));  // not counted as consumed, because these are the first receives
}

/// True if no work is outstanding on the queue pairs after the first.
bool VerbsConnection::others_quiet() const noexcept {
  return std::ranges::all_of(pairs_,
                             [](const QueuePair& pair) { return pair.index == 0 || pair.posted == pair.retired; });
}

/// Takes a message if it is the next one, and then the waiting messages that follow it. Otherwise the message waits.
void VerbsConnection::came(const Came& what) {
  if (seal_) return VerbsSealing::came(*this, what);
  const auto early = early_by(what);
  if (!early) return;
  if (*early > 0) {
    if (!inbox_.keep_early(*early, what)) corrupt("two messages of one number");
    return;
  }
  take(what);
  while (!failed_) {
    const auto next = inbox_.next_early();
    if (!next) break;
    take(*next);
  }
}

/// Returns by how many numbers a message is early, which is less than the number of our receives (credit.h). Returns
/// none if the connection is broken.
std::optional<std::uint32_t> VerbsConnection::early_by(const Came& what) {
  std::uint32_t early = 0;
  if (what.written) {
    early = (number_of(what.immediate) - inbox_.came()) & kNumberMask;
  } else {
    if (what.bytes < sizeof(MessagePrefix)) {
      corrupt("a message without its prefix");
      return std::nullopt;
    }
    MessagePrefix prefix;
    std::memcpy(&prefix, receive(what.queue_pair, what.index).data(), sizeof prefix);
    early = prefix.number - inbox_.came();
  }
  if (early < credit_.depth()) return early;
  corrupt("a message with an impossible number");
  return std::nullopt;
}

}  // namespace tributary::transport::verbs
