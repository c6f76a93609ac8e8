#include "tree-manager/planner/candidate.h"

#include <algorithm>
#include <iterator>

#include "tributary/protocol/assert.h"

namespace tributary::manager {

std::uint32_t CandidateBuilder::count(const Items& items) noexcept {
  std::uint32_t sum = 0;
  for (const Item& item : items) sum += item.count();
  return sum;
}

bool CandidateBuilder::build(const CandidateShape& shape, std::uint64_t weight, Candidate& out) {
  TRIBUTARY_ASSERT(shape.scope < sites_.sites.size(), "the root is looked for in site {} of {}", shape.scope,
                   sites_.sites.size());
  TRIBUTARY_ASSERT(shape.fan_in >= 2 && shape.fan_in <= kChildrenMax, "an aggregator would have {} children",
                   shape.fan_in);
  shape_ = shape;
  weight_ = weight;
  out_ = &out;
  std::ranges::move(out.nodes, std::back_inserter(spare_));
  out.nodes.clear();
  const std::uint32_t begin = sites_.views[shape.view].sites_begin;
  pending_.resize(sites_.sites.size());
  for (std::uint32_t s = begin; s <= shape.scope; ++s) pending_[s].clear();
  used_.assign(sites_.aggregators.size(), false);
  for (std::uint32_t s = begin; s <= shape.scope; ++s) {
    const Site& site = sites_.sites[s];
    Items& items = pending_[s];
    if (site.ranks_begin != site.ranks_end) items.push_back({.run = {s, site.ranks_begin, site.ranks_end}});
    if (s == shape.scope) return finish(site, items);
    const bool here = (shape.levels_mask >> site.level & 1U) != 0;
    if (here && count(items) >= 2) (void)reduce(site, items, 2);
    TRIBUTARY_ASSERT(site.parent > s && site.parent <= shape.scope, "site {} below site {} has parent {}", s,
                     shape.scope, site.parent);
    Items& above = pending_[site.parent];
    above.insert(above.end(), items.begin(), items.end());
  }
  return false;
}

void CandidateBuilder::forget_queues() {
  for (Queue& queue : queues_) queue.fan_in = 0;
}

/// Sorts once for many candidates, because the load does not change between two lanes.
const std::vector<std::uint32_t>& CandidateBuilder::queue_of(const Site& site) {
  queues_.resize(sites_.sites.size());
  Queue& queue = queues_[static_cast<std::size_t>(&site - sites_.sites.data())];
  if (queue.fan_in == shape_.fan_in || (queue.fan_in != 0 && queue.any_fan_in)) return queue.order;
  std::vector<std::pair<double, std::uint32_t>> busy;
  busy.reserve(site.aggregators_end - site.aggregators_begin);
  queue.any_fan_in = true;
  for (std::uint32_t a = site.aggregators_begin; a < site.aggregators_end; ++a) {
    const SiteAggregator& it = sites_.aggregators[a];
    const auto load = static_cast<double>(sites_.budget(it).load + weight_ * shape_.fan_in);
    busy.emplace_back(load / static_cast<double>(rate_or_assumed(it.line_rate_bits_per_second)), a);
    const SiteAggregator& first = sites_.aggregators[site.aggregators_begin];
    queue.any_fan_in = queue.any_fan_in && it.line_rate_bits_per_second == first.line_rate_bits_per_second;
  }
  std::ranges::sort(busy);
  queue.fan_in = shape_.fan_in;
  queue.order.clear();
  for (const auto& [seconds, a] : busy) queue.order.push_back(a);
  return queue.order;
}

/// Fills chosen_ with up to `wanted` unused aggregators of the site, the least loaded first. Returns their number.
std::uint32_t CandidateBuilder::choose(const Site& site, std::uint32_t wanted, std::uint32_t children_min) {
  chosen_.clear();
  const std::vector<std::uint32_t>& queue = queue_of(site);
  const auto take = [&](const auto& fits) {
    for (const std::uint32_t a : queue) {
      if (chosen_.size() == wanted) return;
      const SiteAggregator& it = sites_.aggregators[a];
      if (used_[a] || children_max(a) < children_min || !fits(it)) continue;
      if (rate_or_assumed(it.line_rate_bits_per_second) >= shape_.rate_min) chosen_.push_back(a);
    }
  };
  if (shape_.own_first) {
    take([&](const SiteAggregator& it) { return it.domain == site.domain; });
    take([&](const SiteAggregator& it) { return it.domain != site.domain; });
  } else {
    take([](const SiteAggregator&) { return true; });
  }
  return static_cast<std::uint32_t>(chosen_.size());
}

CandidateNode CandidateBuilder::fresh_node(std::uint32_t aggregator) {
  if (spare_.empty()) return {.aggregator = aggregator};
  CandidateNode node = std::move(spare_.back());
  spare_.pop_back();
  node.runs.clear();
  node.below.clear();
  node.aggregator = aggregator;
  node.parent = kNoParent;
  node.depth = 1;
  node.children = 0;
  return node;
}

/// Puts one more level of aggregators over the items; items for which there is no room stay. Returns false if it put no
/// aggregator.
bool CandidateBuilder::reduce(const Site& site, Items& items, std::uint32_t children_min) {
  const std::uint32_t before = count(items);
  std::uint32_t left = before;
  const std::uint32_t wanted = (left + shape_.fan_in - 1) / shape_.fan_in;
  std::uint32_t aggregators = choose(site, wanted, children_min);
  if (aggregators == 0) return false;
  const auto room = [&](std::uint32_t a) { return std::min(children_max(a), shape_.fan_in); };
  // The aggregators with the least room come first, so that aggregators with more room share the items that do not fit
  // there.
  std::stable_sort(chosen_.begin(), chosen_.end(), [&](std::uint32_t a, std::uint32_t b) { return room(a) < room(b); });
  Items& result = result_;
  result.clear();
  std::size_t at = 0;
  std::uint32_t offset = 0;
  std::uint32_t given = 0;
  for (const std::uint32_t a : chosen_) {
    const std::uint32_t share = std::min(room(a), (left + aggregators - 1) / aggregators);
    --aggregators;
    if (share < children_min) continue;
    give(a, share, items, at, offset, result);
    left -= share;
    ++given;
  }
  for (; at < items.size(); ++at) {
    Item rest = items[at];
    if (rest.node == kNoParent) rest.run.begin += offset;
    offset = 0;
    result.push_back(rest);
  }
  TRIBUTARY_ASSERT(count(result) == left + given, "{} of {} children are left, {} nodes are new, and {} need a parent",
                   left, before, given, count(result));
  items.swap(result);
  return given != 0;
}

void CandidateBuilder::attach(CandidateNode& node, std::uint32_t self, const Item& item) {
  node.children += item.count();
  if (item.node == kNoParent) {
    node.runs.push_back(item.run);
    return;
  }
  node.below.push_back(item.node);
  TRIBUTARY_ASSERT(item.node < out_->nodes.size() && item.node != self, "node {} gets child {}, of {}", self, item.node,
                   out_->nodes.size());
  CandidateNode& child = out_->nodes[item.node];
  TRIBUTARY_ASSERT(child.parent == kNoParent, "node {} gets parent {} after {}", item.node, self, child.parent);
  child.parent = self;
  node.depth = std::max(node.depth, child.depth + 1);
}

/// The time that the aggregator's link takes for one byte of each group, with this tree.
double CandidateBuilder::busy(const CandidateNode& node) const {
  const SiteAggregator& it = sites_.aggregators[node.aggregator];
  const auto load = static_cast<double>(sites_.budget(it).load + weight_ * (node.children + 1));
  return load / static_cast<double>(rate_or_assumed(it.line_rate_bits_per_second));
}

/// Makes a node over the next `children` items; the first `offset` ranks of the first item have a parent already.
void CandidateBuilder::give(std::uint32_t aggregator, std::uint32_t children, const Items& items, std::size_t& at,
                            std::uint32_t& offset, Items& out) {
  TRIBUTARY_ASSERT(!used_[aggregator], "aggregator {} stands twice in one tree", aggregator);
  TRIBUTARY_ASSERT(children >= 1 && children <= children_max(aggregator),
                   "aggregator {} gets {} children, of at most {}", aggregator, children, children_max(aggregator));
  used_[aggregator] = true;
  const auto self = static_cast<std::uint32_t>(out_->nodes.size());
  CandidateNode node = fresh_node(aggregator);
  while (children > 0) {
    TRIBUTARY_ASSERT(at < items.size(), "{} children are missing after {} items", children, items.size());
    Item part = items[at];
    if (part.node == kNoParent) {
      part.run.begin += offset;
      const std::uint32_t taken = std::min(children, part.run.end - part.run.begin);
      offset += taken;
      part.run.end = part.run.begin + taken;
      if (part.run.end == items[at].run.end) {
        ++at;
        offset = 0;
      }
    } else {
      ++at;
    }
    children -= part.count();
    attach(node, self, part);
  }
  out_->nodes.push_back(std::move(node));
  out.push_back({.node = self});
}

/// Makes an aggregator the parent of its siblings if no aggregator is left for another level. It chooses one with room
/// for all siblings, else the one with the most room; among equals the least busy, so that the lanes' roots differ.
bool CandidateBuilder::adopt(Items& items) {
  const auto room = [&](const Item& item) {
    if (item.node == kNoParent) return 0U;
    const CandidateNode& node = out_->nodes[item.node];
    const std::uint32_t most = children_max(node.aggregator);
    TRIBUTARY_ASSERT(node.children <= most, "aggregator {} has {} children, of at most {}", node.aggregator,
                     node.children, most);
    return most - node.children;
  };
  const std::uint32_t siblings = count(items) - 1;
  const auto fitness = [&](const Item& item) {
    return std::pair(std::min(room(item), siblings), item.node == kNoParent ? 0 : -busy(out_->nodes[item.node]));
  };
  const auto host = std::max_element(items.begin(), items.end(),
                                     [&](const Item& a, const Item& b) { return fitness(a) < fitness(b); });
  std::uint32_t left = host == items.end() ? 0 : room(*host);
  if (left == 0) return false;
  const std::uint32_t self = host->node;
  Items result{*host};
  for (std::size_t i = 0; i < items.size(); ++i) {
    Item item = items[i];
    if (item.node == self) continue;
    Item rest = item;
    if (item.node == kNoParent) {
      item.run.end = item.run.begin + std::min(left, item.count());
      rest.run.begin = item.run.end;
    }
    const bool fits = left > 0 && item.count() <= left;
    if (fits) {
      left -= item.count();
      attach(out_->nodes[self], self, item);
    }
    if (!fits || (item.node == kNoParent && rest.count() > 0)) result.push_back(rest);
  }
  items = std::move(result);
  return true;
}

bool CandidateBuilder::finish(const Site& site, Items& items) {
  const std::uint32_t depth_max = shape_.levels != 0 ? shape_.levels : shape_.levels_max;
  for (std::uint32_t round = 0; round <= 2 * kTreeLevelsMax; ++round) {
    const std::uint32_t left = count(items);
    if (left == 1 && items[0].node != kNoParent) {
      const CandidateNode& root = out_->nodes[items[0].node];
      TRIBUTARY_ASSERT(root.parent == kNoParent, "the root of {} nodes has parent {}", out_->nodes.size(), root.parent);
      const std::uint32_t depth = root.depth;
      if (depth > depth_max) return false;
      if (shape_.levels == 0 || depth == shape_.levels) {
        out_->depth = depth;
        out_->mixed = 0;
        for (const CandidateNode& node : out_->nodes)
          out_->mixed += !node.runs.empty() && !node.below.empty() ? 1U : 0U;
        return true;
      }
      // The request asks for a further level above the only root, although this level brings no gain.
      if (!reduce(site, items, 1)) return false;
      continue;
    }
    if (!reduce(site, items, left == 1 ? 1 : 2) && !adopt(items)) return false;
  }
  return false;
}

}  // namespace tributary::manager
