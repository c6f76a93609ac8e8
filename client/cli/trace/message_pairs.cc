#include "client/cli/trace/message_pairs.h"

#include <map>
#include <string_view>
#include <tuple>

namespace tributary::cli {
namespace {

/// The messages of one round of one operation from one rank to another.
struct Round {
  std::string_view group;
  std::uint32_t sender = 0, receiver = 0, peer_class = 0;
  std::uint64_t leaders = 0, operation = 0, sequence = 0;  // leaders: 1 for a message between leaders of hosts
  auto operator<=>(const Round&) const = default;
};

struct Ends {
  std::vector<SegmentStop> sent, came;
};

}  // namespace

std::vector<MessagePair> message_pairs(const std::vector<TracedRank>& ranks) {
  std::map<Round, Ends> rounds;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t event = 0; event < ranks[i].segments.size(); ++event) {
      const SegmentEvent& e = ranks[i].segments[event];
      if (!is_message(e)) continue;
      const bool sent = e.moment == SegmentMoment::sent_across;
      Ends& ends = rounds[{.group = ranks[i].group,
                           .sender = sent ? e.epoch : e.member,
                           .receiver = sent ? e.member : e.epoch,
                           .peer_class = e.lane,
                           .leaders = e.group,
                           .operation = e.operation,
                           .sequence = e.sequence}];
      (sent ? ends.sent : ends.came).push_back({.participant = i, .event = event});
    }
  }
  std::vector<MessagePair> pairs;
  for (const auto& [round, ends] : rounds) {
    if (ends.sent.size() != ends.came.size()) continue;
    for (std::size_t i = 0; i < ends.sent.size(); ++i) pairs.push_back({.sent = ends.sent[i], .came = ends.came[i]});
  }
  return pairs;
}

}  // namespace tributary::cli
