#pragma once
// A network inside one process, with its own time. The simulator and most tests run on it.
//
// Hosts have names; every host has one Transport that keeps the contract of channel.h, with endpoints "host-name":port.
// Everything that happens is an event in one queue, ordered by virtual time and then by the order in which events were
// made, and every choice is drawn from one seed: the same program with the same seed runs in exactly the same way
// (trace_hash() shows it).
//
// The network imitates these things, because correctness of recovery depends on them:
//   - a frame arrives in up to three pieces, so that a broken connection leaves a payload half written;
//   - payloads are read from the sender's borrowed memory when they arrive, not when they are sent, so that the sums
//     show a sender that reuses the memory too early; for some frames on_sent comes before the frame arrives, as with a
//     kernel's socket buffer, and a break then loses a frame that was reported as sent;
//   - on_sent, the peer's answer and the news of a break come in any order that real networks allow.
//
// Callbacks happen inside Transport::poll of their host, as everywhere. step() polls the host that an event is for, or
// calls the function that on_due() has set for it, which then polls. Transport::poll(wait) of a host that has nothing
// to do drives the whole network for up to `wait` of virtual time, so that plain blocking loops work too.
//
// Threads: none. The network, its transports (post() included) and their users live on one thread. Channels and
// listeners may be destroyed after the network, whose destructor kills all hosts.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "tributary/transport/channel.h"

namespace tributary::transport {

class SimCore;

/// One direction of the link between two hosts.
struct LinkSettings {
  Duration latency = std::chrono::microseconds(5);
  Duration jitter =
      std::chrono::microseconds(2);    // added to latency: uniform from 0 to this; order on a channel is kept
  std::uint64_t bytes_per_second = 0;  // rate of each channel; 0: no limit
};

struct SimSettings {
  std::uint64_t seed = 1;
  LinkSettings link;                          // between hosts for which set_link() was not called
  std::uint32_t frames_queued_max = 1024;     // frames without on_sent on a channel; above, send() is false
  std::uint32_t split_percent = 30;           // chance that a payload lands in more than one piece
  std::uint32_t early_sent_percent = 25;      // chance that on_sent comes before the frame arrives
  std::size_t early_sent_bytes_max = 262144;  // bytes of such frames that a channel has under way at most
};

struct SimTraffic {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;  // headers included
};

struct SimStatistics {
  std::uint64_t events = 0;               // taken from the queue and not stale
  std::uint64_t callbacks = 0;            // callbacks of handlers and acceptors
  std::uint64_t frames = 0;               // delivered whole
  std::uint64_t bytes = 0;                // bytes of delivered payloads
  std::uint64_t half_written = 0;         // payloads that a break left with some but not all of their bytes
  std::uint64_t refused = 0;              // connections, by refuse_connections()
  std::uint64_t lost_after_sent = 0;      // frames that a break lost after their on_sent came, or was due
  std::size_t connections = 0;            // connections whose channels are not all destroyed
  std::array<SimTraffic, 256> by_type{};  // delivered frames, by FrameType
  [[nodiscard]] const SimTraffic& of(FrameType type) const noexcept { return by_type[static_cast<std::size_t>(type)]; }
};

class SimNetwork {
 public:
  explicit SimNetwork(const SimSettings& settings = {});
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// The host's transport; the first call makes the host. The reference stays valid as long as the network, but the
  /// transport does nothing after kill().
  [[nodiscard]] Transport& transport(std::string_view host);

  // ---- Time. None of these may be called from inside a callback, except now(), call_at() and wake_at().
  [[nodiscard]] TimePoint now() const noexcept;
  /// Takes the next event, moving time to it, and runs the host that it is for. False: there is none.
  bool step();
  /// Steps through all events up to and at `time`, which is then now(). Returns how many.
  std::size_t run_until(TimePoint time);
  std::size_t run_for(Duration duration);
  /// Steps until `done()`, which is asked before every step. False: `limit` or the last event came first.
  bool run_until(const std::function<bool()>& done, TimePoint limit);
  /// Steps until there is no event. False: events_max came first.
  bool run_until_idle(std::size_t events_max = 10'000'000);
  /// True if no event is waiting. A frame that a paused or partitioned host has not got yet is no event.
  [[nodiscard]] bool idle() const;

  // ---- Driving hosts
  /// Calls `run` instead of the host's Transport::poll whenever an event is due for the host, and at wake_at() times.
  /// An empty function brings poll back, and so does kill().
  void on_due(std::string_view host, std::function<void()> run);
  /// Runs the host at `time` even if nothing arrives, for its timers. The earliest of several calls counts; it serves
  /// for one run.
  void wake_at(std::string_view host, TimePoint time);
  /// Runs a part of the test's script, outside all hosts, at `time`.
  void call_at(TimePoint time, std::function<void()> call);

  // ---- Faults. All may be called from anywhere, callbacks included.
  /// Breaks one connection, or all between two hosts: frames under way are lost, and both sides get on_closed within
  /// the jitter.
  void cut(Channel& channel);
  void cut(std::string_view host_a, std::string_view host_b);
  /// Ends a host's process: none of its callbacks runs any more, its listeners vanish, its channels break, and its
  /// handlers, buffers and channels may be destroyed at once (but for those whose callback is running). The other sides
  /// get on_closed.
  void kill(std::string_view host);
  /// Starts a new process on a killed host.
  [[nodiscard]] Transport& restart(std::string_view host);
  [[nodiscard]] bool alive(std::string_view host) const;
  /// Stops all that goes from or to the host until heal(); no side is told. With two hosts: only between these two.
  void partition(std::string_view host);
  void partition(std::string_view host_a, std::string_view host_b);
  /// Ends a partition: the frames that it held back arrive now.
  void heal(std::string_view host);
  void heal(std::string_view host_a, std::string_view host_b);
  /// Hangs the process: no callbacks; frames that arrive wait. Connections to it still open, as the kernel would do it.
  void pause(std::string_view host);
  void resume(std::string_view host);
  /// Makes every turn of the host take `per_turn` (0.5 to 1.5 times that, from the seed); frames that come meanwhile
  /// wait. 0: turns take no time.
  void slow_down(std::string_view host, Duration per_turn);
  /// Ends so many percent of the connections that come to this host from now on, before anything from its process has
  /// reached the other side: refused, as by a kernel whose queue is full, or broken.
  void refuse_connections(std::string_view host, std::uint32_t percent);
  /// Sets both directions, also of connections that are open.
  void set_link(std::string_view host_a, std::string_view host_b, const LinkSettings& link);

  /// Gives `listener` the first frame that the connecting side of each connection sends, when it has arrived, as an
  /// eavesdropper would see it. The listener must not call the network; it replaces the listener before it.
  using Overhear = std::function<void(const Endpoint& from, const Endpoint& to, const FrameHeader&,
                                      std::span<const std::byte> payload)>;
  void overhear(Overhear listener);

  [[nodiscard]] SimStatistics statistics() const;
  /// Digest of every callback so far: when, where, which frame. Equal for equal runs.
  [[nodiscard]] std::uint64_t trace_hash() const noexcept;
  /// A number in [0, bound) from the network's own seed, for scripts that must be part of the same deterministic run.
  [[nodiscard]] std::uint64_t random_below(std::uint64_t bound);

 private:
  std::shared_ptr<SimCore> core_;
};

}  // namespace tributary::transport
