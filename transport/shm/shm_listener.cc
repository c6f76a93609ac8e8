#include "transport/shm/shm_listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "transport/shm/unix_socket.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport {

constexpr int kAcceptsPerTurn = 64;
constexpr std::size_t kGreetingMax = 256;
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kGreetingLimit = std::chrono::seconds(5);

ShmAcceptor::ShmAcceptor(const std::shared_ptr<SocketCore>& core, std::shared_ptr<ShmPart> part, OwnedDescriptor socket,
                         std::string host, Acceptor& acceptor)
    : shared_core_(core),
      core_(*core),
      part_(std::move(part)),
      socket_(core->poller()),
      host_(std::move(host)),
      acceptor_(&acceptor) {
  socket_.own(socket.release());
}

int ShmAcceptor::start() {
  core_.enter(*this);
  return socket_.watch(EPOLLIN, *this);
}

void ShmAcceptor::close() {
  if (acceptor_ == nullptr) return;
  acceptor_ = nullptr;
  while (!greeting_.empty()) {
    const auto first = greeting_.front();
    first->close();  // this calls forget()
    TRIBUTARY_ASSERT(greeting_.empty() || greeting_.front() != first, "a greeting was closed and is still known");
  }
  socket_.close();
  core_.leave(*this);
}

void ShmAcceptor::mark(std::uint32_t /*events*/) {
  if (!paused_) core_.make_due(*this);
}

void ShmAcceptor::on_deadline() {
  paused_ = false;
  core_.make_due(*this);
}

void ShmAcceptor::turn() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (acceptor_ == nullptr) return;
    OwnedDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      take(std::move(socket));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;  // the next connection makes an event
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      paused_ = true;  // a new attempt now would only spin
      return core_.set_deadline(*this, kPause);
    }  // else this connection is broken already: the loop goes on with the next one
  }
  core_.make_due(*this);
}

/// Takes a new connection. A process that this listener refuses finds the connection closed, and goes over TCP.
void ShmAcceptor::take(OwnedDescriptor socket) {
  if (!trusted_user(socket.get())) {
    ++part_->statistics.refused_user;
    return;
  }
  if (part_->statistics.connections >= part_->settings.connections_max) {
    ++part_->statistics.refused_full;
    return;
  }
  if (greeting_.size() >= kGreetingMax) {
    ++part_->statistics.greetings_lost;
    const auto oldest = greeting_.front();
    oldest->close();
  }
  TRIBUTARY_ASSERT(greeting_.size() < kGreetingMax, "{} connections greet at once, of at most {}", greeting_.size(),
                   kGreetingMax);
  auto connection = ShmConnection::make(core_, part_, to_string(Endpoint{host_, 0}), nullptr);
  greeting_.push_back(connection);
  if (connection->greet(std::move(socket), *this, kGreetingLimit)) return;
  ++part_->statistics.refused_full;
  forget(*connection);
  connection->close();
}

void ShmAcceptor::forget(const ShmConnection& connection) {
  std::erase_if(greeting_, [&](const auto& one) { return one.get() == &connection; });
}

void ShmAcceptor::greeted(ShmConnection& connection) {
  const auto kept = std::static_pointer_cast<ShmConnection>(connection.shared_from_this());
  forget(connection);
  if (acceptor_ == nullptr) return connection.close();
  ++part_->statistics.accepted;
  auto channel = std::make_unique<ConnectionChannel>(shared_core_.lock(), kept);
  core_.count_callback();
  ChannelHandler* handler = acceptor_->on_accept(std::move(channel));
  if (handler == nullptr) return connection.close();
  connection.set_handler(handler);
}

std::shared_ptr<ShmAcceptor> listen_at(const std::string& name, const std::shared_ptr<SocketCore>& core,
                                       const std::shared_ptr<ShmPart>& part, const std::string& host,
                                       Acceptor& acceptor) {
  auto socket = listen_at_name(name);
  if (!socket) {
    errno = socket.error();
    return nullptr;
  }
  auto accepting = std::make_shared<ShmAcceptor>(core, part, std::move(*socket), host, acceptor);
  if (const int error = accepting->start(); error != 0) {
    accepting->close();
    errno = error;
    return nullptr;
  }
  return accepting;
}

}  // namespace tributary::transport
