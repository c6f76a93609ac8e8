#pragma once
// The stations that have the IP addresses on this link, found by ARP (RFC 826) and neighbour discovery (RFC 4861). The
// table has a fixed size, so that no flood of addresses makes it grow.
//
//   (none) -- want() --> incomplete -- answer --> reachable -- 30 s --> stale -- used --> probing -- answer -->
//   reachable
//                            |                                            |                  |
//                       3 questions without an answer: (none)      unused for long: (none)   3 without an answer:
//                       (none)
//   (none) -- a neighbour asks for us --> stale
//
// find() may be called from any thread and takes no lock: each place is guarded by a number that is odd while it is
// written. All other calls are rare, come with control frames and timers, and take a mutex.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "transport/ethernet/addresses.h"

namespace tributary::transport::ethernet {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

struct NeighbourSettings {
  std::uint32_t buckets = 128;                           // buckets of 8 neighbours each; a power of two
  std::uint64_t hash_seed = 0;                           // random, so that nobody knows which addresses share a bucket
  Clock::duration reachable = std::chrono::seconds(30);  // an answer is believed without asking again
  Clock::duration probe_interval = std::chrono::seconds(1);
  std::uint32_t probes_max = 3;
  Clock::duration unused = std::chrono::minutes(10);  // time without use after which a neighbour is forgotten
};

/// A question that must be asked now. It goes to the station that is believed to have the address, or to all stations.
struct NeighbourProbe {
  IpAddress ip{};
  std::optional<MacAddress> at;
};

/// The way in which a neighbour said where it is.
struct NeighbourWord {
  bool is_answer = false;    // an answer to a question of this host
  bool asks_for_us = false;  // the neighbour wants to speak to this host
  bool may_replace = true;   // an answer that counts even if another station was known to have the address
};

struct NeighbourCounts {
  std::uint64_t entries = 0;  // entries now
  std::uint64_t resolved = 0, failed = 0, moved = 0;
  std::uint64_t refused_full = 0;  // strangers for whom no place was left
};

class NeighbourTable {
 public:
  explicit NeighbourTable(const NeighbourSettings& settings);
  ~NeighbourTable();
  NeighbourTable(const NeighbourTable&) = delete;
  NeighbourTable& operator=(const NeighbourTable&) = delete;

  /// Finds the station of `ip`, if it is known, and marks it as used.
  [[nodiscard]] bool find(const IpAddress& ip, MacAddress& mac) const noexcept;
  /// Changes whenever a result of find() may change.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Begins to ask for `ip`, unless a question is under way.
  void want(const IpAddress& ip, TimePoint now);
  /// `mac` says that it has `ip`. An answer is believed if a question was asked; other words change the entry, but do
  /// not prove that frames get through both ways. A new neighbour gets a place only if it asks for this host, and only
  /// a place that no neighbour in use has.
  void heard(const IpAddress& ip, const MacAddress& mac, NeighbourWord word, TimePoint now);
  /// Takes the neighbours that must be asked now, as many as fit; ends questions that nobody has answered.
  [[nodiscard]] std::size_t due(TimePoint now, std::span<NeighbourProbe> probes);
  [[nodiscard]] NeighbourCounts counts() const;

 private:
  struct Place;
  static constexpr std::size_t kWays = 8;

  [[nodiscard]] std::span<Place> bucket_of(const IpAddress& ip) const noexcept;
  [[nodiscard]] Place* place_of(const IpAddress& ip) const noexcept;
  Place* place_for_ours(const IpAddress& ip) noexcept;
  Place* place_for_stranger(const IpAddress& ip) noexcept;
  void publish(Place& place, const IpAddress& ip, const MacAddress& mac, bool usable) noexcept;
  void forget(Place& place) noexcept;
  void believe(Place& place, const IpAddress& ip, const MacAddress& mac, bool confirmed, TimePoint now) noexcept;
  bool step(Place& place, TimePoint now, NeighbourProbe& probe) noexcept;

  const NeighbourSettings settings_;
  const std::size_t places_count_;
  const std::unique_ptr<Place[]> places_;
  std::atomic<std::uint32_t> generation_{0};
  mutable std::mutex mutex_;  // taken by writers
  NeighbourCounts counts_;
  std::size_t cursor_ = 0;  // where due() goes on
};

}  // namespace tributary::transport::ethernet
