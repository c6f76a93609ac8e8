#include "tests/rdma/transport/verbs_world.h"

#include "tests/unit/packet/sealed_keys.h"
#include "tributary/transport/verbs_beside_tcp.h"

namespace tributary::transport::test {
namespace {

/// A TCP transport that a verbs transport polls.
class SecondWay final : public Transport {
 public:
  explicit SecondWay(const std::string& host, const VerbsSettings& verbs)
      : both_(VerbsBesideTcp::create(with(verbs, host), {.frames_queued_max = kFramesQueuedMax}).value()) {}
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, Acceptor& acceptor) override {
    return both_->second_way().listen(at, acceptor);
  }
  std::unique_ptr<Channel> connect(const Endpoint& to, ChannelHandler& handler, Duration limit) override {
    return both_->second_way().connect(to, handler, limit);
  }
  std::size_t poll(Duration wait) override { return both_->poll(wait); }
  TimePoint now() const override { return both_->now(); }
  void post(std::function<void()> call) override { both_->post(std::move(call)); }

 private:
  static VerbsSettings with(VerbsSettings settings, const std::string& host) {
    settings.bind_address = host;
    return settings;
  }
  std::unique_ptr<VerbsBesideTcp> both_;
};

class SecondWayWorld final : public VerbsWorld {
 public:
  explicit SecondWayWorld(const VerbsSettings& settings)
      : VerbsWorld(settings), server_(rdma_hosts().at(0), settings), client_(rdma_hosts().back(), settings) {}
  Transport& server() override { return server_; }
  Transport& client() override { return client_; }

 private:
  SecondWay server_;
  SecondWay client_;
};

}  // namespace

std::vector<NamedWorld> worlds() {
  const auto world = [](const VerbsSettings& settings) {
    return [settings] { return std::make_unique<VerbsWorld>(settings); };
  };
  const VerbsSettings plain{.frames_queued_max = kFramesQueuedMax};
  const VerbsSettings few_receives{
      .frames_queued_max = kFramesQueuedMax, .receive_depth = 4, .read_bytes_max = 65536, .reads_in_flight = 2};
  const VerbsSettings all_fetched{.frames_queued_max = kFramesQueuedMax, .eager_bytes = 16, .inline_bytes = 0};
  const VerbsSettings sleeps{.frames_queued_max = kFramesQueuedMax, .spin_max = {}};
  const VerbsSettings no_windows{.frames_queued_max = kFramesQueuedMax, .eager_bytes = 1024, .windows_max = 0};
  const VerbsSettings four_pairs{.frames_queued_max = kFramesQueuedMax, .queue_pairs = 4};
  const VerbsSettings few_receives_three_pairs{
      .frames_queued_max = kFramesQueuedMax, .receive_depth = 4, .queue_pairs = 3, .eager_bytes = 1024};
  const VerbsSettings post_send{
      .frames_queued_max = kFramesQueuedMax, .queue_pairs = 2, .extended_posting = false, .eager_bytes = 1024};
  const auto sealed = [&](VerbsSettings settings, PacketSecurity security) {
    settings.keys = sealed_keys(security);
    return world(settings);
  };
  const VerbsSettings small_messages{
      .frames_queued_max = kFramesQueuedMax, .receive_depth = 4, .sealed_bytes = 6000, .inline_bytes = 0};
  const auto second_way = [](const VerbsSettings& settings) {
    return [settings] { return std::make_unique<SecondWayWorld>(settings); };
  };
  return {{"second_way", second_way(plain)},
          {"second_way_no_spinning", second_way(sleeps)},
          {"ibv_post_send", world(post_send)},
          {"authenticated", sealed(plain, PacketSecurity::authenticate)},
          {"encrypted", sealed(four_pairs, PacketSecurity::encrypt)},
          {"encrypted_small_messages", sealed(small_messages, PacketSecurity::encrypt)},
          {"four_queue_pairs", world(four_pairs)},
          {"few_receives_three_queue_pairs", world(few_receives_three_pairs)},
          {"plain", world(plain)},
          {"few_receives", world(few_receives)},
          {"payloads_fetched", world(all_fetched)},
          {"no_spinning", world(sleeps)},
          {"no_memory_windows", world(no_windows)}};
}

}  // namespace tributary::transport::test
