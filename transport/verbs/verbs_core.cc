#include "transport/verbs/verbs_core.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/verbs/device_watch.h"
#include "transport/verbs/verbs_connection.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

using namespace verbs;  // NOLINT(google-build-using-namespace): one folder, two names for its layers

namespace {

constexpr int kCompletionsAtOnce = 32;
constexpr int kBatchesAtOnce = 8;  // most batches of completions in one turn
// While completions keep coming, or poll() spins, one of this number of polls reads the clock.
constexpr std::uint32_t kPollsBetweenClocks = 16;
// After a driven transport had work, it is polled in this number of further turns without a report, so that the next
// event need not wait for the thread that watches descriptors.
constexpr std::uint32_t kTurnsBeside = 256;

}  // namespace

Result<std::shared_ptr<VerbsCore>> VerbsCore::create(const VerbsSettings& settings) {
  std::shared_ptr<VerbsCore> core(new VerbsCore(settings));
  if (auto ok = core->open(); !ok) return std::unexpected(ok.error());
  return core;
}

Status VerbsCore::open() {
  events_.reset(rdma_create_event_channel());
  if (!events_) {
    return fail(Errc::unsupported, std::string("the RDMA connection manager cannot be used (is rdma_ucm loaded?): ") +
                                       std::strerror(errno) + ".");
  }
  wake_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  control_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (wake_.get() < 0 || epoll_.get() < 0 || control_.get() < 0)
    return fail(Errc::exhausted, std::string("no descriptor left: ") + std::strerror(errno) + ".");
  auto event_watch = EventWatch::of_process();
  if (!event_watch) return std::unexpected(event_watch.error());
  event_watch_ = std::move(*event_watch);
  ::fcntl(events_->fd, F_SETFL, ::fcntl(events_->fd, F_GETFL) | O_NONBLOCK);
  watch(control_, events_->fd, Told::control);
  watch(epoll_, control_.get(), Told::control);
  watch(epoll_, wake_.get(), Told::wake);
  control_number_ = event_watch_->enter(control_.get(), control_waits_);
  return {};
}

VerbsCore::~VerbsCore() {
  if (beside_number_ != 0) event_watch_->leave(beside_number_, beside_descriptor_);
  if (control_number_ != 0) event_watch_->leave(control_number_, control_.get());
}

void VerbsCore::watch(const FileDescriptor& set, int descriptor, Told told) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<std::uint64_t>(told)}};
  ::epoll_ctl(set.get(), EPOLL_CTL_ADD, descriptor, &event);  // the system removes a closed descriptor by itself
}

void VerbsCore::drive(std::shared_ptr<SocketCore> beside) {
  TRIBUTARY_ASSERT(beside_ == nullptr && beside != nullptr, "a second transport is added, or no transport");
  beside_ = std::move(beside);
  beside_->follow_rounds(*this);
  beside_descriptor_ = beside_->be_driven();
  watch(epoll_, beside_descriptor_, Told::beside);
  beside_number_ = event_watch_->enter(beside_descriptor_, beside_waits_);
}

Result<std::shared_ptr<Device>> VerbsCore::device_of(ibv_context* context, std::uint32_t completions) {
  std::erase_if(devices_, [](const auto& device) { return device.expired(); });
  for (const auto& weak : devices_) {
    auto device = weak.lock();
    if (device->context() == context && device->has_room(completions)) return device;
  }
  auto opened = Device::open(context, settings_, kept_, statistics);
  if (!opened) return opened;
  watch(epoll_, (*opened)->completion_descriptor(), Told::completions);
  if (std::ranges::find(contexts_, context) == contexts_.end()) {
    contexts_.push_back(context);
    watch(control_, context->async_fd, Told::control);
    DeviceWatch::of_process().enter(context, weak_from_this());
  }
  devices_.emplace_back(*opened);
  return opened;
}

// ---- Turns

void VerbsCore::begin_poll(bool /*waits*/) {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  take_promises();
  flush_dirty();
  run_once();
}

void VerbsCore::end_poll() noexcept {
  thread_.store({}, std::memory_order_relaxed);  // another thread may take the next turn
}

turn::Looked VerbsCore::look(bool /*spins*/) {
  const bool some = run_once();
  return {.at = time(), .some = some};
}

turn::Looked VerbsCore::sleep(TimePoint /*now*/, TimePoint until) {
  sleep_until(until);
  return {.at = time(), .some = true};
}

/// Does one round of work. Returns true if there was any.
bool VerbsCore::run_once() {
  const bool some = take_completions();
  const bool control = control_waits_->load(std::memory_order_acquire);
  if (control) take_control();
  const bool beside = beside_ != nullptr && take_beside();
  const bool timed = !timers_.empty() || next_look() != TimePoint::max() ||
                     (beside_ != nullptr && beside_->first_deadline() != TimePoint::max());
  if (timed && (control || ++polls_without_clock_ >= kPollsBetweenClocks)) {
    polls_without_clock_ = 0;
    run_timers();
  }
  if (!some && !control && !beside && idle()) return false;
  calls().take([this](const std::function<void()>& call) {
    take_promises();  // the call may send memory at the addresses of memory that was kept before
    count_callback();
    call();
  });
  run_due();
  return true;
}

/// Polls the driven transport, whose callbacks count as callbacks of this transport. It asks the system only after a
/// report, and in some turns after it. Returns true if there was work.
bool VerbsCore::take_beside() {
  const bool told = beside_waits_->load(std::memory_order_acquire);
  if (!told && turns_beside_left_ == 0 && !beside_->has_work()) return false;
  if (told) {
    beside_waits_->store(false, std::memory_order_relaxed);
    beside_armed_ = false;
  }
  const std::size_t ran = beside_->poll(Duration::zero());
  count_callbacks(ran);
  if (ran > 0) {
    turns_beside_left_ = kTurnsBeside;
  } else if (turns_beside_left_ > 0) {
    --turns_beside_left_;
  }
  // While the driven transport is polled in every turn, it need not report; its descriptor ends a sleep. After rearm()
  // it reports work that is left.
  if (turns_beside_left_ == 0 && !std::exchange(beside_armed_, true)) {
    event_watch_->rearm(beside_number_, beside_descriptor_);
  }
  return told || ran > 0;
}

/// Takes completions. Returns true if there were any.
bool VerbsCore::take_completions() {
  devices_now_.clear();
  for (const auto& weak : devices_) {
    if (auto device = weak.lock()) devices_now_.push_back(std::move(device));
  }
  bool some = false;
  for (const auto& device : devices_now_) {
    if (device->completion_queue() == nullptr) continue;
    for (int batch = 0; batch < kBatchesAtOnce; ++batch) {
      ibv_wc completions[kCompletionsAtOnce];
      const int count = ibv_poll_cq(device->completion_queue(), kCompletionsAtOnce, completions);
      for (int i = 0; i < count; ++i) {
        const auto found = connections_.find(WorkId::of(completions[i].wr_id).connection);
        if (found != connections_.end()) found->second->completed(completions[i]);
      }
      some = some || count > 0;
      if (count < kCompletionsAtOnce) {
        device->seen_empty();
        break;
      }
    }
  }
  devices_now_.clear();
  return some;
}

void VerbsCore::take_control() {
  control_waits_->store(false, std::memory_order_relaxed);
  take_connection_events();
  std::erase_if(contexts_, [&](ibv_context* context) {
    if (DeviceWatch::of_process().read(context)) return false;
    ::epoll_ctl(control_.get(), EPOLL_CTL_DEL, context->async_fd, nullptr);  // else it would stay readable for ever
    return true;
  });
  event_watch_->rearm(control_number_, control_.get());
}

void VerbsCore::take_connection_events() {
  rdma_cm_event* event = nullptr;
  while (!ended() && rdma_get_cm_event(events_.get(), &event) == 0) {
    Notice notice{.event = event->event, .status = event->status};
    auto* const whom = static_cast<Notified*>(
        (event->listen_id != nullptr && event->event == RDMA_CM_EVENT_CONNECT_REQUEST) ? event->listen_id->context
                                                                                       : event->id->context);
    ConnectionIdPtr request;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
      request.reset(event->id);
      request->context = nullptr;
      notice.request = &request;
    }
    const rdma_conn_param& said = event->param.conn;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST || event->event == RDMA_CM_EVENT_CONNECT_RESPONSE ||
        event->event == RDMA_CM_EVENT_ESTABLISHED || event->event == RDMA_CM_EVENT_REJECTED) {
      notice.data_bytes = std::min<std::size_t>(said.private_data_len, notice.data.size());
      if (notice.data_bytes > 0) std::memcpy(notice.data.data(), said.private_data, notice.data_bytes);
      notice.reads = said.initiator_depth;
    }
    rdma_ack_cm_event(event);
    if (whom != nullptr) whom->notice(notice);
  }
}

void VerbsCore::run_timers() {
  const TimePoint now = time();
  while (VerbsConnection* const connection = timers_.take_expired(now)) connection->time_out();
  if (beside_ != nullptr && beside_->first_deadline() <= now) count_callbacks(beside_->poll(Duration::zero()));
  look_for_key(now);
}

void VerbsCore::set_timer(VerbsConnection& connection, TimePoint at) {
  timers_.set(connection, at);
}

void VerbsCore::clear_timer(VerbsConnection& connection) noexcept {
  timers_.clear(connection);
}

void VerbsCore::run_due() {
  begin_turn();
  due_.run_if([this](const VerbsConnection& one) { return one.closed() || one.may_go(round()); },
              [this](VerbsConnection& connection) {
                connection.turn();
                flush_dirty();
              });
  flush_dirty();
}

void VerbsCore::flush_dirty() {
  dirty_.run_if([this](const VerbsConnection& one) { return one.closed() || one.may_go(round()); },
                [](VerbsConnection& connection) { connection.send_turn(); });
}

void VerbsCore::make_due(VerbsConnection& connection) {
  due_.add(connection);
}

void VerbsCore::make_dirty(VerbsConnection& connection) {
  dirty_.add(connection);
}

// ---- Waiting

/// Sleeps until an event comes, and handles it.
void VerbsCore::sleep_until(TimePoint deadline) {
  for (const auto& weak : devices_) {
    if (const auto device = weak.lock()) device->arm();
  }
  const bool nothing_posted = calls().fall_asleep();
  // A completion that came before the queues were armed causes no event, so this thread looks at all queues once more.
  if (run_once() || !nothing_posted || ended()) return calls().wake_up();
  deadline = std::min({deadline, timers_.first(), next_look()});
  if (beside_ != nullptr) deadline = std::min(deadline, beside_->first_deadline());
  const auto left = std::max(Duration::zero(), deadline - time());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec limit{.tv_sec = seconds.count(),
                       .tv_nsec = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count()};
  std::array<epoll_event, 8> events;
  ++statistics.sleeps;
  const int count = ::epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), &limit, nullptr);
  calls().wake_up();
  hear(std::span(events).first(static_cast<std::size_t>(std::max(count, 0))));
  polls_without_clock_ = kPollsBetweenClocks;  // so that this thread looks at the timers: one may have ended the
                                               // sleep
  run_once();
}

/// Takes the events that have ended a sleep.
void VerbsCore::hear(std::span<const epoll_event> told) {
  bool completions = false;
  for (const epoll_event& event : told) {
    switch (static_cast<Told>(event.data.u64)) {
      case Told::wake: {
        std::uint64_t ignored = 0;
        static_cast<void>(!::read(wake_.get(), &ignored, sizeof ignored));
        break;
      }
      case Told::control:
        control_waits_->store(true, std::memory_order_relaxed);
        break;
      case Told::completions:
        completions = true;
        break;
      case Told::beside:
        beside_waits_->store(true, std::memory_order_relaxed);
        break;
    }
  }
  for (const auto& weak : devices_) {
    const auto device = completions ? weak.lock() : nullptr;
    if (device) device->take_events();
  }
}

void VerbsCore::wake() noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

// ---- Devices and addresses

/// Asks the connection manager by binding an id to the address; the manager finds the device for it.
Status VerbsCore::device_at(const std::string& own_address) const {
  std::vector<std::string> texts = settings_.rails;
  if (!own_address.empty()) texts = {own_address};
  if (texts.empty() && !settings_.bind_address.empty()) texts.push_back(settings_.bind_address);
  std::string gone;
  for (const std::string& text : texts) {
    const auto found = addresses_of({text, 0}, true);
    rdma_cm_id* id = nullptr;
    if (!found || rdma_create_id(events_.get(), &id, nullptr, RDMA_PS_TCP) != 0) continue;
    const ConnectionIdPtr owned(id);
    NetworkAddress address = found->front();
    if (rdma_bind_addr(id, address.get()) == 0) return {};
    gone += (gone.empty() ? "" : " or ") + text;
  }
  if (texts.empty()) return {};  // the system chooses the source
  return fail(Errc::unreachable, "no RDMA device is behind " + gone + " any more");
}

std::uint32_t VerbsCore::enter(VerbsConnection& connection) {
  while (connections_.contains(next_number_)) ++next_number_;
  const bool entered = connections_.emplace(next_number_, &connection).second;
  TRIBUTARY_ASSERT(entered, "connection {} enters twice", next_number_);
  statistics.connections = connections_.size();
  return next_number_++;
}

void VerbsCore::leave(std::uint32_t number) noexcept {
  const std::size_t left = connections_.erase(number);
  TRIBUTARY_ASSERT(left == 1, "connection {} leaves, and is known {} times", number, left);
  statistics.connections = connections_.size();
}

void VerbsCore::shut_down() {
  end();
  while (!connections_.empty()) {
    const std::size_t before = connections_.size();
    connections_.begin()->second->close();
    TRIBUTARY_ASSERT(connections_.size() < before, "one of {} connections was closed and has not left", before);
  }
  while (!listeners_.empty()) (*listeners_.begin())->shut_down();
  due_.clear();
  dirty_.clear();
  forget_looks();
  calls().forget();
}

void VerbsCore::device_failed(ibv_context* context, std::uint32_t queue_pair, const std::string& what) {
  std::vector<ConnectionPtr> concerned;
  for (const auto& [number, connection] : connections_) {
    if (connection->uses(context, queue_pair)) concerned.push_back(connection->shared_from_this());
  }
  for (const auto& connection : concerned) connection->device_failed(what);
}

/// Wakes no thread, because the next poll() begins with promises.
void VerbsCore::promise(const Promise& promise) {
  static_cast<void>(promises_.post(promise));
  if (thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) take_promises();
}

void VerbsCore::take_promises() {
  promises_.take([this](const Promise& promise) { keep_promise(promise); });
}

void VerbsCore::keep_promise(const Promise& promise) {
  if (!promise.ends) {
    const bool is_new = kept_.emplace(promise.number, KeptRange{.memory = promise.memory, .owner = nullptr}).second;
    TRIBUTARY_ASSERT(is_new, "promise {} is made twice", promise.number);
    return;
  }
  const auto found = kept_.find(promise.number);
  if (found == kept_.end()) return;
  const auto memory = found->second.memory;
  if (found->second.owner != nullptr) {
    TRIBUTARY_ASSERT(kept_of_devices_ > 0, "promise {} is for memory of a device, and there is none", promise.number);
    --kept_of_devices_;
  }
  kept_.erase(found);  // the destructor of its owner may end another promise
  for (const auto& device : devices_) {
    if (const auto alive = device.lock()) alive->forget(memory);
  }
}

std::uint64_t VerbsCore::keep(std::span<const std::byte> memory) {
  const std::uint64_t number = next_kept_.fetch_add(1, std::memory_order_relaxed);
  promise({.number = number, .memory = memory});
  return number;
}

std::uint64_t VerbsCore::keep_device_memory(std::span<const std::byte> memory, std::shared_ptr<DeviceMemory> owner) {
  const std::uint64_t number = next_kept_.fetch_add(1, std::memory_order_relaxed);
  // The end of an earlier promise for these addresses may still wait in the queue.
  for (const auto& device : devices_) {
    if (const auto alive = device.lock()) alive->forget(memory, Registrations::Kept::is_new);
  }
  kept_.emplace(number, KeptRange{.memory = memory, .owner = std::move(owner)});
  ++kept_of_devices_;
  return number;
}

Status VerbsCore::copy(std::span<std::byte> to, const std::byte* from) {
  if (to.empty()) return {};
  if (kept_of_devices_ > 0) {
    for (const auto& memory : {std::span<const std::byte>(to), std::span(from, to.size())}) {
      const KeptRange* const kept = kept_now(kept_, memory);
      if (kept != nullptr && kept->owner != nullptr) return kept->owner->copy(to.data(), from, to.size());
    }
  }
  std::memcpy(to.data(), from, to.size());
  return {};
}

void VerbsCore::unkeep(std::uint64_t number) {
  promise({.number = number, .memory = {}, .ends = true});
}

}  // namespace tributary::transport
