#pragma once
// Connections whose opener has shown a cookie, but has not sent its first packet yet. Their number is bounded: when all
// places are taken, a newcomer takes the place of another connection.
//
// The newcomer takes the place of the oldest connection: an honest opener sends its packet within a round trip, so the
// oldest is the least likely to be honest. But a source with many connections must not displace other sources: if it
// has its share of the places, it displaces its own oldest connection. No host can forge a source, because the cookies
// go to its address. All addresses of an IPv6 network (/64) count as one source, because one host may have them all.
#include <cstdint>
#include <list>
#include <unordered_map>

#include "transport/packet/port.h"

namespace tributary::transport::packet {

class HalfOpen {
 public:
  explicit HalfOpen(std::size_t most) : most_(most) {}

  /// The oldest connection; 0: there is none.
  [[nodiscard]] std::uint64_t oldest() const noexcept { return order_.empty() ? 0 : order_.front().id; }
  /// The connection that must make place for a newcomer from `from`; 0: a place is free.
  [[nodiscard]] std::uint64_t in_the_way(const PacketAddress& from) const noexcept;
  /// Adds `id`, which is not 0 and not in the list yet.
  void add(std::uint64_t id, const PacketAddress& from);
  /// Removes `id`; does nothing if it is not in the list.
  void remove(std::uint64_t id) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }

 private:
  static constexpr std::size_t kShare = 8;  // divisor: one source's share is an eighth of the places

  struct Entry {
    std::uint64_t id, source;
  };
  std::size_t most_;
  std::list<Entry> order_;  // the oldest first
  std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_id_;
  std::unordered_map<std::uint64_t, std::size_t> of_source_;
};

}  // namespace tributary::transport::packet
