#include "tests/simulation/cluster/cluster.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace tributary::simulation {

using namespace std::chrono_literals;
using transport::Duration;
using transport::TimePoint;

namespace {
constexpr std::uint16_t kAggregatorPort = 7471;
constexpr std::uint16_t kRankPort = 7000;
constexpr auto kTick = 20ms;
}  // namespace

// ---- manager

SimManager::SimManager(Cluster& cluster, std::uint64_t seed)
    : cluster_(cluster),
      random_(seed),
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

/// Groups could not renew meanwhile, so their leases begin anew.
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

/// Draws a tree: the first node is the root, and each further one hangs below a random node of the level above.
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

Result<LaneDescriptor> SimManager::plan_lane(std::uint64_t group, std::uint32_t epoch, std::uint32_t lane,
                                             std::uint32_t nranks, std::vector<std::uint32_t> usable) {
  if (!fan_out) std::shuffle(usable.begin(), usable.end(), random_);
  Shape shape = fan_out ? whole(nranks, usable) : draw(nranks, usable);
  std::vector<Node>& nodes = shape.nodes;
  struct Place {
    std::size_t leaf;
    std::uint32_t child;
  };
  std::vector<Place> places(nranks);
  for (std::uint32_t r = 0; r < nranks; ++r) {
    const std::size_t leaf = shape.leaf_of[r];
    places[r] = {leaf, nodes[leaf].children++};
    for (std::size_t n = leaf; n != SIZE_MAX; n = nodes[n].parent) nodes[n].lowest = std::min(nodes[n].lowest, r);
  }
  const auto host = [&](std::size_t n) { return cluster_.aggregators()[nodes[n].aggregator]->name(); };
  const auto token = [&](std::size_t n, ChildKind kind, std::uint32_t child, std::uint32_t rank) {
    const bool root = nodes[n].parent == SIZE_MAX;
    TokenClaims c;
    c.job = "simulation";
    c.aggregator = host(n);
    c.group = group;
    c.epoch = epoch;
    c.lane = static_cast<std::uint8_t>(lane);
    c.kind = kind;
    c.child = static_cast<std::uint16_t>(child);
    c.children = static_cast<std::uint16_t>(nodes[n].children);
    c.window = static_cast<std::uint16_t>(cluster_.settings().window);
    c.segment_bytes = cluster_.settings().segment_bytes;
    c.rank = rank;
    c.ranks = nranks;
    c.root = root;
    c.parent_host = root ? "" : host(nodes[n].parent);
    c.parent_port = root ? 0 : kAggregatorPort;
    c.expires_at = cluster_.unix_seconds("manager") + 120;
    return key_.sign(c).value();
  };
  LaneDescriptor d;
  d.window = cluster_.settings().window;
  d.segment_bytes = cluster_.settings().segment_bytes;
  d.levels = shape.levels;
  for (std::uint32_t r = 0; r < nranks; ++r) {
    LaneEntry entry;
    entry.aggregator = {host(places[r].leaf), kAggregatorPort};
    entry.aggregator_name = host(places[r].leaf);
    entry.tokens.push_back(token(places[r].leaf, ChildKind::rank, places[r].child, r));
    for (std::size_t n = places[r].leaf; nodes[n].parent != SIZE_MAX; n = nodes[n].parent) {
      entry.tokens.push_back(token(nodes[n].parent, ChildKind::aggregator, nodes[n].child, nodes[n].lowest));
    }
    d.entries.push_back(std::move(entry));
  }
  return d;
}

Result<GroupDescriptor> SimManager::plan(std::uint64_t group, std::uint32_t epoch, std::uint32_t nranks,
                                         std::uint32_t lanes, const std::vector<std::string>& failed) {
  ++plans;
  told_failed.push_back(failed);
  std::vector<std::uint32_t> usable;
  for (std::uint32_t i = 0; i < cluster_.aggregators().size(); ++i) {
    // Like the real manager, it learns of a death late: now and then it plans with a dead aggregator.
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
  return d;
}

// ---- aggregator

SimAggregator::SimAggregator(Cluster& cluster, std::uint32_t index)
    : cluster_(cluster), name_("aggregator" + std::to_string(index)) {
  start();
}

void SimAggregator::start() {
  auto& network = cluster_.network();
  auto& transport = cluster_.between(name_, network.alive(name_) ? network.transport(name_) : network.restart(name_));
  budget_ = std::make_unique<aggregator::MemoryBudget>(64U << 20);
  aggregator::WorkerSettings settings;
  settings.name = name_;
  settings.form_limit = 2s;
  worker_ = std::make_unique<aggregator::Worker>(transport, cluster_.manager().verifier(), *budget_, settings,
                                                 [this] { return cluster_.unix_seconds(name_); });
  listener_ = std::move(*transport.listen({name_, kAggregatorPort}, *worker_));
  network.on_due(name_, [this, &transport] {
    transport.poll(Duration::zero());
    if (!worker_) return;
    worker_->tick(transport.now());
    cluster_.network().wake_at(name_, transport.now() + kTick);
  });
  network.wake_at(name_, network.now() + kTick);
}

void SimAggregator::kill() {
  if (!alive()) return;
  cluster_.network().kill(name_);
  listener_.reset();
  worker_.reset();
}

// ---- rank

class SimRank::Service final : public client::GroupService {
 public:
  Service(Cluster& cluster, std::uint32_t nranks)
      : cluster_(cluster), nranks_(nranks), alive_(std::make_shared<bool>(true)) {}
  ~Service() override { *alive_ = false; }
  void request(const client::GroupRequest& request, DescriptorAnswer answer) override {
    lanes_ = request.lanes;
    later([this, answer = std::move(answer)] { respond(0, 1, {}, answer); });
  }
  void rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed, bool in_use,
               DescriptorAnswer answer) override {
    if (in_use) ++cluster_.manager().moves;
    later([this, group, epoch, failed, answer = std::move(answer)] { respond(group, epoch + 1, failed, answer); });
  }
  void places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
              PageAnswer answer) override {
    later([this, group, epoch, first, count, answer = std::move(answer)] {
      if (const Status known = check(group); !known) return answer(std::unexpected(known.error()));
      if (whole_.epoch != epoch) return answer(fail(Errc::bad_argument, "the group has other trees"));
      TokenPage page{.group = whole_.group, .epoch = epoch, .first_rank = first, .lanes = {}};
      for (const LaneDescriptor& lane : whole_.lanes) {
        const auto begin = lane.entries.begin() + first;
        page.lanes.emplace_back(begin, begin + count);
      }
      answer(token_page_from_json(to_json(page)));
    });
  }
  void renew(std::uint64_t group, std::function<void(Result<client::GroupLease>)> answer) override {
    later([this, group, answer = std::move(answer)] {
      if (const Status known = check(group); !known) return answer(std::unexpected(known.error()));
      cluster_.manager().renew_lease(group);
      answer(client::GroupLease{.better_trees = cluster_.below(100) < cluster_.settings().advice_percent,
                                .why = "others would do better"});
    });
  }
  void release(std::uint64_t group) override { cluster_.manager().release(group); }

 private:
  void later(std::function<void()> call) {
    cluster_.network().call_at(cluster_.network().now() + 1ms, [this, alive = alive_, call = std::move(call)] {
      if (!*alive) return;
      cluster_.manager().when_there([alive, call] {
        if (*alive) call();
      });
    });
  }
  /// Checks that the manager can be asked, and knows the group.
  [[nodiscard]] Status check(std::uint64_t group) {
    SimManager& manager = cluster_.manager();
    if (!manager.reachable || (manager.refuse_percent > 0 && cluster_.below(100) < manager.refuse_percent))
      return fail(Errc::unreachable, "the manager does not answer");
    const Status known = group == 0 ? Status{} : manager.check_lease(group);
    manager.forgotten += known ? 0U : 1U;
    return known;
  }
  void respond(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed,
               const DescriptorAnswer& answer) {
    if (cluster_.manager().silent) return;
    if (const Status known = check(group); !known) return answer(std::unexpected(known.error()));
    if (group == 0) group = cluster_.manager().next_group++;
    cluster_.manager().renew_lease(group);
    auto planned = cluster_.manager().plan(group, epoch, nranks_, lanes_, failed);
    // Every other group gets its places by pages, even if it has few ranks.
    if (planned && group % 2 == 0) {
      whole_ = *planned;
      for (LaneDescriptor& lane : planned->lanes) lane.entries.clear();
    }
    answer(std::move(planned));
  }
  Cluster& cluster_;
  const std::uint32_t nranks_;
  std::uint32_t lanes_ = 1;
  GroupDescriptor whole_;  // the descriptor of a group that gets its places by pages
  std::shared_ptr<bool> alive_;
};

SimRank::SimRank(Cluster& cluster, std::uint32_t group, std::uint32_t rank, std::uint32_t nranks, std::uint32_t lanes,
                 client::UniqueId id, std::shared_ptr<const std::vector<Call>> calls)
    : cluster_(cluster),
      group_(group),
      rank_(rank),
      nranks_(nranks),
      host_("g" + std::to_string(group) + "r" + std::to_string(rank)),
      calls_(std::move(calls)),
      random_(cluster.settings().seed * 1000 + group * 100 + rank),
      service_(std::make_unique<Service>(cluster, nranks)) {
  auto& network = cluster.network();
  if (cluster.settings().devices) {
    const auto& net = cluster.settings().network;
    ways_ = std::make_unique<TwoWays>(
        network, host_, net.early_sent_percent > 0 ? static_cast<std::uint32_t>(net.early_sent_bytes_max) : 0,
        cluster.between(device_of(host_), network.transport(device_of(host_))),
        cluster.between(host_, network.transport(host_)));
  }
  auto& transport =
      ways_ ? static_cast<transport::Transport&>(*ways_) : cluster.between(host_, network.transport(host_));
  client::CommunicatorSettings settings;
  settings.rank = rank;
  settings.nranks = nranks;
  settings.id = id;
  settings.listen = {host_, 0};
  settings.advertised_host = host_;
  settings.host_id = host_;
  settings.lanes = lanes;
  settings.manager_configured = true;
  settings.path = cluster.settings().path;
  settings.timeout = cluster.settings().timeout;
  if (cluster.settings().tuning && rank == 0) {  // the other ranks must learn it from rank 0
    settings.tuning = client::TuningMode::table;
    settings.tuning_table = *cluster.settings().tuning;
  }
  communicator_ = std::make_unique<client::Communicator>(transport, rank == 0 ? service_.get() : nullptr, settings);
  if (rank == 0) {
    auto& star = ways_ ? ways_->second_way() : transport;
    listener_ = std::move(*star.listen({host_, kRankPort}, *communicator_));
  }
  buffers_.resize(calls_->size());
  const auto turn = [this, &transport] {
    transport.poll(Duration::zero());
    pump();
  };
  network.on_due(host_, turn);
  if (ways_) network.on_due(device_of(host_), turn);
  network.wake_at(host_, network.now() + 1us);
  communicator_->start([this](const Status& status) {
    if (!status) {
      failed_ = status.error();
      return;
    }
    ready_ = true;
  });
}

SimRank::~SimRank() {
  kill();
  if (distant_) distant_->abandon();
}

void SimRank::kill() {
  if (!communicator_) return;
  cluster_.network().kill(host_);
  if (ways_) cluster_.network().kill(device_of(host_));
  listener_.reset();
  communicator_.reset();
}

void SimRank::lose_device(bool silent) {
  if (!communicator_ || !has_device()) return;
  std::vector<std::string> others;
  for (const auto& ranks : cluster_.groups()) {
    for (const auto& rank : ranks) others.push_back(device_of(rank->host()));
  }
  for (const auto& aggregator : cluster_.aggregators()) others.push_back(aggregator->name());
  ways_->lose_device(others, silent);
}

void SimRank::pump() {
  if (!communicator_) return;
  const TimePoint now = cluster_.network().now();
  communicator_->tick(now);
  while (ready_ && !failed_ && next_ < calls_->size() && under_way_ < outstanding_max && now >= next_call_at_)
    call_next();
  if (ready_ && !failed_ && next_ == calls_->size() && under_way_ == 0 && !finalizing_) {
    finalizing_ = true;
    communicator_->finalize([this](const Status& status) {
      finalized_ = status.has_value();
      if (!status) failed_ = status.error();
    });
  }
  TimePoint wake = now + kTick;
  if (!slow_.empty()) {
    let_input_arrive();
    wake = std::min(wake, now + 1us + Duration(static_cast<std::int64_t>(random_() % 100'000)));
  }
  if (distant_ && !distant_->idle()) {
    if (now >= distant_at_) {
      distant_->advance(random_() % 4);
      distant_at_ =
          now + 1us +
          Duration(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(distant_pause_max.count())));
    }
    wake = std::min(wake, distant_at_);
  }
  if (next_call_at_ > now) wake = std::min(wake, next_call_at_);
  cluster_.network().wake_at(host_, wake);
}

void SimRank::use_distant_memory(bool refuses) {
  distant_ =
      std::make_shared<DistantDevice>(DistantDevice::Settings{.wake =
                                                                  [this] {
                                                                    cluster_.network().transport(host_).post([this] {
                                                                      if (communicator_)
                                                                        communicator_->staged_input_arrived();
                                                                    });
                                                                  },
                                                              .refuses = refuses});
}

void SimRank::let_input_arrive() {
  std::vector<std::shared_ptr<SlowMemory>> under_way;
  for (const auto& [index, slow] : slow_) under_way.push_back(slow);
  for (const auto& slow : under_way) {
    if (slow->input_whole()) continue;
    slow->arrive(1 + random_() % arriving_bytes_max);
    communicator_->staged_input_arrived();
  }
}

void SimRank::call_next() {
  const std::size_t index = next_++;
  const auto other = other_calls.find(index);
  const Call& call = other == other_calls.end() ? (*calls_)[index] : other->second;
  const std::uint64_t salt = cluster_.settings().seed * 7919 + group_ * 1000 + index;
  buffers_[index] = std::make_unique<Buffers>(make_buffers(call, salt, rank_, nranks_));
  Buffers& b = *buffers_[index];
  const Signature& s = call.signature;
  auto operation = std::make_unique<client::Operation>();
  operation->signature = s;
  operation->recv = b.recv.data();
  operation->send = b.send.data();
  if (b.send.empty() && call.in_place && !b.recv.empty()) {
    const bool root = s.root == rank_;
    const bool has_input = !(s.collective == Collective::broadcast || s.collective == Collective::scatter) || root;
    const bool has_output = !(s.collective == Collective::reduce || s.collective == Collective::gather) || root;
    if (has_input && has_output) {
      operation->send = b.recv.data() + b.in_place_offset;
      operation->in_place = true;
      const std::size_t chunk = s.count * size_of(s.dtype) * rank_;
      if (s.collective == Collective::reduce_scatter || s.collective == Collective::scatter)
        operation->recv = b.recv.data() + chunk;
    }
  }
  if (arriving_bytes_max > 0) {
    const std::size_t bytes = input_elements(call, rank_, nranks_) * size_of(s.dtype);
    slow_[index] = std::make_shared<SlowMemory>(std::span(const_cast<std::byte*>(operation->send), bytes));
    operation->staged = slow_[index];
  }
  operation->on_done = [this, index](const Status& status) { on_result(index, status); };
  if (distant_ && in_network_capable(s.collective)) {
    const std::size_t bytes = input_elements(call, rank_, nranks_) * size_of(s.dtype);
    const auto distant = std::make_shared<DistantCall>(distant_, b, *operation, bytes);
    operation->direct = distant;
    operation->on_done = [this, index, distant](const Status& status) {
      ++(distant->materialized() ? materialized : went_direct);
      distant->finish(status.has_value(), [this, index, status] { on_result(index, status); });
    };
  }
  ++under_way_;
  if (think_max.count() > 0)
    next_call_at_ = cluster_.network().now() + Duration(random_() % static_cast<std::uint64_t>(think_max.count()));
  communicator_->submit(std::move(operation));
}

void SimRank::on_result(std::size_t index, const Status& status) {
  --under_way_;
  const auto slow = slow_.extract(index);
  if (!status) {
    if (!failed_) failed_ = status.error();
    return;
  }
  const auto other = other_calls.find(index);
  const Call& call = other == other_calls.end() ? (*calls_)[index] : other->second;
  const std::uint64_t salt = cluster_.settings().seed * 7919 + group_ * 1000 + index;
  if (const auto wrong = check(call, *buffers_[index], salt, rank_, nranks_); !wrong.empty()) {
    cluster_.violation(host_ + ": operation " + std::to_string(index) + " (" + to_string(call.signature) +
                       (call.in_place ? ", in place" : "") + "): " + wrong);
  }
  if (const auto wrong = slow ? slow.mapped()->check() : std::string(); !wrong.empty())
    cluster_.violation(host_ + ": operation " + std::to_string(index) + " (" + to_string(call.signature) +
                       "): " + wrong);
  ++completed_;
  // The buffers are the caller's again: overwrite them, so that later reads and writes are found out.
  for (auto* buffer : {&buffers_[index]->send, &buffers_[index]->recv})
    std::fill(buffer->begin(), buffer->end(), std::byte{0xA5});
}

std::string SimRank::state() const {
  std::string text = host_ + ": ";
  if (!communicator_) return text + "killed";
  text += std::to_string(completed_) + "/" + std::to_string(calls_->size()) + " done, " + std::to_string(under_way_) +
          " under way";
  if (!ready_) text += ", not ready";
  if (failed_) text += ", failed: " + failed_->message;
  if (finalized_) text += ", finalized";
  return text + "; path: " + communicator_->info().reason;
}

// ---- cluster

Cluster::Cluster(const ClusterSettings& settings) : settings_(settings), random_(settings.seed) {
  transport::SimSettings network = settings.network;
  network.seed = settings.seed;
  network_ = std::make_unique<transport::SimNetwork>(network);
  manager_ = std::make_unique<SimManager>(*this, settings.seed ^ 0x5EED);
  for (std::uint32_t i = 0; i < settings.aggregators; ++i)
    aggregators_.push_back(std::make_unique<SimAggregator>(*this, i));
}

Cluster::~Cluster() {
  groups_.clear();
  aggregators_.clear();
}

void Cluster::add_group(std::uint32_t nranks, std::uint32_t lanes, const WorkloadSettings& workload) {
  const auto group = static_cast<std::uint32_t>(groups_.size());
  auto calls = std::make_shared<const std::vector<Call>>(make_calls(random_, nranks, workload));
  client::UniqueId id;
  id.root = {"g" + std::to_string(group) + "r0", kRankPort};
  for (auto& b : id.secret) b = static_cast<std::byte>(random_());
  auto& ranks = groups_.emplace_back();
  for (std::uint32_t r = 0; r < nranks; ++r)
    ranks.push_back(std::make_unique<SimRank>(*this, group, r, nranks, lanes, id, calls));
}

bool Cluster::run(Duration limit) {
  return network_->run_until(
      [this] {
        check_invariants();
        if (!violations_.empty()) return true;
        return std::all_of(groups_.begin(), groups_.end(), [](const auto& ranks) {
          return std::all_of(ranks.begin(), ranks.end(), [](const auto& r) { return r->done(); });
        });
      },
      network_->now() + limit);
}

// Checks, with `prefix` the results that a rank has and `contributed` the segments that it has sent, for every lane of
// one epoch:
//   - no rank has a result to which some rank has not contributed (invariant 1);
//   - no rank is more than a window ahead of any other (invariant 4: so a window of results kept is enough);
//   - no rank contributes beyond its window.
void Cluster::check_invariants() {
  for (const auto& ranks : groups_) {
    std::map<std::tuple<std::uint64_t, std::uint32_t, std::size_t>, std::array<std::uint64_t, 4>>
        lanes;  // least and greatest prefix, least contributed, ranks
    std::uint32_t window = 0;
    for (const auto& rank : ranks) {
      if (!rank->alive()) return;
      const auto positions = rank->communicator().lane_positions();
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto& p = positions[i];
        window = p.window;
        auto [it, first] =
            lanes.try_emplace({p.group, p.epoch, i}, std::array<std::uint64_t, 4>{UINT64_MAX, 0, UINT64_MAX, 0});
        auto& [least, greatest, contributed, count] = it->second;
        least = std::min(least, p.prefix);
        greatest = std::max(greatest, p.prefix);
        contributed = std::min(contributed, p.contributed);
        ++count;
        if (p.contributed > p.prefix + p.window) violation(rank->host() + " contributed beyond its window");
      }
    }
    for (const auto& [key, lane] : lanes) {
      const auto& [least, greatest, contributed, count] = lane;
      if (count != ranks.size()) continue;  // some ranks are between two epochs
      if (greatest > contributed) violation("a rank has a result that another has not contributed to");
      if (greatest - least > window) violation("two ranks are more than a window apart");
    }
  }
  for (const auto& a : aggregators_) {
    if (a->alive() && a->budget().in_use() > a->budget().bytes_max())
      violation(a->name() + " promised more memory than it has");
  }
}

std::int64_t Cluster::unix_seconds(const std::string& process) const {
  const auto since_start = std::chrono::duration_cast<std::chrono::seconds>(network_->now().time_since_epoch());
  const auto step = clock_steps_.find(process);
  return 1'700'000'000 + since_start.count() + (step == clock_steps_.end() ? 0 : step->second.count());
}

void Cluster::violation(const std::string& what) {
  if (violations_.size() < 20) violations_.push_back(what);
}

std::string Cluster::describe() const {
  std::string text;
  for (const auto& v : violations_) text += "violation: " + v + "\n";
  for (const auto& ranks : groups_) {
    for (const auto& r : ranks) text += r->state() + "\n";
  }
  return text;
}

}  // namespace tributary::simulation
