#include "client/plugins/nccl/p2p/sockets/arriving_sockets.h"

#include <algorithm>

#include "client/plugins/nccl/log.h"
#include "tributary/protocol/assert.h"

namespace tributary::nccl {
namespace {

constexpr std::size_t kGatheringsMax = 64;

}  // namespace

ArrivingSocket::ArrivingSocket(Engine& engine, std::unique_ptr<transport::Channel> channel, const NetHandle& handle)
    : engine_(engine),
      greeting_(handle.secret, {to_string(handle.endpoint()), engine.accepted_end(*channel)},
                1U + handle.counts.sockets),
      channel_(std::move(channel)) {
  failed_ = !greeting_.begin(*channel_);
}

transport::Placement ArrivingSocket::on_header(transport::Channel&, const FrameHeader& header) {
  if (!greeting_.proved()) return greeting_.place(header);
  return transport::Reject{{Errc::corrupt, "a message before this end is proved"}};
}

void ArrivingSocket::on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte>) {
  const auto taken = greeting_.take(channel);
  if (taken) return;
  if (taken.error().code == Errc::denied) warn("a connection is refused: " + taken.error().message);
  failed_ = true;
  channel.close();
}

/// The transport has just handed this end's proof to the system. The other end sends no frame before it has read this
/// proof. So the socket stands between two frames, and this end can release it.
void ArrivingSocket::on_sent(transport::Channel& channel, std::uint64_t) {
  TRIBUTARY_ASSERT(!socket_, "the socket of {} has left the transport already", socket_->peer());
  const std::string peer = channel.peer();
  auto socket = engine_.release(channel);
  if (socket) {
    socket_.emplace(std::move(*socket), peer);
  } else {
    failed_ = true;  // the other end has sent a frame too early
    channel.close();
  }
}

std::deque<GatheringSockets::Gathering>::iterator GatheringSockets::of(const std::string& connection) {
  const auto known = std::ranges::find(gatherings_, connection, &Gathering::connection);
  if (known != gatherings_.end()) return known;
  if (gatherings_.size() >= kGatheringsMax) gatherings_.pop_front();
  Gathering gathering;
  gathering.connection = connection;
  gathering.sockets.resize(parts_);
  gatherings_.push_back(std::move(gathering));
  return std::prev(gatherings_.end());
}

std::vector<StreamSocket> GatheringSockets::add(const ConnectionPart& part, StreamSocket socket) {
  TRIBUTARY_ASSERT(part.parts == parts_ && part.number < parts_,
                   "the greeting let part {} of {} through, where there are {}", part.number, part.parts, parts_);
  const auto gathering = of(part.connection);
  auto& place = gathering->sockets[part.number];
  if (place) {
    warn(socket.peer() + " opens socket " + std::to_string(part.number) + " of one connection twice");
    gatherings_.erase(gathering);
    return {};
  }
  place.emplace(std::move(socket));
  ++gathering->here;
  TRIBUTARY_ASSERT(gathering->here <= parts_, "{} of a connection's {} sockets are here", gathering->here, parts_);
  if (gathering->here < parts_) return {};
  std::vector<StreamSocket> sockets;
  for (auto& one : gathering->sockets) sockets.push_back(std::move(*one));
  gatherings_.erase(gathering);
  return sockets;
}

}  // namespace tributary::nccl
