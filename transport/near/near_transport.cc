#include "tributary/protocol/assert.h"
#include "tributary/transport/near.h"

#include <utility>
#include <variant>

#include "transport/near/detour.h"
#include "transport/shm/shm_listener.h"
#include "transport/tcp/tcp_connection.h"

namespace tributary::transport {
namespace {

class Taken final : public HandedOver {
 public:
  explicit Taken(TcpHandOver&& tcp) : what(std::move(tcp)) {}
  explicit Taken(ShmHandOver&& shared) : what(std::move(shared)) {}
  std::variant<TcpHandOver, ShmHandOver> what;
};

/// Listens over TCP and over shared memory until it is destroyed.
class NearListener final : public Listener {
 public:
  NearListener(std::unique_ptr<Listener> tcp, std::unique_ptr<Listener> shared)
      : tcp_(std::move(tcp)), shared_(std::move(shared)) {}
  Endpoint local() const override { return tcp_->local(); }

 private:
  std::unique_ptr<Listener> tcp_;
  std::unique_ptr<Listener> shared_;  // nullptr: another process has the name
};

}  // namespace

NearTransport::NearTransport(const NearSettings& settings)
    : core_(std::make_shared<TcpCore>(settings.tcp)),
      tcp_(core_),
      shm_(settings.shared_memory ? std::make_shared<ShmPart>(settings.shm) : nullptr) {
  if (shm_ != nullptr) core_->detour = detour_by(*core_, shm_);
}
NearTransport::~NearTransport() = default;  // tcp_ shuts the core down, and with it the connections of both kinds

Result<std::unique_ptr<Listener>> NearTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  auto tcp = tcp_.listen(at, acceptor);
  if (!tcp || shm_ == nullptr) return tcp;
  const Endpoint local = (*tcp)->local();
  std::unique_ptr<Listener> shared;
  if (auto accepting = listen_at(name_of_listener(local), core_, shm_, local.host, acceptor)) {
    shared = std::make_unique<ShmListener>(core_, std::move(accepting), local);
  }
  return std::make_unique<NearListener>(std::move(*tcp), std::move(shared));
}

std::unique_ptr<Channel> NearTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  return tcp_.connect(to, handler, limit);
}
std::size_t NearTransport::poll(Duration wait) {
  return core_->poll(wait);
}
void NearTransport::post(std::function<void()> call) {
  core_->post(std::move(call));
}

std::unique_ptr<KeptMemory> NearTransport::lend(const std::byte* address, SharedRange range) {
  return shm_ != nullptr ? lend_memory(core_, shm_, address, std::move(range)) : nullptr;
}

namespace {
template <class HandOver>
Result<std::unique_ptr<HandedOver>> taken(Result<HandOver> out) {
  if (!out) return std::unexpected(out.error());
  return std::make_unique<Taken>(std::move(*out));
}
}  // namespace

Result<std::unique_ptr<HandedOver>> NearTransport::release(Channel& channel, bool with_frames) {
  auto* const ours = dynamic_cast<ConnectionChannel*>(&channel);
  Connection* const connection = ours == nullptr ? nullptr : &ours->connection();
  auto* const shared = dynamic_cast<ShmConnection*>(connection);
  if (shared != nullptr && &shared->core() == core_.get()) return taken(shared->release());
  auto* const tcp = dynamic_cast<TcpConnection*>(connection);
  if (tcp != nullptr && &tcp->core() == core_.get()) return taken(tcp->release(!with_frames));
  return fail(Errc::bad_argument, "the channel to " + channel.peer() + " does not belong to this transport.");
}

std::unique_ptr<Channel> NearTransport::adopt(std::unique_ptr<HandedOver> channel, ChannelHandler& handler) {
  TRIBUTARY_ASSERT(dynamic_cast<Taken*>(channel.get()) != nullptr, "a channel is adopted that was not released");
  auto& what = static_cast<Taken&>(*channel).what;
  if (auto* const tcp = std::get_if<TcpHandOver>(&what)) {
    auto connection = TcpConnection::make(*core_, to_string(peer_of(tcp->socket.get())), &handler);
    auto adopted = std::make_unique<ConnectionChannel>(core_, connection);
    connection->open(std::move(*tcp));
    return adopted;
  }
  auto& shared = std::get<ShmHandOver>(what);
  auto part = shm_ != nullptr ? shm_ : std::make_shared<ShmPart>(ShmSettings{});
  auto connection = ShmConnection::make(*core_, std::move(part), shared.peer, &handler);
  auto adopted = std::make_unique<ConnectionChannel>(core_, connection);
  connection->open(std::move(shared));
  return adopted;
}

TcpStatistics NearTransport::tcp_statistics() const {
  return tcp_.statistics();
}
ShmStatistics NearTransport::shm_statistics() const {
  return shm_ != nullptr ? shm_->statistics : ShmStatistics{};
}

}  // namespace tributary::transport
