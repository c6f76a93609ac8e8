#pragma once
// A transport that reaches no other process, for code that only asks a transport about memory.
#include <functional>
#include <memory>

#include "tributary/transport/channel.h"

namespace tributary::client::gpu::test {

class NoTransport : public transport::Transport {
 public:
  Result<std::unique_ptr<transport::Listener>> listen(const Endpoint&, transport::Acceptor&) override {
    return fail(Errc::unsupported, "");
  }
  std::unique_ptr<transport::Channel> connect(const Endpoint&, transport::ChannelHandler&,
                                              transport::Duration) override {
    return nullptr;
  }
  std::size_t poll(transport::Duration) override { return 0; }
  transport::TimePoint now() const override { return {}; }
  void post(std::function<void()>) override {}
};

}  // namespace tributary::client::gpu::test
