#include "aggregator/daemon/manager_link.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "aggregator/daemon/files.h"

namespace tributary::aggregator {

using manager_client::AggregatorState;
using manager_client::ManagerClient;

namespace {

// The time after which a lasting failure is logged again: every hour of the log shows the failure, but other lines
// remain visible.
constexpr auto kComplainEvery = std::chrono::minutes(1);
constexpr int kNameFightLeases = 3;
constexpr std::chrono::milliseconds kDrainRenewal{500};  // time between renewals during a drain

/// Returns advice about this error for the reader of the log.
std::string advice_for(Errc code) {
  switch (code) {
    case Errc::denied:
      return "; copy the manager's token file to token_file once more";
    case Errc::mismatch:
      return "; give this aggregator a name of its own, or end the other one";
    case Errc::bad_argument:
      return "; correct the configuration and start again";
    default:
      return "";
  }
}

}  // namespace

ManagerLink::ManagerLink(ManagerLinkSettings settings, KeyRing& keys, ManagerLinkUser user)
    : settings_(std::move(settings)),
      keys_(keys),
      user_(std::move(user)),
      name_(settings_.registration.name),
      retry_(settings_.retry_min),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

ManagerLink::~ManagerLink() {
  stop();
}

void ManagerLink::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (client_) client_->cancel();
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

ManagerLinkState ManagerLink::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

void ManagerLink::renew_soon() {
  {
    const std::lock_guard lock(mutex_);
    due_ = true;
  }
  wake_.notify_one();
}

void ManagerLink::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "manager-link");
  while (!stop.stop_requested()) {
    const Clock::time_point next = Clock::now() + step();
    const Clock::time_point until = grace_end_ ? std::min(next, *grace_end_) : next;
    std::unique_lock lock(mutex_);
    wake_.wait_until(lock, stop, until, [this] { return due_; });
    due_ = false;
  }
}

ManagerLink::Milliseconds ManagerLink::step() {
  end_grace_when_due();
  return registered_ ? renew() : register_here();
}

Result<std::shared_ptr<ManagerClient>> ManagerLink::connect(Milliseconds request_limit) const {
  auto token = read_token(settings_.token_file);
  if (!token) return std::unexpected(token.error());
  auto tls = manager_client::tls_for(settings_.url, settings_.tls);
  if (!tls) return std::unexpected(tls.error());
  auto client = ManagerClient::create({.url = settings_.url,
                                       .token = std::move(*token),
                                       .connect_limit = std::min(settings_.connect_limit, request_limit),
                                       .request_limit = request_limit,
                                       .answer_bytes_max = 1U << 20,
                                       .tls = std::move(*tls)});
  if (!client) return std::unexpected(client.error());
  client->note_fence(keys_.fence());
  return std::make_shared<ManagerClient>(std::move(*client));
}

void ManagerLink::use(std::shared_ptr<ManagerClient> client) {
  const std::lock_guard lock(mutex_);
  client_ = std::move(client);
  if (stopping_) client_->cancel();
}

ManagerLink::Milliseconds ManagerLink::register_here() {
  auto client = connect(settings_.request_limit);
  if (!client) return failed("register with", client.error());
  use(*client);
  manager_client::AggregatorRegistration registration = settings_.registration;
  registration.data_down = user_.data_down();
  registration.draining = this->state().draining;
  registration.incarnation = incarnation_;
  const auto answer = (*client)->register_aggregator(registration);
  if (!answer) return failed("register with", answer.error());
  keys_.note_fence((*client)->fence());
  learn(*answer);
  answered();
  spdlog::info("registered with the manager at {} as {}, incarnation {}, lease {} s", settings_.url, name_,
               incarnation_, answer->lease_seconds);
  // A drain of an earlier registration lasts until the manager ends it: renews at once to ask the manager.
  return registration.draining ? Milliseconds(0) : until_renewal();
}

Identity ManagerLink::identity_with(const manager_client::ManagerKeys& keys) const {
  Identity identity{.name = name_, .manager_key = keys.public_key, .manager_exchange = keys.exchange_key};
  std::ranges::copy(settings_.exchange.private_bytes(), identity.exchange_private.emplace().begin());
  return identity;
}

void ManagerLink::learn(const manager_client::RegistrationAnswer& answer) {
  name_ = answer.name;
  incarnation_ = answer.incarnation;
  lease_ = std::chrono::seconds(std::max(1U, answer.lease_seconds));
  registered_ = true;
  {
    const std::lock_guard lock(mutex_);
    state_.incarnation = incarnation_;
    ++state_.registrations;
  }
  learn(answer.keys);
}

void ManagerLink::learn(const manager_client::ManagerKeys& keys) {
  const auto known = keys_.current();
  const auto shared = settings_.exchange.agree(keys.exchange_key);
  if (!shared) {
    spdlog::error("the manager at {} gave an exchange key that is not valid: {}", settings_.url,
                  shared.error().message);
    return;
  }
  if (known && known->name == name_ && known->public_key == keys.public_key && known->shared == *shared) return;
  if (known && known->public_key != keys.public_key) {
    spdlog::warn("the manager at {} has another key than before: joins are verified with the new one from now on",
                 settings_.url);
  }
  if (auto ok = TokenVerifier::create(keys.public_key); !ok) {
    spdlog::error("the manager at {} gave a key that is not valid: {}", settings_.url, ok.error().message);
    return;
  }
  // The key is written before it is used: a child that could join can then join again after a restart.
  if (auto ok = write_identity(settings_.state_file, identity_with(keys)); !ok) {
    spdlog::warn("the manager's key was not kept in {}: {}; a start while the manager is down will refuse all joins",
                 settings_.state_file, ok.error().message);
  }
  static_cast<void>(keys_.set(name_, keys.public_key, *shared));
}

ManagerLink::Milliseconds ManagerLink::renew() {
  const auto load = user_.load();
  std::shared_ptr<ManagerClient> client;
  {
    const std::lock_guard lock(mutex_);
    client = client_;
  }
  std::optional<manager_client::ManagerKeys> keys;
  const auto state =
      client->renew_aggregator(name_, incarnation_, load, user_.data_down(), this->state().draining, &keys);
  if (!state) {
    // The lease may have ended meanwhile; the manager then answers the next renewal with `unknown`.
    return std::min(failed("renew the lease at", state.error()), until_renewal());
  }
  keys_.note_fence(client->fence());
  answered();
  if (*state == AggregatorState::unknown) return lost_registration();
  if (keys) learn(*keys);
  return obey(*state) ? Milliseconds(0) : until_renewal();
}

/// Renews more often during a drain, because the manager plans no trees over this process until it knows of the end.
ManagerLink::Milliseconds ManagerLink::until_renewal() const {
  return this->state().draining ? std::min(kDrainRenewal, lease_ / 3) : lease_ / 3;
}

// Called if the manager has lost its data, or the lease has ended: registers again at once. If another process has
// taken the name, the two processes would take it from each other for ever, so the second time this process waits.
ManagerLink::Milliseconds ManagerLink::lost_registration() {
  registered_ = false;
  {
    const std::lock_guard lock(mutex_);
    state_.registered = false;
  }
  const Clock::time_point now = Clock::now();
  const bool again = last_unknown_ && now - *last_unknown_ < kNameFightLeases * lease_;
  last_unknown_ = now;
  if (!again) {
    spdlog::warn("the manager at {} does not know {} (incarnation {}) any more: registering it", settings_.url, name_,
                 incarnation_);
    return Milliseconds(0);
  }
  spdlog::error(
      "the registration of {} at {} is gone once more: does another aggregator use this name? Give each its own; "
      "registering again in {} ms",
      name_, settings_.url, settings_.retry_max.count());
  return settings_.retry_max;
}

bool ManagerLink::obey(AggregatorState state) {
  const bool drains = state == AggregatorState::draining;
  bool drained_before = false;
  {
    const std::lock_guard lock(mutex_);
    drained_before = std::exchange(state_.draining, drains);
    ++state_.renewals;
  }
  if (drains == drained_before) return false;
  if (drains) {
    spdlog::info("the manager drains {}: it takes no new lanes, and its lanes end within {} ms", name_,
                 settings_.drain_grace.count());
    grace_end_ = Clock::now() + settings_.drain_grace;
    user_.drain_begins();
  } else {
    spdlog::info("the manager no longer drains {}: it takes lanes again", name_);
    grace_end_.reset();
    user_.drain_revoked();
  }
  return !drains;  // the manager plans trees over this aggregator only after it knows that the drain is over
}

void ManagerLink::end_grace_when_due() {
  if (!grace_end_ || Clock::now() < *grace_end_) return;
  grace_end_.reset();
  user_.drain_ends();
}

ManagerLink::Milliseconds ManagerLink::failed(const std::string& doing, const Error& error) {
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    ++state_.failures;
    is_news = state_.last_error != error.message;
    state_.last_error = error.message;
    if (error.code == Errc::aborted) return {};
  }
  if (is_news || Clock::now() - last_complaint_ > kComplainEvery) {
    last_complaint_ = Clock::now();
    const bool has_key = keys_.current() != nullptr;
    spdlog::warn("could not {} the manager: {}{} - trying again; {}", doing, error.message, advice_for(error.code),
                 has_key ? "lanes are served meanwhile" : "joins are refused until its key is known");
  }
  const Milliseconds wait = retry_;
  retry_ = std::min(2 * retry_, settings_.retry_max);
  return wait;
}

void ManagerLink::answered() {
  retry_ = settings_.retry_min;
  const std::lock_guard lock(mutex_);
  if (!state_.last_error.empty() && state_.registered) spdlog::info("the manager at {} answers again", settings_.url);
  state_.last_error.clear();
  state_.last_answer = Clock::now();
  state_.registered = registered_;
}

void ManagerLink::take_leave(Milliseconds limit) {
  stop();
  if (!registered_) return;
  registered_ = false;
  auto client = connect(std::min(limit, settings_.request_limit));  // stop() has cancelled client_ for ever
  if (!client) return;
  if (auto ok = (*client)->unregister_aggregator(name_); !ok && ok.error().code != Errc::peer_gone) {
    spdlog::warn("could not tell the manager that {} ends: {}; its lease ends by itself", name_, ok.error().message);
  }
}

}  // namespace tributary::aggregator
