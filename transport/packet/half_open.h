#pragma once
// Connections whose opener has shown a cookie, and whose first packet is awaited. Their number is bounded: when all
// places are taken, a newcomer takes another's.
//
// Which one: an honest opener sends its packet within a round trip, so the oldest is the least likely to be honest. But
// a flooder must not make others old: a source that has its share of the places already displaces its own oldest
// connection. Sources cannot be forged, as the cookies go to their addresses. The addresses of one IPv6 network (/64),
// which one host may have all to itself, count as one source.
#include <cstdint>
#include <list>
#include <unordered_map>

#include "transport/packet/port.h"

namespace tributary::transport::packet {

class HalfOpen {
 public:
  explicit HalfOpen(std::size_t most) : most_(most) {}

  /// 0: there is none.
  [[nodiscard]] std::uint64_t oldest() const noexcept { return order_.empty() ? 0 : order_.front().id; }
  /// The connection that must make place for a newcomer from `from`; 0: there is place.
  [[nodiscard]] std::uint64_t in_the_way(const PacketAddress& from) const noexcept;
  /// `id`, not 0, is not in the list yet.
  void add(std::uint64_t id, const PacketAddress& from);
  /// Does nothing if it is not in the list.
  void remove(std::uint64_t id) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }

 private:
  static constexpr std::size_t kShare = 8;  // one source's share: an eighth of the places

  struct Entry {
    std::uint64_t id, source;
  };
  std::size_t most_;
  std::list<Entry> order_;  // the oldest first
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_id_;
  std::unordered_map<std::uint64_t, std::size_t> of_source_;
};

}  // namespace tributary::transport::packet
