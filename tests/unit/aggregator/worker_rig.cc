#include "tests/unit/aggregator/worker_rig.h"

#include <bit>

namespace tributary::aggregator::test {

Host::Host(transport::SimNetwork& network, const TokenVerifier& verifier, const std::int64_t& now_s,
           std::string host_name, std::uint64_t memory_bytes, WorkerSettings settings)
    : name(std::move(host_name)), budget(memory_bytes), network_(network), transport_(network.transport(name)) {
  settings.name = name;
  worker = std::make_unique<Worker>(transport_, verifier, budget, settings, [&now_s] { return now_s; });
  auto listener = transport_.listen({"0.0.0.0", kPort}, *worker);
  EXPECT_TRUE(listener);
  listener_ = std::move(*listener);
  network_.on_due(name, [this] {
    transport_.poll(transport::Duration::zero());
    worker->tick(transport_.now());
    network_.wake_at(name, transport_.now() + std::chrono::milliseconds(50));
  });
  network_.wake_at(name, transport_.now());
}

Host::~Host() {
  network_.on_due(name, {});
}

WorkerTest::WorkerTest() : key_(*SigningKey::generate()), verifier_(*TokenVerifier::create(key_.public_key())) {}

Host& WorkerTest::aggregator(const std::string& name, std::uint64_t memory_bytes, WorkerSettings settings) {
  auto& host = hosts_[name];
  host = std::make_unique<Host>(network_, verifier_, now_s_, name, memory_bytes, std::move(settings));
  return *host;
}

TokenClaims WorkerTest::claims_of(const std::string& aggregator, std::uint16_t child, std::uint16_t children) const {
  return claims_of_rank(aggregator, epoch_, child, children, now_s_ + 120);
}

Bytes WorkerTest::join_of(const std::vector<TokenClaims>& chain) const {
  TokenChain tokens;
  for (const TokenClaims& claims : chain) {
    auto token = key_.sign(claims);
    EXPECT_TRUE(token) << token.error().message;
    tokens.push_back(*token);
  }
  return encode(tokens);
}

Child& WorkerTest::child(const std::string& host, const Endpoint& to, const Bytes& join) {
  return *children_.emplace_back(std::make_unique<Child>(network_.transport(host), to, join, epoch_));
}

std::vector<Child*> WorkerTest::lane_of(Host& root, std::uint16_t children) {
  std::vector<Child*> all;
  for (std::uint16_t i = 0; i < children; ++i) {
    all.push_back(&child("rank" + std::to_string(i), root.endpoint(), join_of({claims_of(root.name, i, children)})));
  }
  EXPECT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); }));
  return all;
}

std::vector<Child*> WorkerTest::two_levels(Host& left, Host& right, Host& root, std::uint16_t width) {
  std::vector<Child*> all;
  const auto ranks = static_cast<std::uint32_t>(2 * width);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t side = rank / width;
    Host& leaf = side == 0 ? left : right;
    TokenClaims own = claims_of(leaf.name, static_cast<std::uint16_t>(rank % width), width);
    own.rank = rank;
    own.ranks = ranks;
    own.root = false;
    own.parent_host = root.name;
    own.parent_port = kPort;
    TokenClaims above = claims_of(root.name, static_cast<std::uint16_t>(side), 2);
    above.kind = ChildKind::aggregator;
    above.rank = side * width;
    above.ranks = ranks;
    above.scale = static_cast<std::uint8_t>(std::bit_width(width - 1U));
    all.push_back(&child("rank" + std::to_string(rank), leaf.endpoint(), join_of({own, above})));
  }
  EXPECT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); }));
  return all;
}

bool WorkerTest::run_until(const std::function<bool()>& done, transport::Duration limit) {
  return network_.run_until(done, network_.now() + limit);
}

std::string WorkerTest::refusal_of(Host& host, const Bytes& join) {
  Child& stranger = child("stranger", host.endpoint(), join);
  EXPECT_TRUE(run_until([&] { return stranger.closed.has_value(); }));
  return stranger.refused.value_or("(no refusal)");
}

void WorkerTest::expect_all_given_back(Host& host) {
  EXPECT_TRUE(
      run_until([&] { return host.worker->sessions() == 0 && host.budget.in_use() == 0; }, std::chrono::seconds(20)))
      << host.name << ": " << host.worker->sessions() << " sessions, " << host.budget.in_use() << " bytes";
  EXPECT_EQ(host.worker->metrics().lanes_active, 0U);
  EXPECT_TRUE(host.worker->lanes().empty());
}

}  // namespace tributary::aggregator::test
