#pragma once
// The stations that have the IP addresses on this link, found by ARP (RFC 826) and neighbour discovery (RFC 4861). The
// table has a fixed size, so that no flood of addresses makes it grow.
//
//   (none) -- want() --> incomplete -- answer --> reachable -- 30 s --> stale -- used --> probing -- answer --+
//                            |                        ^                   |                  |               |
//                            |                        +-------------------|------------------|---------------+
//                            |                                            |                  |
//                 3 questions without an answer                   unused for long     3 questions without an answer
//                            v                                            v                  v
//                          (none)                                       (none)             (none)
//   (none) -- a neighbour asks for this host --> stale
//
// Any thread may call find(), which takes no lock: each place has a number that is odd while a writer changes the
// place. All other functions are called rarely, for control frames and timers, and take a mutex.
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
  std::uint64_t hash_seed = 0;                           // random: no sender knows which addresses share a bucket
  Clock::duration reachable = std::chrono::seconds(30);  // time for which an answer counts without a new question
  Clock::duration probe_interval = std::chrono::seconds(1);
  std::uint32_t probes_max = 3;
  Clock::duration unused = std::chrono::minutes(10);  // time without use after which a neighbour is forgotten
};

/// A question that must be asked now. It goes to the station that had the address last, or to all stations.
struct NeighbourProbe {
  IpAddress ip{};
  std::optional<MacAddress> at;
};

/// Facts about the message in which a neighbour gave its address.
struct NeighbourWord {
  bool is_answer = false;    // an answer to a question of this host
  bool asks_for_us = false;  // the neighbour wants to speak to this host
  bool may_replace = true;   // the answer counts even if another station is known to have the address
};

struct NeighbourCounts {
  std::uint64_t entries = 0;  // number of entries now
  std::uint64_t resolved = 0, failed = 0, moved = 0;
  std::uint64_t refused_full = 0;  // neighbours for which no place was left
};

class NeighbourTable {
 public:
  explicit NeighbourTable(const NeighbourSettings& settings);
  ~NeighbourTable();
  NeighbourTable(const NeighbourTable&) = delete;
  NeighbourTable& operator=(const NeighbourTable&) = delete;

  /// Finds the station with the address `ip`, if it is known, and marks it as used.
  [[nodiscard]] bool find(const IpAddress& ip, MacAddress& mac) const noexcept;
  /// A number that changes whenever a result of find() may change.
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }

  /// Begins to ask for `ip`, unless a question is under way.
  void want(const IpAddress& ip, TimePoint now);
  /// Notes that the station `mac` says that it has `ip`. An answer counts if a question was asked. Other messages
  /// change the entry, but do not prove that frames arrive in both directions. A new neighbour gets a place only if it
  /// asks for this host, and never the place of a neighbour in use.
  void heard(const IpAddress& ip, const MacAddress& mac, NeighbourWord word, TimePoint now);
  /// Writes the questions that are due now, as many as fit; ends questions that no neighbour has answered.
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
  std::size_t cursor_ = 0;  // place at which the next due() begins
};

}  // namespace tributary::transport::ethernet
