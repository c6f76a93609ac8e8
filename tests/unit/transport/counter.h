#pragma once
// One side of a connection, which accepts and counts all frames.
#include <cstdint>
#include <memory>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::transport::test {

class Counter : public Acceptor, public ChannelHandler {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
    channel = std::move(accepted);
    return this;
  }
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override { ++frames; }
  void on_closed(Channel&, const Error&) override {}
  std::uint64_t frames = 0;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> place_;
};

}  // namespace tributary::transport::test
