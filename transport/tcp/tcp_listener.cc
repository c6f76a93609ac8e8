#include "transport/tcp/tcp_listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "tributary/protocol/assert.h"

namespace tributary::transport {

constexpr int kAcceptsPerTurn = 64;
constexpr auto kPause = std::chrono::milliseconds(50);

TcpAcceptor::TcpAcceptor(std::shared_ptr<TcpCore> core, int socket, Acceptor& acceptor)
    : shared_core_(core), core_(*core), socket_(core->poller()), acceptor_(&acceptor) {
  socket_.own(socket);
}

int TcpAcceptor::start() {
  core_.enter(*this);
  return socket_.watch(EPOLLIN, *this);
}

void TcpAcceptor::close() {
  if (acceptor_ == nullptr) return;
  acceptor_ = nullptr;
  socket_.close();
  core_.leave(*this);
}

void TcpAcceptor::mark(std::uint32_t /*events*/) {
  if (!paused_) core_.make_due(*this);
}

/// Waits, because a new attempt now, or with the next connection, would only spin.
void TcpAcceptor::pause() {
  ++core_.statistics.accept_pauses;
  paused_ = true;
  core_.set_deadline(*this, kPause);
}

void TcpAcceptor::on_deadline() {
  paused_ = false;
  core_.make_due(*this);
}

void TcpAcceptor::turn() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (acceptor_ == nullptr) return;  // the last callback may have ended the listening
    const int socket = ::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      take(socket);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;  // the next connection makes an event
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return pause();
    }  // else this connection is broken already: the loop goes on with the next one
  }
  if (acceptor_ != nullptr) core_.make_due(*this);
}

void TcpAcceptor::take(int socket) {
  TRIBUTARY_ASSERT(acceptor_ != nullptr, "socket {} is accepted after the listener's end", socket);
  if (core_.statistics.connections >= core_.settings().connections_max) {
    ++core_.statistics.refused_full;
    ::close(socket);
    return;
  }
  ++core_.statistics.accepted;
  set_options(socket, core_.settings());
  auto connection = TcpConnection::make(core_, to_string(peer_of(socket)), nullptr);
  auto channel = std::make_unique<ConnectionChannel>(shared_core_.lock(), connection);
  const auto& keys = core_.settings().keys;
  connection->open(
      {.socket = OwnedDescriptor(socket), .staged = {}, .sealed = keys ? SealedStream::of_listener(keys) : nullptr});
  core_.count_callback();
  ChannelHandler* handler = acceptor_->on_accept(std::move(channel));
  if (handler == nullptr) return connection->close();
  connection->set_handler(handler);
}

}  // namespace tributary::transport
