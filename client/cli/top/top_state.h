#pragma once
// The content of `tributary top`: rates, computed from the differences of the manager's counts, and the lines that show
// them. It does not use the terminal.
#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/terminal/colour.h"

namespace tributary::cli {

/// The rate of a count that arrives from time to time: computed from the count's last change, and 0 if this is long
/// ago.
class ToldRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  void tell(std::uint64_t count, TimePoint now);
  [[nodiscard]] double per_second() const noexcept { return per_second_; }

 private:
  bool told_ = false;
  std::uint64_t count_ = 0;
  TimePoint changed_at_{};
  double per_second_ = 0;
};

struct TopLine {
  std::string text;
  Colour colour = Colour::none;
};

class TopState {
 public:
  using TimePoint = ToldRate::TimePoint;
  /// Takes the manager's answers for /v1/aggregators and /v1/groups; throws nlohmann::json::exception if they are
  /// malformed.
  void take(const nlohmann::json& aggregators, const nlohmann::json& groups, TimePoint now);
  /// Notes that the manager did not answer. The last content stays.
  void fail(std::string why) { trouble_ = std::move(why); }
  /// Returns the lines, without line ends, of any width. The first line begins with `title`.
  [[nodiscard]] std::vector<TopLine> lines(const std::string& title) const;

 private:
  struct Aggregator {
    std::string name, state, host, version;
    std::uint64_t lanes = 0, sessions = 0, reserved = 0, memory = 0, summed = 0;
    double summed_per_second = 0;
  };
  struct Group {
    std::uint64_t number = 0, ranks = 0, in_network = 0, between_ranks = 0, in_shared_memory = 0, age = 0;
    std::string job, user, path, reason;
    std::vector<std::string> late;  // lines for people
    double in_network_per_second = 0, between_per_second = 0, shared_per_second = 0;
  };
  struct GroupRates {
    ToldRate in_network, between_ranks, in_shared_memory;
  };

  std::vector<Aggregator> aggregators_;
  std::vector<Group> groups_;
  std::map<std::string, ToldRate> aggregator_rates_;
  std::map<std::uint64_t, GroupRates> group_rates_;
  std::string trouble_;
};

}  // namespace tributary::cli
