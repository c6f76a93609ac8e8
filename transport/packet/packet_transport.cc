#include "transport/packet/packet_transport.h"

#include "transport/packet/address.h"
#include "transport/packet/connection.h"
#include "transport/packet/core.h"

namespace tributary::transport::packet {
namespace {

class PacketListener final : public Listener {
 public:
  PacketListener(std::shared_ptr<PacketCore> core, Endpoint local) : core_(std::move(core)), local_(std::move(local)) {}
  ~PacketListener() override { core_->stop_listening(); }
  PacketListener(const PacketListener&) = delete;
  PacketListener& operator=(const PacketListener&) = delete;
  Endpoint local() const override { return local_; }

 private:
  std::shared_ptr<PacketCore> core_;
  Endpoint local_;
};

}  // namespace

PacketTransport::PacketTransport(OpenPort open, const PacketSettings& settings, Time time)
    : make_core_([open = std::move(open), settings, time = std::move(time)] {
        return std::make_shared<PacketCore>(open, settings, time);
      }),
      core_(make_core_()) {}
PacketTransport::~PacketTransport() {
  core_->shut_down();
}

Result<std::unique_ptr<Listener>> PacketTransport::start_listening(const Endpoint& at, Acceptor* acceptor,
                                                                   Route route) {
  if (core_->listens_at(at.port))
    return fail(Errc::io, "cannot listen on " + to_string(at) + ": the address is in use.");
  auto core = core_->that_can_listen(at);
  const bool further = core == nullptr;
  if (further) core = make_core_();
  auto local = core->listen(at, acceptor, std::move(route));
  if (!local) return std::unexpected(local.error());
  if (further) core_->drive(core);
  return std::make_unique<PacketListener>(std::move(core), std::move(*local));
}

Result<std::unique_ptr<Listener>> PacketTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  return start_listening(at, &acceptor, nullptr);
}
Result<std::unique_ptr<Listener>> PacketTransport::listen_for(const Endpoint& at, Route route) {
  return start_listening(at, nullptr, std::move(route));
}

std::unique_ptr<Channel> PacketTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  auto connection = std::make_shared<PacketConnection>(*core_, to_string(to), &handler);
  auto channel = std::make_unique<PacketChannel>(core_, connection);
  connection->enter();
  connection->connect(to, limit);
  return channel;
}

std::size_t PacketTransport::poll(Duration wait) {
  return core_->poll(wait);
}
TimePoint PacketTransport::now() const {
  return core_->clock();
}
void PacketTransport::post(std::function<void()> call) {
  core_->post(std::move(call));
}
PacketStatistics PacketTransport::statistics() const {
  PacketStatistics statistics = core_->statistics;
  statistics.port = core_->port_counts();
  return statistics;
}
TimePoint PacketTransport::next_deadline() const {
  return core_->next_deadline();
}

}  // namespace tributary::transport::packet
