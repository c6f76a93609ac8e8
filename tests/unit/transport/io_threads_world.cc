// Two transports with I/O threads. The server moves each accepted connection to an I/O thread at once. So the suite
// tests every duty of a channel on these threads, and both ways in which a channel comes to such a thread.
#include "tributary/transport/io_threads.h"

#include "tests/unit/transport/real_world.h"

namespace tributary::transport::test {
namespace {

/// Gives accepted channels to the I/O threads before the user sees them.
class MovingTransport final : public Transport {
 public:
  explicit MovingTransport(const NearSettings& settings, std::uint32_t threads) : whole_(settings, threads) {}
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override {
    auto mover = std::make_unique<Mover>(whole_, acceptor);
    auto listener = whole_.listen(at, *mover);
    if (!listener) return listener;
    return std::make_unique<MovingListener>(std::move(mover), std::move(*listener));
  }
  std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override {
    return whole_.io_way().connect(to, handler, limit);
  }
  std::size_t poll(Duration wait) override { return whole_.poll(wait); }
  TimePoint now() const override { return whole_.now(); }
  void post(std::function<void()> call) override { whole_.post(std::move(call)); }

 private:
  /// Stands between a moved channel and its user, because the user sets its handler only after the move.
  class Between final : public ChannelHandler {
   public:
    void on_open(Channel& channel) override { to->on_open(channel); }
    Placement on_header(Channel& channel, const FrameHeader& header) override { return to->on_header(channel, header); }
    void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override {
      to->on_frame(channel, header, payload);
    }
    void on_sent(Channel& channel, std::uint64_t cookie) override { to->on_sent(channel, cookie); }
    void on_closed(Channel& channel, const Error& error) override { to->on_closed(channel, error); }
    ChannelHandler* to = nullptr;
  };

  class Mover final : public Acceptor {
   public:
    Mover(IoThreadsTransport& whole, Acceptor& user) : whole_(whole), user_(user) {}
    ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
      between_.push_back(std::make_unique<Between>());
      Between& between = *between_.back();
      auto moved = whole_.to_io_thread(std::move(channel), between);
      between.to = user_.on_accept(std::move(moved));
      return between.to == nullptr ? nullptr : &between;
    }

   private:
    IoThreadsTransport& whole_;
    Acceptor& user_;
    std::vector<std::unique_ptr<Between>> between_;
  };

  class MovingListener final : public Listener {
   public:
    MovingListener(std::unique_ptr<Mover> mover, std::unique_ptr<Listener> inner)
        : mover_(std::move(mover)), inner_(std::move(inner)) {}
    ~MovingListener() override { kept().push_back(std::move(mover_)); }
    Endpoint local() const override { return inner_->local(); }

   private:
    /// Channels outlive their listener, so the objects between the channels and their users must outlive it, too.
    static std::vector<std::unique_ptr<Mover>>& kept() {
      static std::vector<std::unique_ptr<Mover>> all;
      return all;
    }
    std::unique_ptr<Mover> mover_;
    std::unique_ptr<Listener> inner_;
  };

  IoThreadsTransport whole_;
};

class IoThreadsWorld final : public RealWorld {
 public:
  IoThreadsWorld(std::uint32_t threads, bool shared_memory)
      : RealWorld("127.0.0.1"), server_(settings(shared_memory), threads), client_(settings(shared_memory), threads) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }

 private:
  static NearSettings settings(bool shared_memory) {
    return {.tcp = {.frames_queued_max = kFramesQueuedMax},
            .shm = {.frames_queued_max = kFramesQueuedMax},
            .shared_memory = shared_memory};
  }
  MovingTransport server_;
  MovingTransport client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  const auto world = [](std::uint32_t threads, bool shared_memory) {
    return [=] { return std::make_unique<IoThreadsWorld>(threads, shared_memory); };
  };
  return {{"one_thread", world(1, false)}, {"two_threads", world(2, false)}, {"shared_memory", world(2, true)}};
}

}  // namespace tributary::transport::test
