#pragma once
// The aggregator's connection to the manager: registers, renews the lease, learns the key, obeys a drain, unregisters.
// All of it runs on one thread, which may block and touches no data.
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
  std::string token_file;  // read again before every registration, so that a person can correct it
  std::string state_file;
  manager_client::AggregatorRegistration registration;
  ExchangeKey exchange;  // its public half is registered
  std::chrono::milliseconds retry_min{500};
  std::chrono::milliseconds retry_max{15'000};
  std::chrono::milliseconds connect_limit{2'000};
  std::chrono::milliseconds request_limit{5'000};
  std::chrono::milliseconds drain_grace{30'000};
};

/// Called on the link's thread.
struct ManagerLinkUser {
  std::function<manager_client::AggregatorLoad()> load;
  /// Returns the numbers of the registration's addresses that do not live.
  std::function<std::vector<std::uint32_t>()> data_down;
  /// The manager plans no more trees over this aggregator: groups move to other trees by themselves.
  std::function<void()> drain_begins;
  /// The grace is over: end the lanes that are left.
  std::function<void()> drain_ends;
  std::function<void()> drain_revoked;
};

struct ManagerLinkState {
  bool registered = false;
  bool draining = false;  // the manager says so
  std::uint64_t incarnation = 0;
  std::uint64_t registrations = 0;
  std::uint64_t renewals = 0;
  std::uint64_t failures = 0;  // calls that failed
  std::string last_error;      // empty when the last call was answered
  std::optional<std::chrono::steady_clock::time_point> last_answer;
};

class ManagerLink {
 public:
  /// Starts the thread. `keys` must outlive the link.
  ManagerLink(ManagerLinkSettings settings, KeyRing& keys, ManagerLinkUser user);
  /// Does not unregister.
  ~ManagerLink();
  ManagerLink(const ManagerLink&) = delete;
  ManagerLink& operator=(const ManagerLink&) = delete;

  [[nodiscard]] ManagerLinkState state() const;
  /// Renews at once, because there is news for the manager. Any thread.
  void renew_soon();
  /// Ends the renewals and the thread, and unregisters from the manager; takes at most `limit`.
  void take_leave(std::chrono::milliseconds limit);

 private:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  void run(const std::stop_token& stop);
  /// Makes one call to the manager, and returns the time until the next.
  [[nodiscard]] Milliseconds step();
  [[nodiscard]] Milliseconds register_here();
  [[nodiscard]] Milliseconds renew();
  void learn(const manager_client::RegistrationAnswer& answer);
  [[nodiscard]] Identity identity_of(const manager_client::RegistrationAnswer& answer) const;
  /// True: there is news for the manager, to be sent at once.
  [[nodiscard]] bool obey(manager_client::AggregatorState state);
  [[nodiscard]] Milliseconds lost_registration();
  void end_grace_when_due();
  [[nodiscard]] Milliseconds failed(const std::string& doing, const Error& error);
  void answered();
  [[nodiscard]] Result<std::shared_ptr<manager_client::ManagerClient>> connect(Milliseconds request_limit) const;
  void use(std::shared_ptr<manager_client::ManagerClient> client);

  const ManagerLinkSettings settings_;
  KeyRing& keys_;
  const ManagerLinkUser user_;

  // used by the thread alone
  std::string name_;
  std::uint64_t incarnation_ = 0;
  bool registered_ = false;
  Milliseconds lease_{10'000};
  Milliseconds retry_{};
  std::optional<Clock::time_point> grace_end_;
  std::optional<Clock::time_point> last_unknown_;
  Clock::time_point last_complaint_{};

  /// Ends the thread, and the call that it is in.
  void stop();

  mutable std::mutex mutex_;  // guards state_, client_, stopping_ and due_
  bool stopping_ = false;
  bool due_ = false;
  ManagerLinkState state_;
  std::shared_ptr<manager_client::ManagerClient> client_;  // shared, to cancel the call that is under way
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace tributary::aggregator
