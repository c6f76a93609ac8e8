#include "tests/simulation/cluster/strangers.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tributary::simulation {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kOverheardMax = 64;
constexpr std::size_t kVisitorsMax = 2000;
constexpr std::size_t kAddresses = 3;
const std::string kName = "stranger";

constexpr std::array kTypes{FrameType::join,      FrameType::contribution, FrameType::result,     FrameType::fault,
                            FrameType::leave,     FrameType::hello,        FrameType::peer_hello, FrameType::abort,
                            FrameType::peer_data, FrameType::recover,      FrameType::finalize,   FrameType::challenge,
                            FrameType::welcome,   FrameType::descriptor,   FrameType::message,    FrameType::repair};

constexpr std::array<std::string_view, 4> kFalseIntroductions{
    R"({"rank":1,"nranks":3,"class":"collective","proof":"00","host_id":"x","port":1,"address":""})",
    R"({"rank":4294967295,"nranks":0,"class":7,"proof":null})", R"([[[[[[[[[[[[[[[[{)", ""};

}  // namespace

class Strangers::Visitor final : public transport::ChannelHandler {
 public:
  Visitor(Strangers& strangers, bool at_rank) : strangers_(strangers), at_rank_(at_rank) {}
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    buffer_.resize(header.payload_bytes);
    return transport::Accept{buffer_};
  }
  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte>) override {
    const bool lawful =
        header.type == FrameType::challenge || header.type == FrameType::refuse || header.type == FrameType::abort;
    if (at_rank_ && !lawful) ++strangers_.served_;
  }
  void on_closed(transport::Channel&, const Error&) override {}
  std::unique_ptr<transport::Channel> channel;

 private:
  Strangers& strangers_;
  const bool at_rank_;
  std::vector<std::byte> buffer_;
};

const char* to_string(Strangers::Kind kind) {
  switch (kind) {
    case Strangers::Kind::silent:
      return "silent";
    case Strangers::Kind::garbage:
      return "with garbage";
    case Strangers::Kind::replay:
      return "who repeat what they have heard";
    case Strangers::Kind::mixed:
      return "of all kinds";
  }
  return "?";
}

Strangers::Strangers(transport::SimNetwork& network, std::uint64_t seed) : network_(network), random_(seed) {
  network_.overhear(
      [this](const Endpoint& from, const Endpoint& to, const FrameHeader& header, std::span<const std::byte> payload) {
        if (from.host.starts_with(kName)) return;
        if (std::ranges::find(heard_of_, to) == heard_of_.end()) heard_of_.push_back(to);
        overheard_.emplace_back(to, Words{header, {payload.begin(), payload.end()}});
        if (overheard_.size() > kOverheardMax) overheard_.pop_front();
      });
}

Strangers::~Strangers() {
  network_.overhear({});
}

void Strangers::come(const Endpoint& target, Kind kind, std::uint32_t connections) {
  auto& transport = network_.transport(kName + std::to_string(below(kAddresses)));
  for (std::uint32_t i = 0; i < connections; ++i) {
    auto& visitor = *visitors_.emplace_back(std::make_unique<Visitor>(*this, !target.host.starts_with("aggregator")));
    visitor.channel = transport.connect(target, visitor, 1s);
    ++connections_;
    switch (kind == Kind::mixed ? kKinds[below(3)] : kind) {
      case Kind::garbage:
        say_garbage(*visitor.channel);
        break;
      case Kind::replay:
        say_replayed(*visitor.channel, target);
        break;
      default:
        break;
    }
  }
  while (visitors_.size() > kVisitorsMax) visitors_.pop_front();
}

void Strangers::leave() {
  visitors_.clear();
}

void Strangers::say_garbage(transport::Channel& channel) {
  for (std::uint64_t frames = 1 + below(6); frames > 0; --frames) {
    FrameHeader h;
    h.type = kTypes[below(kTypes.size())];
    h.group = below(4);
    h.epoch = static_cast<std::uint32_t>(below(4));
    h.sequence = below(10);
    h.operation = below(10);
    h.lane = static_cast<std::uint8_t>(below(3));
    std::vector<std::byte> payload(below(std::min<std::uint64_t>(payload_bytes_max(h.type), 2000) + 1));
    for (auto& b : payload) b = static_cast<std::byte>(random_());
    if (h.type == FrameType::hello || h.type == FrameType::peer_hello) {
      const auto text = std::as_bytes(std::span(kFalseIntroductions[below(kFalseIntroductions.size())]));
      payload.assign(text.begin(), text.end());
    }
    channel.send_copy(h, payload);
  }
}

/// Repeats frames, mostly frames that were sent to the same listener.
void Strangers::say_replayed(transport::Channel& channel, const Endpoint& target) {
  std::vector<const Words*> fitting;
  for (const auto& [to, words] : overheard_) {
    if (to == target || below(4) == 0) fitting.push_back(&words);
  }
  if (fitting.empty()) return;
  const Words& words = *fitting[below(fitting.size())];
  for (std::uint64_t times = 1 + below(2); times > 0; --times) channel.send_copy(words.header, words.payload);
  ++replayed_;
}

}  // namespace tributary::simulation
