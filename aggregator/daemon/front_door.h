#pragma once
// The front door accepts connections. Until a connection has joined, it is in a waiting room
// (tributary/protocol/waiting_room.h), and has a bounded time to send one join frame. The door first makes the cheap
// checks. Then it checks the token's signature, address by address in turn (join_queue.h), and hands the connection to
// the worker that serves the lane. A stranger without a token costs the workers no time.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/daemon/key_ring.h"
#include "aggregator/daemon/listen_places.h"
#include "aggregator/worker/tenant_limits.h"
#include "aggregator/worker/worker.h"
#include "tributary/protocol/reason_counts.h"
#include "tributary/transport/near.h"

namespace tributary::aggregator {

struct FrontDoorSettings {
  std::vector<Endpoint> listen;
  std::string name;  // name for messages, until the key ring has the name that the manager accepted
  std::uint32_t unjoined_max = 256;
  transport::Duration join_limit = std::chrono::seconds(5);
  transport::Duration flush_limit = std::chrono::seconds(2);  // time to send the reason of a refusal
  transport::NearSettings transport;
};

/// Counts, which any thread may read.
struct FrontDoorCounts {
  std::uint64_t accepted = 0;     // connections that were accepted
  std::uint64_t handed_over = 0;  // joins that a worker got
  std::uint64_t denied = 0;       // joins with a token that was forged, expired or for another aggregator
  std::uint64_t malformed = 0;    // connections with a frame that is not of this protocol, no join, or too early
  std::uint64_t timed_out = 0;    // connections without a join in time
  std::uint64_t displaced = 0;    // connections closed for newer ones, because unjoined_max places were taken
  std::uint64_t over_limit = 0;   // joins refused because their tenant is at a limit
  std::uint64_t not_open = 0;     // joins refused while draining, or before a key was known
  std::uint64_t gone = 0;         // connections that the other side closed before a join
  std::uint64_t unjoined = 0;     // connections that wait now
  ReasonNumbers reasons{};        // why connections were refused
};

class FrontDoor {
 public:
  /// Receives a connection, and may pass it to any thread.
  using HandOver = std::function<void(std::unique_ptr<transport::HandedOver> connection, VerifiedJoin join)>;

  /// Listens, and serves on its own thread. Errc::io names the address and the reason, and gives advice.
  [[nodiscard]] static Result<std::unique_ptr<FrontDoor>> open(const FrontDoorSettings& settings, KeyRing& keys,
                                                               TenantLimits& tenants, HandOver hand_over);
  ~FrontDoor();
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;

  // ---- Calls of any thread
  [[nodiscard]] ListenPlaces& places() const noexcept;
  /// Refuses every join with this reason from now on. An empty reason opens the door again.
  void close_to_joins(std::string reason);
  [[nodiscard]] FrontDoorCounts counts() const;
  [[nodiscard]] std::chrono::steady_clock::time_point last_turn() const noexcept;

 private:
  class Visitor;
  class Reception;
  FrontDoor(const FrontDoorSettings& settings, KeyRing& keys, TenantLimits& tenants, HandOver hand_over);

  std::unique_ptr<Reception> reception_;
  std::jthread thread_;  // declared last, because it runs the reception
};

}  // namespace tributary::aggregator
