#pragma once
// Deliberate faults over any Transport: the same rules work for SimNetwork and for real sockets.
//
// A FaultyTransport is used in place of the transport that it wraps. Its rules apply to the frames that it receives
// (delay, hold, cut) or sends (refuse, corrupt, duplicate). Random choices are drawn from the plan's seed, in the order
// of the frames.
//
// Over a SimNetwork, this transport's poll() must run the host, and on_wake() must wake the host for delays:
//   network.on_due("a", [&] { faulty.poll({}); });
//   faulty.on_wake([&](TimePoint at) { network.wake_at("a", at); });
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::transport {

enum class Fault : std::uint8_t {
  delay,      // in: the frame, and with it the channel, waits up to delay_max before on_header
  hold,       // in: the frame waits as with delay, until release_held()
  cut,        // in: some but not all of the payload is written, then the connection breaks for both sides: peer_gone
  refuse,     // out: send() returns false, as for a full queue; only while an on_sent is due, after which the sender
              // sends again
  corrupt,    // out: one byte of the header is changed; not payload_bytes, which each transport sets itself
  duplicate,  // out: the frame goes out twice
};
inline constexpr std::size_t kFaultKinds = 6;

/// A fault and the frames that it affects. The rule counts the frames of `type` on this transport (of every type if
/// `type` is empty). It affects the `nth` of them, counted from 1, or, if nth is 0, a random share of `per_thousand`.
struct FaultRule {
  Fault fault;
  std::uint64_t nth = 0;
  std::uint32_t per_thousand = 0;
  std::optional<FrameType> type;
  Duration delay_max = std::chrono::milliseconds(1);  // delay: random time from 0 to this time
};

struct FaultPlan {
  std::uint64_t seed = 1;
  std::vector<FaultRule> rules;
};

class FaultCore;

class FaultyTransport final : public Transport {
 public:
  /// `inner` must outlive this object.
  FaultyTransport(Transport& inner, const FaultPlan& plan);
  ~FaultyTransport() override;
  FaultyTransport(const FaultyTransport&) = delete;
  FaultyTransport& operator=(const FaultyTransport&) = delete;

  [[nodiscard]] Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override;
  [[nodiscard]] std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override;
  std::size_t poll(Duration wait) override;
  [[nodiscard]] TimePoint now() const override { return inner_.now(); }
  void post(std::function<void()> call) override { inner_.post(std::move(call)); }
  [[nodiscard]] std::unique_ptr<KeptMemory> keep_registered(std::span<const std::byte> memory) override {
    return inner_.keep_registered(memory);
  }

  /// Sets the function that gets the time by which poll() must run again because of a delay. At its end every poll()
  /// calls `wake` with the earliest such time.
  void on_wake(std::function<void(TimePoint)> wake);
  /// Releases the frames that `hold` has stopped.
  void release_held();
  /// Returns the number of times that this fault has happened.
  [[nodiscard]] std::uint64_t count(Fault fault) const noexcept;

 private:
  Transport& inner_;
  std::shared_ptr<FaultCore> core_;
};

}  // namespace tributary::transport
