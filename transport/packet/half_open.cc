#include "transport/packet/half_open.h"

#include <algorithm>
#include <cstring>

#include "transport/packet/address.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {
namespace {

/// Returns the network (/64) of an IPv6 address, or the whole of an IPv4 address.
std::uint64_t source_of(const PacketAddress& address) noexcept {
  std::uint64_t source = 0;
  std::memcpy(&source, address.ip.data() + (is_ipv4(address) ? sizeof source : 0), sizeof source);
  return source;
}

}  // namespace

std::uint64_t HalfOpen::in_the_way(const PacketAddress& from) const noexcept {
  if (order_.size() < most_ || order_.empty()) return 0;
  const std::uint64_t source = source_of(from);
  const auto count = of_source_.find(source);
  if (count == of_source_.end() || count->second < std::max<std::size_t>(most_ / kShare, 1)) return order_.front().id;
  const auto oldest = std::ranges::find(order_, source, &Entry::source);
  TRIBUTARY_ASSERT(oldest != order_.end(), "a source has {} half-open connections, and none is found", count->second);
  return oldest->id;
}

void HalfOpen::add(std::uint64_t id, const PacketAddress& from) {
  order_.push_back({id, source_of(from)});
  const bool is_new = by_id_.emplace(id, std::prev(order_.end())).second;
  TRIBUTARY_ASSERT(id != 0 && is_new, "connection {} is half open twice", id);
  ++of_source_[order_.back().source];
  TRIBUTARY_ASSERT(by_id_.size() == order_.size(), "{} connections are half open, of {} in order", by_id_.size(),
                   order_.size());
}

void HalfOpen::remove(std::uint64_t id) noexcept {
  const auto at = by_id_.find(id);
  if (at == by_id_.end()) return;
  const auto count = of_source_.find(at->second->source);
  TRIBUTARY_ASSERT(count != of_source_.end() && count->second > 0,
                   "connection {} comes from a source without connections", id);
  if (--count->second == 0) of_source_.erase(count);
  order_.erase(at->second);
  by_id_.erase(at);
}

}  // namespace tributary::transport::packet
