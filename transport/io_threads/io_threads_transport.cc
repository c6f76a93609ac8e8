#include "tributary/transport/io_threads.h"

#include <utility>
#include <vector>

#include "transport/io_threads/core.h"

namespace tributary::transport {

class IoThreadsTransport::IoWay final : public Transport {
 public:
  explicit IoWay(IoThreadsTransport& whole) : whole_(whole) {}
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override {
    return whole_.listen(at, acceptor);
  }
  std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override {
    return whole_.core_->connect(to, handler, limit);
  }
  std::size_t poll(Duration wait) override { return whole_.poll(wait); }
  TimePoint now() const override { return whole_.now(); }
  void post(std::function<void()> call) override { whole_.post(std::move(call)); }

 private:
  IoThreadsTransport& whole_;
};

IoThreadsTransport::IoThreadsTransport(const NearSettings& settings, std::uint32_t threads)
    : own_(settings),
      core_(std::make_shared<io_threads::Core>(settings, threads, [this] { own_.post([] {}); })),
      io_way_(std::make_unique<IoWay>(*this)) {}

IoThreadsTransport::~IoThreadsTransport() {
  core_->shut_down();
}

Result<std::unique_ptr<Listener>> IoThreadsTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  return own_.listen(at, acceptor);
}

std::unique_ptr<Channel> IoThreadsTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  return own_.connect(to, handler, limit);
}

std::size_t IoThreadsTransport::poll(Duration wait) {
  moved_.clear();
  std::size_t callbacks = core_->turn();
  const bool sleeps = callbacks == 0 && wait > Duration::zero() && core_->fall_asleep();
  callbacks += own_.poll(sleeps ? wait : Duration::zero());
  core_->wake_up();
  return callbacks + core_->turn();
}

void IoThreadsTransport::post(std::function<void()> call) {
  own_.post(std::move(call));
}

std::unique_ptr<KeptMemory> IoThreadsTransport::lend(const std::byte* address, SharedRange range) {
  return core_->lend(own_, address, std::move(range));
}

Transport& IoThreadsTransport::io_way() noexcept {
  return *io_way_;
}

std::unique_ptr<Channel> IoThreadsTransport::to_io_thread(std::unique_ptr<Channel> channel, ChannelHandler& handler) {
  auto open = own_.release(*channel, true);
  if (!open) return channel;
  auto moved = core_->adopt(std::move(*open), handler, channel->peer());
  moved_.push_back(std::move(channel));
  return moved;
}

}  // namespace tributary::transport
