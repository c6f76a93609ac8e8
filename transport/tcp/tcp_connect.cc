// How a connection opens: name, addresses in turn, socket.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "tcp/tcp_connection.h"

namespace tributary::transport {

using boost::system::error_code;

void TcpConnection::connect(const Endpoint& to, Duration limit) {
  to_ = to;
  limit_ = limit;
  start_timer(limit);
  if (const auto numeric = numeric_address(to)) {
    addresses_.push_back(*numeric);
    try_next_address();
  } else {
    look_up_name(to);
  }
}

void TcpConnection::look_up_name(const Endpoint& to) {
  using asio::ip::tcp;
  auto resolver = std::make_shared<tcp::resolver>(core_.io());
  const auto resolved = [connection = shared_from_this(), resolver](const error_code& error,
                                                                    const tcp::resolver::results_type& results) {
    if (connection->state_ != State::connecting) return;
    for (const auto& entry : results) {
      SocketAddress address;
      std::copy_n(reinterpret_cast<const std::byte*>(entry.endpoint().data()), entry.endpoint().size(),
                  reinterpret_cast<std::byte*>(&address.storage));
      address.bytes = static_cast<socklen_t>(entry.endpoint().size());
      connection->addresses_.push_back(address);
    }
    if (error || connection->addresses_.empty()) {
      connection->fatal_ =
          Error{Errc::unreachable, "cannot connect to " + connection->peer_ +
                                       ": cannot find an address for its name: " + error.message() + "."};
      return connection->core_.make_due(connection);
    }
    connection->try_next_address();
  };
  resolver->async_resolve(to.host, std::to_string(to.port), tcp::resolver::numeric_service, resolved);
}

void TcpConnection::try_next_address() {
  while (!addresses_.empty()) {
    const SocketAddress address = addresses_.front();
    addresses_.pop_front();
    if (start_connecting(address)) return;
  }
  const bool ours = connect_error_ == EMFILE || connect_error_ == ENFILE || connect_error_ == ENOBUFS;
  fatal_ = Error{ours ? Errc::exhausted : Errc::unreachable,
                 "cannot connect to " + peer_ + ": " + error_text(connect_error_) + "."};
  core_.make_due(self());
}

/// True: under way.
bool TcpConnection::start_connecting(const SocketAddress& address) {
  error_code ignored;
  if (descriptor_.is_open()) descriptor_.close(ignored);
  write_armed_ = false;  // the wait on the old socket was cancelled
  const int socket = open_socket(address.family(), core_.settings());
  if (socket < 0) {
    connect_error_ = errno;
    return false;
  }
  descriptor_.assign(socket, ignored);
  if (!descriptor_.is_open()) {
    ::close(socket);
    connect_error_ = ENOBUFS;
    return false;
  }
  if (const int error = bind_source(socket, address.family(), core_.settings()); error != 0) {
    connect_error_ = error;
    return false;
  }
  if (::connect(socket, address.get(), address.bytes) == 0) {
    writable_ = true;
    core_.make_due(self());
    return true;
  }
  if (errno != EINPROGRESS) {
    connect_error_ = errno;
    return false;
  }
  arm_write();
  return true;
}

/// The socket has become writable, or the time is up.
void TcpConnection::finish_connecting() {
  if (fatal_) return tell_closed(std::move(*fatal_));
  if (!writable_) return;
  writable_ = false;
  connect_error_ = pending_error(descriptor_.native_handle());
  if (connect_error_ == 0 && connected_to_itself()) connect_error_ = ECONNREFUSED;
  if (connect_error_ != 0) return try_next_address();
  connected();
}

/// Where nobody listens at a port that the system hands out to connecting sockets, it may hand out that very port, and
/// TCP then opens a connection of the socket with itself.
bool TcpConnection::connected_to_itself() const {
  const int socket = const_cast<Descriptor&>(descriptor_).native_handle();  // Asio's is not const, but changes nothing
  return local_of(socket) == peer_of(socket);
}

void TcpConnection::connected() {
  readable_ = writable_ = true;
  addresses_.clear();
  // Registered anew: Asio goes on to be woken for writability once it was waited for, even if nobody waits any more.
  const int socket = descriptor_.release();
  error_code error;
  descriptor_.assign(socket, error);
  if (error) {
    ::close(socket);
    return tell_closed({Errc::exhausted, "cannot watch the connection to " + peer_ + ": " + error.message() + "."});
  }
  arm_hang_up();
  if (detached_) {  // close_after_flush() was called meanwhile, and its timer runs
    state_ = State::flushing;
    return core_.make_due(self());
  }
  timer_.reset();
  state_ = State::open;
  core_.make_due(self());
  core_.count_callback();
  handler_->on_open(*channel_);
}

}  // namespace tributary::transport
