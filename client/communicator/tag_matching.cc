#include "client/communicator/tag_matching.h"

#include "tributary/protocol/assert.h"

namespace tributary::client {
namespace {
constexpr std::uint64_t kAnyRank = UINT64_MAX;
}  // namespace

std::optional<std::uint64_t> TagMatching::first(const ByRank& order, std::uint32_t tag, std::uint64_t rank) {
  const auto it = order.lower_bound({tag, rank, 0});
  if (it == order.end() || std::get<0>(*it) != tag || std::get<1>(*it) != rank) return std::nullopt;
  return std::get<2>(*it);
}

std::optional<Message> TagMatching::offered(const Offer& offer) {
  const auto named = first(receives_from_, offer.tag, offer.from), any = first(receives_from_, offer.tag, kAnyRank);
  if (!named && !any) {
    const std::uint64_t key = next_++;
    offers_.emplace(std::pair(offer.tag, key), offer);
    offers_from_.emplace(offer.tag, offer.from, key);
    ++kept_[offer.from];
    return std::nullopt;
  }
  const bool takes_any = any && (!named || *any < *named);
  const std::uint64_t key = takes_any ? *any : *named;
  receives_from_.erase({offer.tag, takes_any ? kAnyRank : offer.from, key});
  const auto it = receives_.find(key);
  TRIBUTARY_ASSERT(it != receives_.end(), "receive {} of tag {} is listed and not kept", key, offer.tag);
  TRIBUTARY_ASSERT(it->second.message.tag == offer.tag && it->second.source.value_or(offer.from) == offer.from,
                   "an offer of rank {} with tag {} meets tag {}", offer.from, offer.tag, it->second.message.tag);
  std::optional<Message> message(std::move(it->second.message));
  receives_.erase(it);
  TRIBUTARY_ASSERT(receives_.size() == receives_from_.size(), "{} receives wait, {} by rank", receives_.size(),
                   receives_from_.size());
  return message;
}

std::optional<Offer> TagMatching::called(std::optional<std::uint32_t> source, Message& message) {
  const auto named = source ? first(offers_from_, message.tag, *source) : std::nullopt;
  const auto it = offers_.lower_bound({message.tag, named.value_or(0)});
  if (source ? !named.has_value() : it == offers_.end() || it->first.first != message.tag) {
    const std::uint64_t key = next_++;
    receives_from_.emplace(message.tag, source ? *source : kAnyRank, key);
    receives_.emplace(key, Receive{source, std::move(message)});
    return std::nullopt;
  }
  const Offer offer = it->second;
  TRIBUTARY_ASSERT(offer.tag == message.tag && (!source || offer.from == *source), "tag {} of rank {} for tag {}",
                   offer.tag, offer.from, message.tag);
  offers_from_.erase({offer.tag, offer.from, it->first.second});
  offers_.erase(it);
  const auto kept = kept_.find(offer.from);
  TRIBUTARY_ASSERT(kept != kept_.end() && kept->second > 0 && offers_.size() == offers_from_.size(),
                   "{} offers are kept, {} by rank", offers_.size(), offers_from_.size());
  if (--kept->second == 0) kept_.erase(kept);
  return offer;
}

std::size_t TagMatching::offers_of(std::uint32_t rank) const {
  const auto it = kept_.find(rank);
  return it == kept_.end() ? 0 : it->second;
}

void TagMatching::fail_receives(const Error& error) {
  receives_from_.clear();
  for (auto& [key, one] : std::exchange(receives_, {}))
    one.message.on_done(fail(error.code, describe(one.message, one.source) + ": " + error.message));
}

std::string TagMatching::overdue(transport::TimePoint before) const {
  if (receives_.empty()) return {};
  const Receive& oldest = receives_.begin()->second;  // keys grow in the order of the calls
  return oldest.message.called_at < before ? describe(oldest.message, oldest.source) : std::string();
}

}  // namespace tributary::client
