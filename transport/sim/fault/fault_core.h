#pragma once
// The random choices of a FaultyTransport, and the channels that wait until a time.
#include <algorithm>

#include "transport/random/random.h"
#include "tributary/transport/fault.h"

namespace tributary::transport {

class FaultyChannel;

class FaultCore {
 public:
  FaultCore(Transport& inner, const FaultPlan& plan) : random(plan.seed), inner_(inner) {
    for (const FaultRule& rule : plan.rules) rules_.push_back({rule, 0});
  }

  /// Returns the rule that gives this frame this fault, or nullptr. Counts the frame for every rule of the
  /// fault.
  const FaultRule* strikes(Fault fault, FrameType type) {
    const FaultRule* struck = nullptr;
    for (Counted& counted : rules_) {
      const FaultRule& rule = counted.rule;
      if (rule.fault != fault || (rule.type && *rule.type != type)) continue;
      ++counted.frames;
      const bool now = rule.nth != 0 ? counted.frames == rule.nth : random.below(1000) < rule.per_thousand;
      if (now && struck == nullptr) struck = &rule;
    }
    return struck;
  }
  void happened(Fault fault) noexcept { ++counts[static_cast<std::size_t>(fault)]; }

  [[nodiscard]] TimePoint now() const { return inner_.now(); }
  void wait(FaultyChannel& channel, TimePoint until) {
    waiting.push_back({&channel, until});
    ask_to_be_woken();
  }
  /// The function `wake` remembers only the earliest time, so every poll calls it again at its end.
  void ask_to_be_woken() const {
    const TimePoint next = next_due();
    if (wake && next != TimePoint::max()) wake(next);
  }
  void forget(FaultyChannel& channel) {
    std::erase_if(waiting, [&](const Waiting& w) { return w.channel == &channel; });
  }
  [[nodiscard]] TimePoint next_due() const {
    TimePoint next = TimePoint::max();
    for (const Waiting& w : waiting) next = std::min(next, w.until);
    return next;
  }

  struct Waiting {
    FaultyChannel* channel;
    TimePoint until;  // max: until release_held()
  };

  Random random;
  std::vector<Waiting> waiting;
  std::function<void(TimePoint)> wake;
  std::array<std::uint64_t, kFaultKinds> counts{};

 private:
  struct Counted {
    FaultRule rule;
    std::uint64_t frames;
  };
  Transport& inner_;
  std::vector<Counted> rules_;
};

}  // namespace tributary::transport
