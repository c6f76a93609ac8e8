// Class ShmConnection: opens. It exchanges the memory, and the promise that no process can change the memory's size.
#include <sys/epoll.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "transport/channel/deadline.h"
#include "transport/shm/peer_text.h"
#include "transport/shm/shm_connection.h"
#include "transport/shm/shm_listener.h"
#include "transport/shm/unix_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

constexpr std::uint32_t kVersion = 2;
constexpr Duration kCallAgainAfter = std::chrono::milliseconds(2);

struct Offer {
  std::uint32_t version = kVersion;
  std::uint32_t ring_bytes = 0;
};
enum class Word : std::uint32_t { mapped = 0x5041'4D01, go = 0x4F47'0001 };

template <class T>
std::span<const std::byte> bytes_of(const T& message) noexcept {
  return std::as_bytes(std::span(&message, 1));
}

}  // namespace

void ShmConnection::connect(std::string name, Duration limit) {
  name_ = std::move(name);
  limit_ = limit;
  deadline_ = deadline_of(Clock::now(), limit);
  call();
}

/// Calls a listener. If its queue is full, tries again in a moment, because the system does not report when there is
/// room.
void ShmConnection::call() {
  auto socket = connect_to_name(name_);
  if (!socket && socket.error() == EAGAIN && Clock::now() < deadline_) {
    return core_.set_deadline(*this, std::min(kCallAgainAfter, deadline_ - Clock::now()));
  }
  if (!socket) {
    const int why = socket.error();
    const bool ours = why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM;
    return greeting_failed(std::strerror(why), ours ? Errc::exhausted : Errc::unreachable);
  }
  core_.set_deadline(*this, deadline_ - Clock::now());
  watch_greeting(std::move(*socket), State::awaits_offer);
}

void ShmConnection::go_on(OwnedDescriptor socket, Beginning&& beginning, Duration limit, Otherwise otherwise) {
  handler_ = beginning.handler;
  queue_ = std::move(beginning.queue);
  detached_ = beginning.detached;
  deadline_ = beginning.deadline;
  limit_ = beginning.limit;
  otherwise_ = std::move(otherwise);
  core_.set_deadline(*this, std::min(limit, deadline_ - Clock::now()));
  watch_greeting(std::move(socket), State::awaits_offer);
}

Status ShmConnection::greet(OwnedDescriptor socket, ShmAcceptor& acceptor, Duration limit) {
  auto memory = RingMemory::create(part_->settings.ring_bytes, part_->settings.huge_pages);
  if (!memory) return std::unexpected(memory.error());
  const Offer offer{.ring_bytes = part_->settings.ring_bytes};
  if (!send_message(socket.get(), bytes_of(offer), (*memory)->descriptor())) {
    return fail(Errc::peer_gone, peer_text(peer_) + " has gone.");
  }
  memory_ = std::move(*memory);
  acceptor_ = &acceptor;
  core_.set_deadline(*this, limit);
  watch_greeting(std::move(socket), State::awaits_mapped);
  return {};
}

void ShmConnection::watch_greeting(OwnedDescriptor socket, State state) {
  state_ = state;
  socket_.own(socket.release());
  if (state == State::awaits_offer && !trusted_user(socket_.get())) {
    return greeting_failed("another user's process has taken its name");
  }
  if (const int error = socket_.watch(EPOLLIN | EPOLLRDHUP, *this); error != 0) {
    greeting_failed(std::strerror(error), Errc::exhausted);
  }
}

void ShmConnection::turn_greeting() {
  if (state_ == State::awaits_offer) take_offer();
  if (state_ == State::awaits_mapped) take_mapped();
  if (state_ == State::awaits_go) take_go();
  if (opening() && hung_up_ && !fatal_) greeting_failed("the connection was closed at once");
}

/// Reads one message, whose length both sides know. Returns true when the message is whole.
bool ShmConnection::hear(std::size_t bytes, OwnedDescriptor* descriptor) {
  TRIBUTARY_ASSERT(bytes <= heard_.size() && heard_bytes_ <= bytes, "{} bytes of a message of {} are there",
                   heard_bytes_, bytes);
  while (heard_bytes_ < bytes) {
    const auto rest = std::span(heard_).first(bytes).subspan(heard_bytes_);
    const ssize_t got = receive_message(socket_.get(), rest, descriptor);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) hung_up_ = true;
    if (got <= 0) return false;
    heard_bytes_ += static_cast<std::size_t>(got);
  }
  heard_bytes_ = 0;
  return true;
}

void ShmConnection::take_offer() {
  OwnedDescriptor descriptor;
  if (!hear(sizeof(Offer), &descriptor)) return;
  Offer offer;
  std::memcpy(&offer, heard_.data(), sizeof offer);
  const bool sane = offer.version == kVersion && std::has_single_bit(offer.ring_bytes) &&
                    offer.ring_bytes >= kRingBytesMin && offer.ring_bytes <= kRingBytesMax && descriptor.is_open();
  if (!sane) return greeting_failed("it speaks another protocol", Errc::unsupported);
  auto memory = RingMemory::adopt(std::move(descriptor), offer.ring_bytes);
  if (!memory) return greeting_failed(memory.error().message, memory.error().code);
  memory_ = std::move(*memory);
  if (!send_message(socket_.get(), bytes_of(Word::mapped))) return greeting_failed("it has gone");
  state_ = State::awaits_go;
}

void ShmConnection::take_mapped() {
  if (!hear(sizeof(Word))) return;
  Word word{};
  std::memcpy(&word, heard_.data(), sizeof word);
  if (word != Word::mapped) return greeting_failed("it speaks another protocol");
  if (auto closed = memory_->close_to_others(); !closed) return greeting_failed(closed.error().message);
  if (!send_message(socket_.get(), bytes_of(Word::go))) return greeting_failed("it has gone");
  ShmAcceptor* acceptor = std::exchange(acceptor_, nullptr);
  TRIBUTARY_ASSERT(acceptor != nullptr, "the connection from {} was accepted twice", peer_);
  start();
  acceptor->greeted(*this);
}

void ShmConnection::take_go() {
  if (!hear(sizeof(Word))) return;
  Word word{};
  std::memcpy(&word, heard_.data(), sizeof word);
  if (word != Word::go) return greeting_failed("it speaks another protocol");
  if (auto closed = memory_->check_closed_to_others(); !closed) return greeting_failed(closed.error().message);
  otherwise_ = nullptr;
  start();
  if (state_ != State::open) return;
  core_.count_callback();
  handler_->on_open(*channel_);
}

void ShmConnection::start() {
  TRIBUTARY_ASSERT(opening() && memory_ != nullptr, "the connection to {} starts in state {}", peer_, state_);
  core_.watch_memory(*this);
  part_->open.push_back(this);
  make_due();
  if (detached_) {  // close_after_flush() was called meanwhile, and its limit holds
    core_.set_deadline(*this, deadline_ - Clock::now());
    state_ = State::flushing;
    return;
  }
  core_.clear_deadline(*this);
  state_ = State::open;
}

void ShmConnection::greeting_failed(const std::string& why, Errc code) {
  if (acceptor_ != nullptr) {
    ++part_->statistics.greetings_lost;
    return close();
  }
  if (otherwise_) {
    const auto kept = shared_from_this();
    const Otherwise otherwise = std::exchange(otherwise_, nullptr);
    return otherwise(*this);
  }
  if (detached_) return close();
  fatal_ = Error{code, "cannot connect to " + peer_text(peer_) + ": " + why + "."};
  make_due();
}

}  // namespace tributary::transport
