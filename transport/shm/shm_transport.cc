#include <cerrno>
#include <cstring>
#include <random>

#include "transport/shm/shm_listener.h"
#include "transport/shm/unix_socket.h"

namespace tributary::transport {
namespace {

constexpr std::uint16_t kFirstChosenPort = 49152;
constexpr int kChoicesMax = 64;

}  // namespace

ShmTransport::ShmTransport(const ShmSettings& settings)
    : core_(std::make_shared<SocketCore>(settings.busy_poll, settings.spin_max)),
      part_(std::make_shared<ShmPart>(settings)) {}

ShmTransport::~ShmTransport() {
  core_->shut_down();
}

Result<std::unique_ptr<Listener>> ShmTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  Endpoint local = at;
  std::shared_ptr<ShmAcceptor> accepting;
  for (int choice = 0; accepting == nullptr && choice < kChoicesMax; ++choice) {
    if (at.port == 0) {
      local.port = std::uniform_int_distribution<std::uint16_t>(kFirstChosenPort, 65535)(random);
    } else if (choice > 0) {
      break;
    }
    accepting = listen_at(shared_name(to_string(local)), core_, part_, local.host, acceptor);
    if (accepting == nullptr && errno != EADDRINUSE) break;
  }
  if (accepting == nullptr) {
    const std::string why = errno == EADDRINUSE ? "the name is in use" : std::strerror(errno);
    return fail(Errc::io, "cannot listen on " + to_string(at) + ": " + why + ".");
  }
  return std::make_unique<ShmListener>(core_, std::move(accepting), local);
}

std::unique_ptr<Channel> ShmTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  auto connection = ShmConnection::make(*core_, part_, to_string(to), &handler);
  auto channel = std::make_unique<ConnectionChannel>(core_, connection);
  connection->connect(shared_name(to_string(to)), limit);
  return channel;
}

std::size_t ShmTransport::poll(Duration wait) {
  return core_->poll(wait);
}
void ShmTransport::post(std::function<void()> call) {
  core_->post(std::move(call));
}

std::unique_ptr<KeptMemory> ShmTransport::lend(const std::byte* address, SharedRange range) {
  return lend_memory(core_, part_, address, std::move(range));
}

ShmStatistics ShmTransport::statistics() const {
  return part_->statistics;
}

}  // namespace tributary::transport
