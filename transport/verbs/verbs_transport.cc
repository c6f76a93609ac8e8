#include "tributary/transport/verbs.h"

#include "transport/verbs/verbs_listener.h"

namespace tributary::transport {

using namespace verbs;  // NOLINT(google-build-using-namespace): one folder, two names for its layers

Result<std::unique_ptr<VerbsTransport>> VerbsTransport::create(const VerbsSettings& settings) {
  if (auto ok = verbs_available(); !ok) return std::unexpected(ok.error());
  auto core = VerbsCore::create(settings);
  if (!core) return std::unexpected(core.error());
  return std::unique_ptr<VerbsTransport>(new VerbsTransport(std::move(*core)));
}

VerbsTransport::VerbsTransport(std::shared_ptr<VerbsCore> core) : core_(std::move(core)) {}
VerbsTransport::~VerbsTransport() {
  core_->shut_down();
}

Result<std::unique_ptr<Listener>> VerbsTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  auto point = std::make_unique<VerbsListenPoint>(core_, &acceptor, nullptr);
  if (auto ok = point->open(at); !ok) return std::unexpected(ok.error());
  return std::make_unique<VerbsListener>(core_, std::move(point));
}

Result<std::unique_ptr<Listener>> VerbsTransport::listen_for(const Endpoint& at, Route route) {
  auto point = std::make_unique<VerbsListenPoint>(core_, nullptr, std::move(route));
  if (auto ok = point->open(at); !ok) return std::unexpected(ok.error());
  return std::make_unique<VerbsListener>(core_, std::move(point));
}

void VerbsTransport::accept_routed(Acceptor* acceptor) {
  core_->routed_acceptor = acceptor;
}

void VerbsTransport::take_routed(std::function<void(const std::shared_ptr<VerbsCore>&)> take) {
  core_->post([weak = std::weak_ptr(core_), take = std::move(take)] {
    if (const auto core = weak.lock()) take(core);
  });
}

std::unique_ptr<Channel> VerbsTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  auto connection = std::make_shared<VerbsConnection>(*core_, to_string(to), &handler);
  auto channel = std::make_unique<VerbsChannel>(core_, connection);
  connection->connect(to, limit);
  return channel;
}

std::size_t VerbsTransport::poll(Duration wait) {
  return core_->poll(wait);
}
void VerbsTransport::post(std::function<void()> call) {
  core_->post(std::move(call));
}

namespace {

class KeptByVerbs final : public KeptMemory {
 public:
  KeptByVerbs(std::weak_ptr<VerbsCore> core, std::uint64_t number) : core_(std::move(core)), number_(number) {}
  ~KeptByVerbs() override {
    if (const auto core = core_.lock()) core->unkeep(number_);
  }
  KeptByVerbs(const KeptByVerbs&) = delete;
  KeptByVerbs& operator=(const KeptByVerbs&) = delete;

 private:
  std::weak_ptr<VerbsCore> core_;
  std::uint64_t number_;
};

}  // namespace

std::unique_ptr<KeptMemory> VerbsTransport::keep_registered(std::span<const std::byte> memory) {
  return std::make_unique<KeptByVerbs>(core_, core_->keep(memory));
}

std::unique_ptr<KeptMemory> VerbsTransport::keep_device_memory(std::span<const std::byte> memory,
                                                               std::shared_ptr<DeviceMemory> owner) {
  return std::make_unique<KeptByVerbs>(core_, core_->keep_device_memory(memory, std::move(owner)));
}

std::uint64_t VerbsTransport::room_bytes(std::uint32_t payloads, std::uint32_t payload_bytes) const {
  const std::uint64_t bytes = room_bytes_for(payloads, payload_bytes);
  return bytes <= core_->settings().room_bytes_max ? bytes : 0;
}

void VerbsTransport::drive(std::shared_ptr<SocketCore> beside) {
  core_->drive(std::move(beside));
}

Status VerbsTransport::device_at(const std::string& own_address) const {
  return core_->device_at(own_address);
}

VerbsStatistics VerbsTransport::statistics() const {
  return core_->statistics;
}

}  // namespace tributary::transport
