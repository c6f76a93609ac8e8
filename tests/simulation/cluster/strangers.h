#pragma once
// Processes that belong to nobody's group and know nobody's secret, but reach every listener, and hear the first words
// of everybody else: what a port scan, a broken program or somebody hostile does to a cluster.
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tributary/protocol/frame.h"
#include "tributary/transport/sim_network.h"

namespace tributary::simulation {

class Strangers {
 public:
  enum class Kind : std::uint8_t { silent, garbage, replay, mixed };
  static constexpr Kind kKinds[] = {Kind::silent, Kind::garbage, Kind::replay, Kind::mixed};

  /// Overhears the network from now on.
  Strangers(transport::SimNetwork& network, std::uint64_t seed);
  ~Strangers();
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  /// So many connections to one listener at once, from one of several addresses. They stay as long as they are let, or
  /// until leave().
  void come(const Endpoint& target, Kind kind, std::uint32_t connections);
  /// All that are still there go.
  void leave();
  /// Where connections of others were made to.
  [[nodiscard]] const std::vector<Endpoint>& heard_of() const { return heard_of_; }
  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  [[nodiscard]] std::uint64_t replayed() const { return replayed_; }
  /// Answers of ranks other than a challenge, which everybody gets, or a refusal. (Who repeats a token to an aggregator
  /// that has not seen it yet is served: tokens are bearers' credentials.)
  [[nodiscard]] std::uint64_t served() const { return served_; }

 private:
  class Visitor;
  struct Words {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  void say_garbage(transport::Channel& channel);
  void say_replayed(transport::Channel& channel, const Endpoint& target);
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  transport::SimNetwork& network_;
  std::mt19937_64 random_;
  std::deque<std::pair<Endpoint, Words>> overheard_;
  std::vector<Endpoint> heard_of_;
  std::deque<std::unique_ptr<Visitor>> visitors_;
  std::uint64_t connections_ = 0, replayed_ = 0, served_ = 0;
};

[[nodiscard]] const char* to_string(Strangers::Kind kind);

}  // namespace tributary::simulation
