#pragma once
// An event of the cluster: a change that a person wants to hear of. The manager keeps the last events in memory only.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tributary::manager {

enum class EventKind : std::uint8_t {
  group_made,
  group_adopted,  // the manager had lost a group, or its newest trees, and has them again from the job's record
  group_ended,
  tree_lost,   // a group saw an aggregator of its trees fail, or has no trees any more
  tree_moved,  // a group has other trees than before
  tree_back,   // a group on the fallback has trees again
  denied,      // a group got no trees
  straggler,   // a rank for which the others of its group wait
  straggler_over,
  aggregator_registered,
  aggregator_suspected,  // a group saw it fail
  aggregator_back,       // it has renewed its lease after that
  aggregator_expired,
  aggregator_left,
  drained,  // a drain has begun
  undrained,
};
[[nodiscard]] std::string_view to_string(EventKind kind) noexcept;

struct Event {
  std::uint64_t id = 0;      // higher than that of each earlier event, also of earlier managers; the log sets it
  std::int64_t time_ms = 0;  // milliseconds since 1970-01-01 UTC; the log sets it
  EventKind kind = EventKind::group_made;
  std::string text{};           // a sentence
  std::uint64_t group = 0;      // 0: the event is about an aggregator, and everybody may hear of it
  std::string job{}, tenant{};  // the job and the owner of the group
  std::string aggregator{};     // empty: the event is about no single aggregator
  std::string code{};           // code of the reason why the group has no trees; empty: there is none
  std::optional<std::uint32_t> rank{};
};

}  // namespace tributary::manager
