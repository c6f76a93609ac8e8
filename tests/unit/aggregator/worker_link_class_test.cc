// A worker over TCP gives the sockets of a tenant's connections, to children and to the parent, the tenant's class.
#include <sys/socket.h>
#include <unistd.h>

#include "aggregator/worker/worker.h"
#include "tests/unit/aggregator/child.h"
#include "tributary/transport/tcp.h"

namespace tributary::aggregator::test {
namespace {

using namespace std::chrono_literals;

int sockets_of_class(std::uint32_t handle) {
  int count = 0;
  for (int socket = 3; socket < 1024; ++socket) {
    std::uint32_t priority = 0;
    socklen_t bytes = sizeof priority;
    count += ::getsockopt(socket, SOL_SOCKET, SO_PRIORITY, &priority, &bytes) == 0 && priority == handle ? 1 : 0;
  }
  return count;
}

bool may_choose_classes() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto priority = static_cast<int>(kLinkFirst);
  const bool taken = ::setsockopt(socket, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority) == 0;
  ::close(socket);
  return taken;
}

TEST(WorkerLinkClass, IsOnTheSocketsOfATenantsChildrenAndParents) {
  if (!may_choose_classes()) GTEST_SKIP() << "this process lacks CAP_NET_ADMIN";
  const auto classes = std::make_shared<LinkClasses>();
  const auto now = [] { return std::int64_t{1'700'000'000}; };
  const SigningKey key = *SigningKey::generate();
  const TokenVerifier verifier = *TokenVerifier::create(key.public_key());
  transport::TcpTransport at_root, at_leaf, at_rank;
  MemoryBudget budget{64U << 20};
  Worker root(at_root, verifier, budget, {.name = "root"}, now);
  Worker leaf(at_leaf, verifier, budget, {.name = "leaf", .link_classes = classes}, now);
  const auto root_listens = *at_root.listen({"127.0.0.1", 0}, root);
  const auto leaf_listens = *at_leaf.listen({"127.0.0.1", 0}, leaf);

  const std::int64_t end = 1'700'000'120;
  TokenClaims own = claims_of_rank("leaf", kEpoch, 0, 1, end), above = claims_of_rank("root", kEpoch, 0, 1, end);
  own.root = false;
  own.tenant = "physics";
  own.weight = 4;
  own.parent_host = "127.0.0.1";
  own.parent_port = root_listens->local().port;
  above.kind = ChildKind::aggregator;
  Child child(at_rank, leaf_listens->local(), encode(TokenChain{*key.sign(own), *key.sign(above)}), kEpoch);
  for (const auto limit = transport::Clock::now() + 20s; !child.ready && transport::Clock::now() < limit;) {
    for (transport::TcpTransport* one : {&at_root, &at_leaf, &at_rank}) one->poll(100us);
  }
  ASSERT_TRUE(child.ready);

  EXPECT_EQ(sockets_of_class(kLinkFirst), 2) << "to the rank and to the root";
  const auto all = classes->all();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].party, "physics");
  EXPECT_EQ(all[0].weight, 4U);
  child.close();
  const auto left = [&] {  // an idle class can be taken away once its last place is gone
    (void)classes->take_changes(transport::Clock::now());
    (void)classes->take_changes(transport::Clock::now() + kClassKept);
    return classes->all().empty();
  };
  for (const auto limit = transport::Clock::now() + 20s; !left() && transport::Clock::now() < limit;) {
    for (transport::TcpTransport* one : {&at_root, &at_leaf, &at_rank}) one->poll(100us);
    leaf.tick(transport::Clock::now());
    root.tick(transport::Clock::now());
  }
  EXPECT_TRUE(left()) << "connections that have ended keep no class";
}

}  // namespace
}  // namespace tributary::aggregator::test
