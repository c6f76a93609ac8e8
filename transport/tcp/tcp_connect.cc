// Class TcpConnection: opens. It looks the name up, and tries a socket for each address in turn.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "transport/channel/deadline.h"
#include "transport/tcp/tcp_connection.h"
#include "transport/tcp/tcp_sealing.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/descriptors.h"

namespace tributary::transport {
namespace {

/// The system also hands out ports to connecting sockets. If no process listens at the wanted port, the system may hand
/// out that very port, and TCP then connects the socket with itself.
bool connected_to_itself(int socket) {
  return local_of(socket) == peer_of(socket);
}

}  // namespace

void TcpConnection::connect(const Endpoint& to, Duration limit) {
  TRIBUTARY_ASSERT(state_ == State::connecting && !socket_.is_open(), "the connection to {} begins in state {}", peer_,
                   state_);
  limit_ = limit;
  deadline_ = deadline_of(Clock::now(), limit);
  core_.set_deadline(*this, limit);
  if (const auto numeric = numeric_address(to)) {
    addresses_.push_back(*numeric);
    try_next_address();
  } else {
    look_up_name(to);
  }
}

void TcpConnection::go_on(std::deque<SocketAddress> addresses, Beginning&& beginning) {
  TRIBUTARY_ASSERT(state_ == State::connecting && addresses_.empty(), "the connection to {} goes on in state {}", peer_,
                   state_);
  handler_ = beginning.handler;
  queue_ = std::move(beginning.queue);
  detached_ = beginning.detached;
  deadline_ = beginning.deadline;
  limit_ = beginning.limit;
  straight_ = true;
  addresses_ = std::move(addresses);
  core_.set_deadline(*this, std::max(deadline_ - Clock::now(), Duration::zero()));
  try_next_address();
}

void TcpConnection::look_up_name(const Endpoint& to) {
  const auto self = std::static_pointer_cast<TcpConnection>(shared_from_this());
  core_.resolver().ask(to, [self](const Result<std::vector<SocketAddress>>& found) { self->looked_up(found); });
}

void TcpConnection::looked_up(const Result<std::vector<SocketAddress>>& found) {
  if (state_ != State::connecting || fatal_) return;  // the answer comes too late
  if (!found) {
    fatal_ = Error{Errc::unreachable, "cannot connect to " + peer_ + ": " + found.error().message};
    return make_due();
  }
  addresses_.assign(found->begin(), found->end());
  try_next_address();
}

void TcpConnection::try_next_address() {
  while (!addresses_.empty()) {
    const SocketAddress address = addresses_.front();
    addresses_.pop_front();
    if (start_connecting(address)) return;
  }
  const bool ours = connect_error_ == EMFILE || connect_error_ == ENFILE || connect_error_ == ENOBUFS;
  fatal_ =
      Error{ours ? Errc::exhausted : Errc::unreachable,
            "cannot connect to " + peer_ + ": " + error_text(connect_error_) + descriptor_advice(connect_error_) + "."};
  make_due();
}

/// Begins to connect to an address. Returns true if the connection is under way.
bool TcpConnection::start_connecting(const SocketAddress& address) {
  if (!straight_ && core_.detour && core_.detour(*this, address)) return true;
  readable_ = writable_ = hung_up_ = tells_no_more_ = false;  // these facts were about the earlier socket
  socket_.own(open_socket(address.family(), core_.settings()));
  if (!socket_.is_open()) {
    connect_error_ = errno;
    return false;
  }
  apply_priority();
  connect_error_ = bind_source(socket_.get(), address.family(), core_.settings());
  if (connect_error_ != 0) return false;
  if (::connect(socket_.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS) {
    connect_error_ = errno;
    return false;
  }
  connect_error_ = watch();  // only now: the system reports a socket that does not connect yet as hung
                             // up
  return connect_error_ == 0;
}

/// Goes on when the socket has become writable or broken, or the time is up.
void TcpConnection::finish_connecting() {
  if (fatal_) return tell_closed(std::move(*fatal_));
  if (!writable_) return;
  writable_ = false;
  connect_error_ = pending_error(socket_.get());
  if (connect_error_ == 0 && connected_to_itself(socket_.get())) connect_error_ = ECONNREFUSED;
  if (connect_error_ != 0) return try_next_address();
  connected();
}

void TcpConnection::connected() {
  TRIBUTARY_ASSERT(state_ == State::connecting, "the connection to {} opens in state {}", peer_, state_);
  readable_ = writable_ = true;
  addresses_.clear();
  if (core_.settings().keys == nullptr || !TcpSealing::begin(*this)) opened();
}

/// The first frames may be written now.
void TcpConnection::opened() {
  if (detached_) {  // close_after_flush() was called meanwhile, and its deadline is set
    state_ = State::flushing;
    return make_due();
  }
  core_.clear_deadline(*this);
  state_ = State::open;
  make_due();
  core_.count_callback();
  handler_->on_open(*channel_);
}

}  // namespace tributary::transport
