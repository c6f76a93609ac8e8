#include "client/plugins/nccl/p2p/sockets/connecting_sockets.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::nccl {

ConnectingSocket::ConnectingSocket(Engine& engine, const NetHandle& to, const ConnectionPart& part,
                                   transport::Duration limit)
    : engine_(engine), secret_(to.secret), listening_at_(to_string(to.endpoint())), greeting_(to.secret, part) {
  channel_ = engine_.transport().connect(to.endpoint(), *this, limit);
  greeting_.begin(*channel_, engine_.keys().connect(secret_));
}

ConnectingSocket::~ConnectingSocket() {
  engine_.keys().connected(secret_);
}

bool ConnectingSocket::ready() {
  if (socket_) return true;
  if (!failure_.empty() || !greeting_.proved()) return false;
  const std::string peer = channel_->peer();
  auto socket = engine_.release(*channel_);
  if (socket) {
    socket_.emplace(std::move(*socket), peer);
  } else if (socket.error().code != Errc::retry) {
    failure_ = socket.error().message;
  }
  return socket_.has_value();
}

transport::Placement ConnectingSocket::on_header(transport::Channel&, const FrameHeader& header) {
  if (!greeting_.proved()) return greeting_.place(header);
  return transport::Reject{{Errc::corrupt, listening_at_ + " sends on a connection that only receives."}};
}

void ConnectingSocket::on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte>) {
  const auto taken = greeting_.take(channel, {listening_at_, engine_.connecting_end(channel)});
  if (taken) {
    (void)ready();  // release now, before the other end can close the proved connection
    return;
  }
  failure_ = taken.error().message + ".";
  channel.close();
}

void ConnectingSocket::on_closed(transport::Channel&, const Error& error) {
  failure_ = error.message;
  if (error.code == Errc::peer_gone) failure_ += " It has not proved that it is the listening process.";
}

ConnectingSockets::ConnectingSockets(Engine& engine, const NetHandle& to, transport::Duration limit)
    : listening_at_(to_string(to.endpoint())), until_(transport::Clock::now() + limit) {
  auto connection = client::make_nonce();
  if (!connection) {
    failure_ = connection.error().message + ".";
    return;
  }
  const std::uint32_t parts = 1U + to.counts.sockets;
  for (std::uint32_t number = 0; number < parts; ++number) {
    const ConnectionPart part{.connection = *connection, .number = number, .parts = parts};
    sockets_.push_back(std::make_unique<ConnectingSocket>(engine, to, part, limit));
  }
}

ConnectingSockets::Stage ConnectingSockets::stage() {
  bool all_ready = true;
  for (const auto& socket : sockets_) {
    all_ready &= socket->ready();
    if (failure_.empty()) failure_ = socket->failure();
  }
  if (failure_.empty() && all_ready) return Stage::ready;
  if (failure_.empty() && transport::Clock::now() > until_)
    failure_ =
        listening_at_ + " has not proved that it is the listening process within TRIBUTARY_NCCL_CONNECT_TIMEOUT.";
  return failure_.empty() ? Stage::under_way : Stage::failed;
}

std::vector<StreamSocket> ConnectingSockets::take() {
  TRIBUTARY_ASSERT(!sockets_.empty() && failure_.empty(), "{} sockets to {} are taken", sockets_.size(), listening_at_);
  std::vector<StreamSocket> sockets;
  for (const auto& socket : sockets_) sockets.push_back(socket->take());
  sockets_.clear();
  return sockets;
}

}  // namespace tributary::nccl
