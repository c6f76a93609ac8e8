#include "client/cli/trace/segment_ways.h"

namespace tributary::cli {
namespace {

constexpr int kWayLevelsMax = 16;  // names of children may form a circle, if an aggregator lies

const std::vector<SegmentEvent>& segments_of(const TraceParts& parts, std::size_t participant) {
  const std::size_t ranks = parts.ranks.size();
  return participant < ranks ? parts.ranks[participant].segments : parts.aggregators[participant - ranks].segments;
}

}  // namespace

const SegmentEvent& event_at(const TraceParts& parts, SegmentStop stop) {
  return segments_of(parts, stop.participant)[stop.event];
}

std::size_t SegmentWays::Hash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = key.sequence;
  for (const std::uint64_t part : {key.lane.group, std::uint64_t{key.lane.epoch}, std::uint64_t{key.lane.lane}}) {
    hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

SegmentWays::SegmentWays(const TraceParts& parts) : parts_(parts), messages_(message_pairs(parts.ranks)) {
  for (std::size_t i = 0; i < parts.ranks.size() + parts.aggregators.size(); ++i)
    found_.push_back(index_of(segments_of(parts, i)));
  for (std::size_t a = 0; a < parts.aggregators.size(); ++a) {
    for (const auto& [lane, children] : parts.aggregators[a].lanes) {
      for (std::uint32_t child = 0; child < children.size(); ++child) {
        const Parent parent{.aggregator = a, .child = child};
        if (children[child].rank) parent_of_rank_[{lane, *children[child].rank}] = parent;
        if (!children[child].aggregator.empty()) parent_of_aggregator_[{lane, children[child].aggregator}] = parent;
      }
    }
  }
}

SegmentWays::Index SegmentWays::index_of(const std::vector<SegmentEvent>& events) {
  Index index;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (is_message(events[i])) continue;
    Found& found = index[{lane_of(events[i]), events[i].sequence}];
    switch (events[i].moment) {
      case SegmentMoment::sent_up:
        found.sent_up = i;
        break;
      case SegmentMoment::came_up:
        found.came_up[events[i].member] = i;
        break;
      case SegmentMoment::sent_down:
        found.sent_down = i;
        break;
      case SegmentMoment::came_down:
        found.came_down = i;
        break;
      case SegmentMoment::sent_across:
      case SegmentMoment::came_across:
        break;
    }
  }
  return index;
}

const SegmentWays::Found* SegmentWays::find(std::size_t participant, const Key& key) const {
  const auto found = found_[participant].find(key);
  return found == found_[participant].end() ? nullptr : &found->second;
}

std::vector<SegmentStop> SegmentWays::way_of(SegmentStop sent) const {
  const SegmentEvent& event = event_at(parts_, sent);
  const Key key{.lane = lane_of(event), .sequence = event.sequence};
  std::vector<SegmentStop> way{sent};
  const auto add = [&way](std::size_t participant, std::size_t event_number) {
    if (event_number != kNone) way.push_back({.participant = participant, .event = event_number});
  };
  std::vector<std::size_t> passed;  // the aggregators' participants, from the leaf to the root
  const auto leaf = parent_of_rank_.find({key.lane, event.member});
  const Parent* parent = leaf == parent_of_rank_.end() ? nullptr : &leaf->second;
  for (int level = 0; parent != nullptr && level < kWayLevelsMax; ++level) {
    const std::size_t participant = parts_.ranks.size() + parent->aggregator;
    const Found* const here = find(participant, key);
    if (here != nullptr && here->came_up.contains(parent->child)) add(participant, here->came_up.at(parent->child));
    passed.push_back(participant);
    const auto above = parent_of_aggregator_.find({key.lane, parts_.aggregators[parent->aggregator].name});
    parent = above == parent_of_aggregator_.end() ? nullptr : &above->second;
    if (here != nullptr && parent != nullptr) add(participant, here->sent_up);
  }
  for (auto participant = passed.rbegin(); participant != passed.rend(); ++participant) {
    const Found* const here = find(*participant, key);
    if (here == nullptr) continue;
    if (participant != passed.rbegin()) add(*participant, here->came_down);
    add(*participant, here->sent_down);
  }
  if (const Found* const own = find(sent.participant, key); own != nullptr) add(sent.participant, own->came_down);
  return way;
}

}  // namespace tributary::cli
