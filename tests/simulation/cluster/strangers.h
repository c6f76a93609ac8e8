#pragma once
// Processes that belong to no group and know no secret, but can connect to every listener and overhear the first frames
// of all other processes: a port scan, a broken program, or an attacker.
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

  /// Begins to overhear the network.
  Strangers(transport::SimNetwork& network, std::uint64_t seed);
  ~Strangers();
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  /// Opens this many connections to one listener at once, from one of several addresses. They stay until they are
  /// closed, or until leave().
  void come(const Endpoint& target, Kind kind, std::uint32_t connections);
  /// Closes all connections that are still open.
  void leave();
  /// The endpoints to which other processes have connected.
  [[nodiscard]] const std::vector<Endpoint>& heard_of() const { return heard_of_; }
  [[nodiscard]] std::uint64_t connections() const { return connections_; }
  [[nodiscard]] std::uint64_t replayed() const { return replayed_; }
  /// Counts the ranks' answers that are neither a challenge, which every stranger gets, nor a refusal. (An aggregator
  /// serves a stranger that repeats a token which it has not seen yet: a token serves every process that has it.)
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
