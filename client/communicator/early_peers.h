#pragma once
// The ranks whose message has come, and that no receive has served yet. They are in the order of their messages.
#include <cstdint>
#include <map>
#include <optional>

namespace tributary::client {

class EarlyPeers {
 public:
  /// Adds the peer at the end, unless it is in the list already.
  void add(std::uint32_t peer) {
    if (by_peer_.try_emplace(peer, next_).second) by_arrival_.emplace(next_++, peer);
  }
  void erase(std::uint32_t peer) {
    const auto it = by_peer_.find(peer);
    if (it == by_peer_.end()) return;
    by_arrival_.erase(it->second);
    by_peer_.erase(it);
  }
  [[nodiscard]] std::optional<std::uint32_t> first() const {
    return by_arrival_.empty() ? std::nullopt : std::optional(by_arrival_.begin()->second);
  }

 private:
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::uint32_t> by_arrival_;
  std::map<std::uint32_t, std::uint64_t> by_peer_;
};

}  // namespace tributary::client
