#include "tests/simulation/cluster/sim_manager.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {

SimManager::SimManager(Cluster& cluster, std::uint64_t seed)
    : cluster_(cluster),
      random_(seed),
      lanes_(seed * 0xD6E8FEB86659FD93ULL + 5),
      key_([&] {
        std::array<std::byte, kPrivateKeyBytes> bytes{};
        for (auto& b : bytes) b = static_cast<std::byte>(random_());
        return std::move(*SigningKey::from_seed(bytes));
      }()),
      verifier_(std::move(*TokenVerifier::create(key_.public_key()))) {}

void SimManager::when_there(std::function<void()> request) {
  if (!paused_) return request();
  waiting_.push_back(std::move(request));
}

void SimManager::pause() {
  if (paused_) return;
  paused_ = true;
  paused_at_ = cluster_.network().now();
}

/// Groups could not renew during the pause, so their leases begin again.
void SimManager::resume() {
  if (!paused_) return;
  paused_ = false;
  for (auto& [group, end] : leases_) end += cluster_.network().now() - paused_at_;
  for (auto& request : std::exchange(waiting_, {})) request();
}

Status SimManager::check_lease(std::uint64_t group) const {
  const auto lease = leases_.find(group);
  if (lease != leases_.end() && lease->second > cluster_.network().now()) return {};
  return fail(Errc::bad_argument, "there is no group " + std::to_string(group));
}

void SimManager::renew_lease(std::uint64_t group) {
  leases_[group] = cluster_.network().now() + std::chrono::seconds(cluster_.settings().lease_seconds);
}

/// Draws a tree: the first node is the root, and each further node is below a random node of the level above.
SimManager::Shape SimManager::draw(std::uint32_t nranks, const std::vector<std::uint32_t>& usable) {
  Shape shape;
  shape.levels = static_cast<std::uint32_t>(levels.value_or(1 + random_() % 3));
  std::vector<Node>& nodes = shape.nodes;
  nodes.push_back({.aggregator = usable[0]});
  std::vector<std::size_t> level{0};
  std::size_t next = 1;
  for (std::uint32_t d = 1; d < shape.levels && next < usable.size(); ++d) {
    const std::size_t width = std::min<std::size_t>({usable.size() - next, 1 + random_() % 3, nranks});
    if (d + 1 == shape.levels && width == 0) break;
    std::vector<std::size_t> below;
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t parent = level[i % level.size()];
      nodes.push_back({.aggregator = usable[next++], .parent = parent});
      below.push_back(nodes.size() - 1);
    }
    for (const std::size_t n : below) nodes[n].child = nodes[nodes[n].parent].children++;
    level = below;
  }
  std::vector<std::size_t> leaves;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].children == 0) leaves.push_back(i);
  }
  if (leaves.size() > nranks) return draw(nranks, {usable[0]});
  for (std::uint32_t r = 0; r < nranks; ++r)
    shape.leaf_of.push_back(leaves[r < leaves.size() ? r : random_() % leaves.size()]);
  return shape;
}

SimManager::Shape SimManager::whole(std::uint32_t nranks, const std::vector<std::uint32_t>& usable) const {
  Shape shape;
  std::vector<std::size_t> widths;  // from the leaves up
  for (std::size_t width = nranks; width > 1 || widths.empty();)
    widths.push_back(width = (width + *fan_out - 1) / *fan_out);
  shape.levels = static_cast<std::uint32_t>(widths.size());
  std::size_t above = 0;  // the first node of the level above
  for (std::size_t depth = 0; depth < widths.size(); ++depth) {
    const std::size_t first = shape.nodes.size();
    for (std::size_t i = 0; i < widths[widths.size() - 1 - depth]; ++i) {
      Node node{.aggregator = usable.at(shape.nodes.size())};
      if (depth > 0) {
        node.parent = above + i / *fan_out;
        node.child = shape.nodes[node.parent].children++;
      }
      shape.nodes.push_back(node);
    }
    above = first;
  }
  for (std::uint32_t r = 0; r < nranks; ++r) shape.leaf_of.push_back(above + r / *fan_out);
  return shape;
}

void SimManager::seat_ranks(Shape& shape) {
  std::vector<Node>& nodes = shape.nodes;
  for (std::uint32_t rank = 0; rank < shape.leaf_of.size(); ++rank) {
    const std::size_t leaf = shape.leaf_of[rank];
    shape.seat_of.push_back(nodes[leaf].children++);
    for (std::size_t n = leaf; n != SIZE_MAX; n = nodes[n].parent) nodes[n].lowest = std::min(nodes[n].lowest, rank);
  }
}

const std::string& SimManager::host(const Draft& draft, std::size_t node) const {
  return cluster_.aggregators()[draft.shape.nodes[node].aggregator]->name();
}

Token SimManager::sign(const Draft& draft, std::size_t node, ChildKind kind, std::uint32_t child,
                       std::uint32_t rank) const {
  const Node& at = draft.shape.nodes[node];
  const bool root = at.parent == SIZE_MAX;
  TokenClaims c;
  c.job = "simulation";
  c.aggregator = host(draft, node);
  c.group = draft.group;
  c.epoch = draft.epoch;
  c.lane = static_cast<std::uint8_t>(draft.lane);
  c.kind = kind;
  c.child = static_cast<std::uint16_t>(child);
  c.children = static_cast<std::uint16_t>(at.children);
  c.window = static_cast<std::uint16_t>(draft.window);
  c.segment_bytes = cluster_.settings().segment_bytes;
  c.rank = rank;
  c.ranks = draft.nranks;
  c.root = root;
  c.parent_host = root ? "" : host(draft, at.parent);
  c.parent_port = root ? 0 : kAggregatorPort;
  c.expires_at = cluster_.unix_seconds("manager") + 120;
  return key_.sign(c).value();
}

LaneEntry SimManager::entry_of(const Draft& draft, std::uint32_t rank) const {
  const std::vector<Node>& nodes = draft.shape.nodes;
  const std::size_t leaf = draft.shape.leaf_of[rank];
  LaneEntry entry;
  entry.aggregator = {host(draft, leaf), kAggregatorPort};
  entry.aggregator_name = host(draft, leaf);
  entry.tokens.push_back(sign(draft, leaf, ChildKind::rank, draft.shape.seat_of[rank], rank));
  for (std::size_t n = leaf; nodes[n].parent != SIZE_MAX; n = nodes[n].parent)
    entry.tokens.push_back(sign(draft, nodes[n].parent, ChildKind::aggregator, nodes[n].child, nodes[n].lowest));
  return entry;
}

Result<LaneDescriptor> SimManager::plan_lane(std::uint64_t group, std::uint32_t epoch, std::uint32_t lane,
                                             std::uint32_t nranks, std::vector<std::uint32_t> usable) {
  if (!fan_out) std::shuffle(usable.begin(), usable.end(), random_);
  const ClusterSettings& settings = cluster_.settings();
  const bool differ = settings.weight_max > 1;
  Draft draft{.group = group,
              .epoch = epoch,
              .lane = lane,
              .nranks = nranks,
              .window = differ ? 1 + static_cast<std::uint32_t>(lanes_() % settings.window) : settings.window,
              .shape = fan_out ? whole(nranks, usable) : draw(nranks, usable)};
  seat_ranks(draft.shape);
  LaneDescriptor d;
  d.window = draft.window;
  d.segment_bytes = settings.segment_bytes;
  if (differ) d.weight = 1 + static_cast<std::uint32_t>(lanes_() % settings.weight_max);
  d.levels = draft.shape.levels;
  for (std::uint32_t rank = 0; rank < nranks; ++rank) d.entries.push_back(entry_of(draft, rank));
  return d;
}

Result<GroupDescriptor> SimManager::plan(std::uint64_t group, std::uint32_t epoch, std::uint32_t nranks,
                                         std::uint32_t lanes, const std::vector<std::string>& failed) {
  ++plans;
  told_failed.push_back(failed);
  std::vector<std::uint32_t> usable;
  for (std::uint32_t i = 0; i < cluster_.aggregators().size(); ++i) {
    // Like the real manager, it learns late that an aggregator is dead: sometimes it plans with a dead aggregator.
    if (std::ranges::find(failed, cluster_.aggregators()[i]->name()) != failed.end()) continue;
    if (cluster_.aggregators()[i]->alive() || (!fan_out && random_() % 8 == 0)) usable.push_back(i);
  }
  GroupDescriptor d;
  d.group = group;
  d.epoch = epoch;
  d.job = "simulation";
  d.lease_seconds = cluster_.settings().lease_seconds;
  if (usable.empty() || (!fan_out && random_() % 16 == 0)) {
    d.reason = "no aggregator has room";
    return d;
  }
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    auto planned = plan_lane(group, epoch, lane, nranks, usable);
    if (!planned) return std::unexpected(planned.error());
    d.lanes.push_back(std::move(*planned));
  }
  d.rates = cluster_.settings().rates;
  return d;
}

}  // namespace tributary::simulation
