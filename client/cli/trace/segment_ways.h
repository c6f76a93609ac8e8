#pragma once
// Finds the way of a segment through the trees: from a rank to its leaf, up to the root, and back; and the messages between
// ranks.
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/cli/trace/message_pairs.h"

namespace tributary::cli {

class SegmentWays {
 public:
  /// `parts` must outlive this object.
  explicit SegmentWays(const TraceParts& parts);

  /// Returns the moments that were found of the segment that this rank sent with this event, in their order. Each moment
  /// is the cause of the next one.
  [[nodiscard]] std::vector<SegmentStop> way_of(SegmentStop sent) const;
  /// Returns the messages between ranks.
  [[nodiscard]] const std::vector<MessagePair>& messages() const noexcept { return messages_; }

 private:
  struct Key {
    LaneKey lane;
    std::uint64_t sequence = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Found {
    std::size_t sent_up = kNone, sent_down = kNone, came_down = kNone;
    std::map<std::uint32_t, std::size_t> came_up{};  // by child
  };
  struct Parent {
    std::size_t aggregator = 0;
    std::uint32_t child = 0;
  };
  using Index = std::unordered_map<Key, Found, Hash>;

  [[nodiscard]] static Index index_of(const std::vector<SegmentEvent>& events);
  [[nodiscard]] const Found* find(std::size_t participant, const Key& key) const;

  const TraceParts& parts_;
  const std::vector<MessagePair> messages_;
  std::vector<Index> found_;  // by participant
  std::map<std::pair<LaneKey, std::uint32_t>, Parent> parent_of_rank_;
  std::map<std::pair<LaneKey, std::string>, Parent> parent_of_aggregator_;
};

/// Returns the event of a stop.
[[nodiscard]] const SegmentEvent& event_at(const TraceParts& parts, SegmentStop stop);

}  // namespace tributary::cli
