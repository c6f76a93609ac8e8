#pragma once
// The code of a root aggregator between a transport and the engine, as in a worker of the daemon, for lanes of one
// shape. Connections join lanes in the order in which they come.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/engine/lane.h"
#include "tributary/transport/channel.h"

namespace tributary::bench {

class Root final : public engine::LaneOutput {
 public:
  explicit Root(const engine::LaneShape& shape) : lane_(shape, 0) {}

  [[nodiscard]] bool complete() const noexcept { return children_.size() == lane_.shape().children; }
  transport::ChannelHandler* add(std::unique_ptr<transport::Channel> channel) {
    const auto number = static_cast<std::uint32_t>(children_.size());
    children_.push_back(std::make_unique<Child>(*this, number, std::move(channel)));
    return children_.back().get();
  }
  bool to_parent(const FrameHeader&, std::span<const std::byte>) override { return false; }
  bool to_child(std::uint32_t child, const FrameHeader& header, std::span<const std::byte> payload) override {
    if (!children_[child]->channel->send(header, payload, payload.empty() ? 0 : header.sequence + 1))
      die("a queue is full");
    return !payload.empty();
  }
  void give_back(std::uint32_t child, std::span<const std::byte> payload) override {
    children_[child]->channel->give_back(payload);
  }
  void fault(std::uint32_t, std::uint32_t, MismatchReport) override { die("the children disagree"); }
  [[nodiscard]] std::uint64_t segments() const noexcept { return lane_.segments_completed(); }

 private:
  struct Child final : transport::ChannelHandler {
    Child(Root& root_of, std::uint32_t number_of, std::unique_ptr<transport::Channel> its)
        : root(root_of), number(number_of), channel(std::move(its)) {}
    transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
      const auto place = root.lane_.contribution_begins(number, header);
      if (!place) return transport::Reject{{Errc::corrupt, std::string(to_string(place.error()))}};
      return transport::Accept{*place};
    }
    bool takes_in_place(transport::Channel&, const FrameHeader& header) override {
      return taken = root.lane_.takes_in_place(number, header);
    }
    void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
      const auto in_place = std::exchange(taken, false) ? std::span<const std::byte>(payload) : decltype(payload){};
      if (!root.lane_.contribution_landed(number, header, root, in_place)) die("a contribution does not fit");
    }
    void on_sent(transport::Channel&, std::uint64_t cookie) override {
      if (cookie != 0) root.lane_.sent(cookie - 1);
    }
    void on_closed(transport::Channel&, const Error& error) override { die(error.message.c_str()); }
    Root& root;
    const std::uint32_t number;
    const std::unique_ptr<transport::Channel> channel;
    bool taken = false;
  };
  static void die(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
  }
  engine::Lane lane_;
  std::vector<std::unique_ptr<Child>> children_;
};

class Roots final : public transport::Acceptor {
 public:
  Roots(const engine::LaneShape& shape, std::size_t lanes) {
    for (std::size_t i = 0; i < lanes; ++i) lanes_.push_back(std::make_unique<Root>(shape));
  }
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    for (const auto& lane : lanes_) {
      if (!lane->complete()) return lane->add(std::move(channel));
    }
    return nullptr;
  }

 private:
  std::vector<std::unique_ptr<Root>> lanes_;
};

}  // namespace tributary::bench
