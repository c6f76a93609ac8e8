#include <unistd.h>

#include "transport/tcp/tcp_listener.h"

namespace tributary::transport {

TcpTransport::TcpTransport(const TcpSettings& settings) : core_(std::make_shared<TcpCore>(settings)) {}
TcpTransport::TcpTransport(std::shared_ptr<TcpCore> core) : core_(std::move(core)) {}
TcpTransport::~TcpTransport() {
  core_->shut_down();
}

Result<std::unique_ptr<Listener>> TcpTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  const auto socket = open_listener(at, core_->settings());
  if (!socket) return std::unexpected(socket.error());
  auto accepting = std::make_shared<TcpAcceptor>(core_, *socket, acceptor);
  if (const int error = accepting->start(); error != 0) {
    accepting->close();
    return fail(Errc::io, "cannot listen on " + to_string(at) + ": " + error_text(error) + ".");
  }
  return std::make_unique<TcpListener>(core_, std::move(accepting), local_of(*socket));
}

std::unique_ptr<Channel> TcpTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  auto connection = TcpConnection::make(*core_, to_string(to), &handler);
  auto channel = std::make_unique<ConnectionChannel>(core_, connection);
  connection->connect(to, limit);
  return channel;
}

std::size_t TcpTransport::poll(Duration wait) {
  return core_->poll(wait);
}
void TcpTransport::post(std::function<void()> call) {
  core_->post(std::move(call));
}

/// Returns nullptr if the channel belongs to another transport.
TcpConnection* TcpTransport::own(Channel& channel) const {
  auto* ours = dynamic_cast<ConnectionChannel*>(&channel);
  auto* connection = ours == nullptr ? nullptr : dynamic_cast<TcpConnection*>(&ours->connection());
  return connection != nullptr && &connection->core() == core_.get() ? connection : nullptr;
}

Endpoint TcpTransport::local(Channel& channel) const {
  const auto* connection = own(channel);
  return connection == nullptr || connection->socket() < 0 ? Endpoint{} : local_of(connection->socket());
}

Result<int> TcpTransport::release(Channel& channel) {
  auto* connection = own(channel);
  if (connection == nullptr) {
    return fail(Errc::bad_argument, "the channel to " + channel.peer() + " does not belong to this transport.");
  }
  if (connection->sealed()) {
    return fail(Errc::bad_argument, "the channel to " + channel.peer() + " is sealed, and its socket alone is no use.");
  }
  auto taken = connection->release(true);
  if (!taken) return std::unexpected(taken.error());
  return taken->socket.release();
}

Result<ReleasedSocket> TcpTransport::release_with_seal(Channel& channel) {
  auto* connection = own(channel);
  if (connection == nullptr) {
    return fail(Errc::bad_argument, "the channel to " + channel.peer() + " does not belong to this transport.");
  }
  auto taken = connection->release(true);
  if (!taken) return std::unexpected(taken.error());
  ReleasedSocket released{.socket = taken->socket.release()};
  if (taken->sealed && taken->sealed->ready()) {
    released.seal = std::make_unique<SealedSocket>(std::move(taken->sealed));
  }
  return released;
}

std::unique_ptr<Channel> TcpTransport::adopt(int socket, ChannelHandler& handler) {
  auto connection = TcpConnection::make(*core_, to_string(peer_of(socket)), &handler);
  auto channel = std::make_unique<ConnectionChannel>(core_, connection);
  connection->open({.socket = OwnedDescriptor(socket), .staged = {}});
  return channel;
}

TcpStatistics TcpTransport::statistics() const {
  return core_->statistics;
}

}  // namespace tributary::transport
