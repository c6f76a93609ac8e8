#pragma once
// The aggregator's connection to the manager: registers, renews the lease, learns the key, obeys a drain, unregisters.
// All calls run on one thread, which may block and handles no frames.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/daemon/files.h"
#include "aggregator/daemon/key_ring.h"
#include "tributary/manager_client/manager_client.h"

namespace tributary::aggregator {

struct ManagerLinkSettings {
  std::string url;
  std::string token_file;  // file that is read before every registration, so that a person can correct it
  service::TlsFiles tls;   // for a manager over HTTPS; read again with token_file
  std::string state_file;
  manager_client::AggregatorRegistration registration;
  ExchangeKey exchange;  // key whose public half is registered
  std::chrono::milliseconds retry_min{500};
  std::chrono::milliseconds retry_max{15'000};
  std::chrono::milliseconds connect_limit{2'000};
  std::chrono::milliseconds request_limit{5'000};
  std::chrono::milliseconds drain_grace{30'000};
};

/// Called on the link's thread.
struct ManagerLinkUser {
  std::function<manager_client::AggregatorLoad()> load;
  /// Returns the indices of the registration's addresses that do not live.
  std::function<std::vector<std::uint32_t>()> data_down;
  /// Called when the manager plans no more trees over this aggregator. Groups move to other trees by themselves.
  std::function<void()> drain_begins;
  /// Called when the grace is over: the lanes that are left must end.
  std::function<void()> drain_ends;
  std::function<void()> drain_revoked;
};

struct ManagerLinkState {
  bool registered = false;
  bool draining = false;  // true: the manager drains this aggregator
  std::uint64_t incarnation = 0;
  std::uint64_t registrations = 0;
  std::uint64_t renewals = 0;
  std::uint64_t failures = 0;  // number of calls that failed
  std::string last_error;      // error of the last call; empty if it was answered
  std::optional<std::chrono::steady_clock::time_point> last_answer;
};

class ManagerLink {
 public:
  /// Starts the thread. `keys` must outlive the link.
  ManagerLink(ManagerLinkSettings settings, KeyRing& keys, ManagerLinkUser user);
  /// Ends the thread, but does not unregister.
  ~ManagerLink();
  ManagerLink(const ManagerLink&) = delete;
  ManagerLink& operator=(const ManagerLink&) = delete;

  [[nodiscard]] ManagerLinkState state() const;
  /// Renews at once, because there is news for the manager. Any thread may call it.
  void renew_soon();
  /// Ends the renewals and the thread, and unregisters from the manager; takes at most `limit`.
  void take_leave(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  void run(const std::stop_token& stop);
  /// Makes one call to the manager, and returns the time until the next call.
  [[nodiscard]] Milliseconds step();
  [[nodiscard]] Milliseconds register_here();
  [[nodiscard]] Milliseconds renew();
  void learn(const manager_client::RegistrationAnswer& answer);
  /// Verifies joins with these keys from now on, and keeps them in the state file.
  void learn(const manager_client::ManagerKeys& keys);
  [[nodiscard]] Identity identity_with(const manager_client::ManagerKeys& keys) const;
  /// Obeys the manager's answer. Returns true if there is news for the manager, which must be sent at once.
  [[nodiscard]] bool obey(manager_client::AggregatorState state);
  [[nodiscard]] Milliseconds until_renewal() const;
  [[nodiscard]] Milliseconds lost_registration();
  void end_grace_when_due();
  [[nodiscard]] Milliseconds failed(const std::string& doing, const Error& error);
  void answered();
  [[nodiscard]] Result<std::shared_ptr<manager_client::ManagerClient>> connect(Milliseconds request_limit) const;
  void use(std::shared_ptr<manager_client::ManagerClient> client);

  const ManagerLinkSettings settings_;
  KeyRing& keys_;
  const ManagerLinkUser user_;

  // State of the link's thread
  std::string name_;
  std::uint64_t incarnation_ = 0;
  bool registered_ = false;
  Milliseconds lease_{10'000};
  Milliseconds retry_{};
  std::optional<Clock::time_point> grace_end_;
  std::optional<Clock::time_point> last_unknown_;
  Clock::time_point last_complaint_{};

  /// Ends the thread and its present call.
  void stop();

  mutable std::mutex mutex_;  // guards state_, client_, stopping_ and due_
  bool stopping_ = false;
  bool due_ = false;
  ManagerLinkState state_;
  std::shared_ptr<manager_client::ManagerClient> client_;  // shared, so that another thread can cancel the present call
  std::condition_variable_any wake_;
  std::jthread thread_;  // declared last, because it uses all members above
};

}  // namespace tributary::aggregator
