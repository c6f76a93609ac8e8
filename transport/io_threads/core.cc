#include "transport/io_threads/core.h"

#include <fcntl.h>

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport::io_threads {

namespace {

/// Lends memory to the peers of several transports.
class LentToAll final : public KeptMemory {
 public:
  explicit LentToAll(std::vector<std::unique_ptr<KeptMemory>> parts) : parts_(std::move(parts)) {}

 private:
  std::vector<std::unique_ptr<KeptMemory>> parts_;
};

SharedRange copy_of(const SharedRange& range) {
  return {.file = OwnedDescriptor(::fcntl(range.file.get(), F_DUPFD_CLOEXEC, 0)),
          .offset = range.offset,
          .bytes = range.bytes,
          .keeps = range.keeps};
}

}  // namespace

Core::Core(const NearSettings& settings, std::uint32_t threads, std::function<void()> wake_user)
    : settings_(settings),
      number_(threads),
      wake_user_(std::move(wake_user)),
      frames_queued_max_(std::min(settings.tcp.frames_queued_max, settings.shm.frames_queued_max)) {
  TRIBUTARY_ASSERT(threads > 0, "{} I/O threads", threads);
}

IoThread& Core::next_thread() {
  if (threads_.size() < number_) {
    const std::lock_guard lock(starting_);
    const auto number = static_cast<std::uint32_t>(threads_.size());
    threads_.push_back(std::make_unique<IoThread>(settings_, number, alarm_, wake_user_));
    return *threads_.back();
  }
  return *threads_[next_++ % threads_.size()];
}

Key Core::free_key() {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(places_.size()));
    places_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  return {place, places_[place].generation};
}

std::unique_ptr<Channel> Core::add(Command command, ChannelHandler& handler, std::string peer) {
  IoThread& thread = next_thread();
  const Key key = free_key();
  command.details->end = std::make_unique<IoEnd>(thread, key);
  command.end = command.details->end.get();
  const bool open = command.kind == Command::Kind::adopt;
  auto end = std::make_shared<UserEnd>(*this, thread, command.end, key, handler, std::move(peer), open);
  places_[key.place].end = end;
  thread.put(std::move(command));
  return std::make_unique<ForwardingChannel<Core, UserEnd>>(shared_from_this(), std::move(end));
}

std::unique_ptr<Channel> Core::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  auto details = std::make_unique<CommandDetails>();
  details->to = to;
  details->limit = limit;
  return add({.kind = Command::Kind::connect, .details = std::move(details)}, handler, to_string(to));
}

std::unique_ptr<Channel> Core::adopt(std::unique_ptr<HandedOver> open, ChannelHandler& handler, std::string peer) {
  auto details = std::make_unique<CommandDetails>();
  details->open = std::move(open);
  return add({.kind = Command::Kind::adopt, .details = std::move(details)}, handler, std::move(peer));
}

void Core::forget(UserEnd& end) {
  Place& place = places_[end.key().place];
  TRIBUTARY_ASSERT(place.end.get() == &end, "the channel to {} is not in its place", end.peer());
  free_.push_back(end.key().place);
  ++place.generation;
  place.end.reset();
}

std::size_t Core::turn() {
  callbacks_ = 0;
  static_cast<void>(alarm_.take());
  for (std::size_t i = 0; i < threads_.size(); ++i) {  // a handler may connect, which may start a thread
    threads_[i]->take_events([this](Event& event) {
      const Place& place = places_[event.key.place];
      if (place.generation != event.key.generation || place.end == nullptr) return;
      const std::shared_ptr<UserEnd> end = place.end;  // the handler of this end may destroy other channels
      end->on_event(event);
    });
  }
  due_.run([](UserEnd& end) { end.turn(); });
  kick();
  return callbacks_;
}

void Core::kick() {
  for (const auto& thread : threads_) thread->kick();
}

bool Core::fall_asleep() noexcept {
  return alarm_.fall_asleep() && due_.empty();
}

void Core::shut_down() {
  for (const auto& thread : threads_) thread->stop();
  for (Place& place : places_) {
    if (place.end != nullptr) place.end->shut_down();
  }
  due_.clear();
}

std::unique_ptr<KeptMemory> Core::lend(NearTransport& own, const std::byte* address, SharedRange range) {
  std::vector<std::unique_ptr<KeptMemory>> parts;
  {
    const std::lock_guard lock(starting_);
    for (const auto& thread : threads_) {
      SharedRange copy = copy_of(range);
      if (!copy.file.is_open()) continue;  // without a descriptor, the transport copies payloads
      if (auto part = thread->lend(address, std::move(copy))) parts.push_back(std::move(part));
    }
  }
  if (auto part = own.lend(address, std::move(range))) parts.push_back(std::move(part));
  if (parts.empty()) return nullptr;
  return std::make_unique<LentToAll>(std::move(parts));
}

}  // namespace tributary::transport::io_threads
