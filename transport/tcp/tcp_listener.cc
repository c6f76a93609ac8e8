#include "tcp/tcp_listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace tributary::transport {

using boost::system::error_code;

constexpr int kAcceptsPerTurn = 64;
constexpr auto kPause = std::chrono::milliseconds(50);

TcpAcceptor::TcpAcceptor(std::shared_ptr<TcpCore> core, int socket, Acceptor& acceptor)
    : shared_core_(core), core_(*core), descriptor_(core->io(), socket), pause_(core->io()), acceptor_(&acceptor) {
  core_.enter(*this);
}

void TcpAcceptor::start() {
  wait();
}

void TcpAcceptor::close() {
  if (acceptor_ == nullptr) return;
  acceptor_ = nullptr;
  pause_.cancel();
  error_code ignored;
  descriptor_.close(ignored);
  core_.leave(*this);
}

void TcpAcceptor::wait() {
  descriptor_.async_wait(Descriptor::wait_read, [self = shared_from_this()](const error_code& error) {
    if (!error && self->acceptor_ != nullptr) self->core_.make_due(self);
  });
}

/// The connection that could not be taken stays ready, so waiting for it would spin.
void TcpAcceptor::pause() {
  ++core_.statistics.accept_pauses;
  pause_.expires_after(kPause);
  pause_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->acceptor_ != nullptr) self->wait();
  });
}

void TcpAcceptor::turn() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (acceptor_ == nullptr) return;  // the last callback may have ended listening
    const int socket = ::accept4(descriptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      take(socket);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return wait();
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return pause();
    }  // else this one connection is broken already: the next
  }
  if (acceptor_ != nullptr) core_.make_due(shared_from_this());
}

void TcpAcceptor::take(int socket) {
  if (core_.statistics.connections >= core_.settings().connections_max) {
    ++core_.statistics.refused_full;
    ::close(socket);
    return;
  }
  ++core_.statistics.accepted;
  set_options(socket, core_.settings());
  auto connection = std::make_shared<TcpConnection>(core_, to_string(peer_of(socket)), nullptr);
  auto channel = std::make_unique<TcpChannel>(shared_core_.lock(), connection);
  connection->open(socket);
  core_.count_callback();
  ChannelHandler* handler = acceptor_->on_accept(std::move(channel));
  if (handler == nullptr) return connection->close();
  connection->set_handler(handler);
}

}  // namespace tributary::transport
