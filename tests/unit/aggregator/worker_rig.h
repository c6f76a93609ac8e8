#pragma once
// Workers, and children made by hand, in one simulated network: real frames, real tokens, virtual time.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/worker/worker.h"
#include "tests/unit/aggregator/child.h"
#include "tributary/transport/sim_network.h"

namespace tributary::aggregator::test {

inline constexpr std::uint16_t kPort = 7471;

/// One aggregator process: a worker that listens, polls and ticks.
class Host {
 public:
  Host(transport::SimNetwork& network, const TokenVerifier& verifier, const std::int64_t& now_s, std::string name,
       std::uint64_t memory_bytes, WorkerSettings settings);
  ~Host();

  std::string name;
  MemoryBudget budget;
  std::unique_ptr<Worker> worker;
  [[nodiscard]] Endpoint endpoint() const { return {name, kPort}; }

 private:
  transport::SimNetwork& network_;
  transport::Transport& transport_;
  std::unique_ptr<transport::Listener> listener_;
};

class WorkerTest : public ::testing::Test {
 protected:
  WorkerTest();

  Host& aggregator(const std::string& name, std::uint64_t memory_bytes = 64U << 20, WorkerSettings settings = {});
  /// Returns a child's claims on a root with `children` children, all of them ranks.
  [[nodiscard]] TokenClaims claims_of(const std::string& aggregator, std::uint16_t child, std::uint16_t children) const;
  [[nodiscard]] Bytes join_of(const std::vector<TokenClaims>& chain) const;
  Child& child(const std::string& host, const Endpoint& to, const Bytes& join);
  /// Returns all children of one lane on one root, joined and ready.
  std::vector<Child*> lane_of(Host& root, std::uint16_t children);
  /// Returns ranks 0 to 2 * width - 1, joined and ready. They are below two leaves, which are below one root.
  std::vector<Child*> two_levels(Host& left, Host& right, Host& root, std::uint16_t width);

  bool run_until(const std::function<bool()>& done, transport::Duration limit = std::chrono::seconds(10));
  void next_epoch() { ++epoch_; }
  /// Lets every frame under way arrive, without letting any important timer run out.
  void settle() { network_.run_for(std::chrono::milliseconds(300)); }
  [[nodiscard]] std::string refusal_of(Host& host, const Bytes& join);
  void expect_all_given_back(Host& host);

  transport::SimNetwork network_;
  SigningKey key_;
  TokenVerifier verifier_;
  std::int64_t now_s_ = 1'700'000'000;
  std::uint32_t epoch_ = kEpoch;  // epoch of the lanes that are made next
  std::map<std::string, std::unique_ptr<Host>> hosts_;
  std::deque<std::unique_ptr<Child>> children_;
};

}  // namespace tributary::aggregator::test
