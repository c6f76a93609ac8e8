#include "tcp/tcp_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/bind_allocator.hpp>
#include <cerrno>

namespace tributary::transport {

using boost::system::error_code;
using WaitType = asio::posix::descriptor_base;

TcpConnection::TcpConnection(TcpCore& core, std::string peer, ChannelHandler* handler)
    : core_(core), peer_(std::move(peer)), handler_(handler), descriptor_(core.io()) {
  core_.enter(*this);
  ++core_.statistics.connections;
}

void TcpConnection::open(int socket) {
  state_ = State::open;
  error_code error;
  descriptor_.assign(socket, error);
  if (error) {
    ::close(socket);
    fatal_ = Error{Errc::exhausted, "cannot watch the connection to " + peer_ + ": " + error.message() + "."};
    return core_.make_due(self());
  }
  readable_ = writable_ = true;  // tried before waited for: what is there already costs no wait
  arm_hang_up();
  core_.make_due(self());
}

// ---- readiness: handlers only mark; work and callbacks are in turn()

void TcpConnection::arm_read() {
  if (read_armed_ || !descriptor_.is_open()) return;
  read_armed_ = true;
  descriptor_.async_wait(WaitType::wait_read,
                         asio::bind_allocator(SlotAllocator<std::byte>(read_slot_),
                                              [connection = shared_from_this()](const error_code& error) {
                                                if (error || connection->closed()) return;
                                                connection->read_armed_ = false;
                                                connection->readable_ = true;
                                                connection->core_.make_due(connection);
                                              }));
}

void TcpConnection::arm_write() {
  if (write_armed_ || !descriptor_.is_open()) return;
  write_armed_ = true;
  descriptor_.async_wait(WaitType::wait_write,
                         asio::bind_allocator(SlotAllocator<std::byte>(write_slot_),
                                              [connection = shared_from_this()](const error_code& error) {
                                                if (error || connection->closed()) return;
                                                connection->write_armed_ = false;
                                                connection->writable_ = true;
                                                connection->core_.make_due(connection);
                                              }));
}

/// Stays armed: a channel that does not read must still see a reset.
void TcpConnection::arm_hang_up() {
  descriptor_.async_wait(WaitType::wait_error,
                         asio::bind_allocator(SlotAllocator<std::byte>(hang_up_slot_),
                                              [connection = shared_from_this()](const error_code& error) {
                                                if (error || connection->closed()) return;
                                                connection->hang_up_seen_ = true;
                                                connection->core_.make_due(connection);
                                              }));
}

/// Urgent data, which anybody may send, also ends the wait.
void TcpConnection::check_hang_up() {
  hang_up_seen_ = false;
  pollfd asked{descriptor_.native_handle(), 0, 0};
  if (::poll(&asked, 1, 0) != 1 || (asked.revents & (POLLERR | POLLHUP)) == 0) return arm_hang_up();
  hung_up_ = true;
  readable_ = true;  // what has arrived before is still served
}

void TcpConnection::turn() {
  if (state_ == State::connecting) return finish_connecting();
  if (state_ == State::closed) return;
  if (fatal_) return tell_closed(std::move(*fatal_));
  if (hang_up_seen_) check_hang_up();
  if (state_ == State::open) read_turn();
  if (state_ == State::open && hung_up_ && stalled_) {
    return tell_closed(lost(pending_error(descriptor_.native_handle())));
  }
  if (state_ == State::flushing || state_ == State::lingering) discard_turn();
  if (state_ == State::open || state_ == State::flushing) write_turn();
  if (state_ == State::open && !readable_ && !stalled_) arm_read();
}

// ---- ending

Error TcpConnection::lost(int error) const {
  if (error == 0) return {Errc::peer_gone, peer_ + " closed the connection."};
  if (error == ETIMEDOUT) return {Errc::peer_gone, peer_ + " does not answer any more: the connection timed out."};
  return {Errc::peer_gone, "the connection to " + peer_ + " broke: " + error_text(error) + "."};
}

void TcpConnection::tell_closed(Error error) {
  ChannelHandler* handler = handler_;
  close();
  if (handler == nullptr) return;
  core_.count_callback();
  handler->on_closed(*channel_, error);
}

void TcpConnection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  handler_ = nullptr;
  queue_.clear();
  timer_.reset();
  error_code ignored;
  if (descriptor_.is_open()) descriptor_.close(ignored);
  --core_.statistics.connections;
  core_.leave(*this);
}

/// Also ends a flush: the channel's owner takes the borrowed payloads with it. Last words that are out already may
/// still arrive.
void TcpConnection::channel_destroyed() {
  channel_ = nullptr;
  if (state_ != State::lingering) close();
}

void TcpConnection::close_after_flush(Duration limit) {
  if (!taking_frames()) return;
  detached_ = true;
  handler_ = nullptr;
  stalled_ = in_frame_ = false;
  staged_begin_ = staged_end_ = 0;
  if (fatal_) return close();
  start_timer(limit);
  if (state_ == State::connecting) {
    queue_.empty() ? close() : void();
    return;  // connected() goes on
  }
  state_ = State::flushing;
  core_.make_due(self());
}

/// All is written. A socket that is closed while bytes come in resets the connection, and the reset may overtake our
/// last words; so the other side's close is awaited, and what it sends until then is thrown away.
void TcpConnection::linger() {
  state_ = State::lingering;
  queue_.clear();
  ::shutdown(descriptor_.native_handle(), SHUT_WR);
  if (peer_finished_) return close();
  core_.make_due(self());
}

void TcpConnection::start_timer(Duration limit) {
  timer_.emplace(core_.io(), limit);
  timer_->async_wait([connection = shared_from_this()](const error_code& error) {
    if (!error) connection->on_timer();
  });
}

void TcpConnection::on_timer() {
  if (state_ == State::flushing || state_ == State::lingering) return close();
  if (state_ != State::connecting) return;
  if (detached_) return close();  // a flush that never came to write
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit_).count();
  fatal_ = Error{Errc::unreachable,
                 "cannot connect to " + peer_ + ": no answer within " + std::to_string(milliseconds) + " ms."};
  core_.make_due(self());
}

// ---- handing over

Result<int> TcpConnection::release() {
  if (state_ != State::open || fatal_) {
    return fail(Errc::bad_argument, "the channel to " + peer_ + " is not open and cannot be handed over.");
  }
  if (in_frame_ || stalled_ || staged() != 0) {
    return fail(Errc::retry, "the channel to " + peer_ + " is in the middle of a frame and cannot be handed over now.");
  }
  if (!queue_.empty() || !queue_.all_told()) {
    return fail(Errc::retry, "the channel to " + peer_ + " has frames to write and cannot be handed over now.");
  }
  const int socket = descriptor_.release();
  close();
  return socket;
}

}  // namespace tributary::transport
