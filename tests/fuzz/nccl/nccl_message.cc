// Another process sends frames to the receiving end of a connection of NCCL, and gets the handle with its address: it
// sends greetings and pieces of messages in any order, while the test posts and tests buffers like NCCL. The end may
// write only into posted buffers, and no request may end twice.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "client/control/mutual_proof.h"
#include "client/plugins/nccl/p2p/frames/frame_receive_comm.h"
#include "client/plugins/nccl/p2p/handle.h"
#include "tests/fuzz/transport/script.h"

using namespace tributary;
using namespace tributary::nccl;
using tributary::fuzz::Script;

namespace {

constexpr Secret kSecret{std::byte{1}, std::byte{2}, std::byte{3}};
constexpr const char* kListeningAt = "127.0.0.1:1";
constexpr const char* kPeer = "127.0.0.1:2";

/// The other side acts as the input says; this class handles its frames as the transport's contract demands.
class Line {
 public:
  class Channel final : public transport::Channel {
   public:
    explicit Channel(Line& line) : line_(line) {}
    ~Channel() override { line_.closed_ = true; }
    bool send(const FrameHeader& header, std::span<const std::byte> payload, std::uint64_t) override {
      send_copy(header, payload);
      return true;
    }
    void send_copy(const FrameHeader& header, std::span<const std::byte> payload) override {
      if (header.type != FrameType::challenge || payload.size() > line_.heard_.size()) std::abort();
      std::memcpy(line_.heard_.data(), payload.data(), payload.size());
    }
    void resume() override { line_.waits_ = false; }
    void close() override { line_.closed_ = true; }
    void close_after_flush(transport::Duration) override { line_.closed_ = true; }
    bool closed() const noexcept override { return line_.closed_; }
    std::string peer() const override { return kPeer; }

   private:
    Line& line_;
  };

  [[nodiscard]] std::unique_ptr<Channel> channel() { return std::make_unique<Channel>(*this); }
  /// Delivers the next frame, unless an earlier frame waits for its place.
  void bring(FrameReceiveComm& to, const FrameHeader& header, std::span<const std::byte> payload, Channel& channel) {
    if (closed_) return;
    if (!held_) {
      FrameBytes bytes{};
      encode(header, bytes);
      const auto decoded = decode(bytes);
      if (!decoded) return end(to, channel, "a corrupt frame");
      held_ = {*decoded, {payload.begin(), payload.end()}};
    }
    if (waits_) return;
    const auto placement = to.on_header(channel, held_->header);
    if (closed_) return;
    if (const auto* const rejected = std::get_if<transport::Reject>(&placement))
      return end(to, channel, rejected->error.message);
    if (std::holds_alternative<transport::NotYet>(placement)) {
      waits_ = true;
      return;
    }
    const auto place = std::get<transport::Accept>(placement).payload;
    if (place.size() != held_->header.payload_bytes) std::abort();
    std::ranges::copy(held_->payload, place.begin());
    const FrameHeader landed = held_->header;
    held_.reset();
    to.on_frame(channel, landed, place);
  }
  void end(FrameReceiveComm& to, Channel& channel, const std::string& why) {
    if (closed_) return;
    closed_ = true;
    to.on_closed(channel, {Errc::peer_gone, why});
  }
  [[nodiscard]] bool waits() const { return waits_; }
  /// The nonce, until the proof comes.
  [[nodiscard]] std::string_view heard() const { return {heard_.data(), kNonceDigits}; }

 private:
  struct Held {
    FrameHeader header;
    std::vector<std::byte> payload;
  };
  std::array<char, kProofDigits> heard_{};
  std::optional<Held> held_;
  bool waits_ = false;
  bool closed_ = false;
};

/// Sends all frames of the connecting end's greeting, with or without the secret: the empty frame, then its nonce and
/// its proof.
void greet(Script& script, Line& line, FrameReceiveComm& comm, Line::Channel& their_end) {
  FrameHeader hello;
  hello.type = FrameType::peer_hello;
  const std::uint8_t faults = script.byte();
  if (faults % 8 != 0) line.bring(comm, hello, {}, their_end);
  Secret secret = kSecret;
  if (faults % 8 == 1) secret[script.byte() % secret.size()] ^= std::byte{1};
  const std::string part = to_text({.connection = std::string(kNonceDigits, '0')});
  client::ConnectingProof proof(
      secret, {.purpose = "nccl messages", .detail = std::string(kListeningAt) + "\n" + kPeer + "\n" + part});
  const auto answer = proof.answer(line.heard());
  std::string said =
      answer ? answer->nonce + answer->proof + part : std::string(kNonceDigits + kProofDigits + kPartDigits, 'x');
  if (faults % 8 == 2) said[script.byte() % said.size()] = static_cast<char>(script.byte());
  if (faults % 8 == 3) said.resize(script.byte() % said.size());
  hello.payload_bytes = static_cast<std::uint32_t>(said.size());
  const bool stranger = faults % 8 <= 1 || faults % 8 == 3;
  line.bring(comm, hello, std::as_bytes(std::span(said)), their_end);
  if (stranger && comm.greeted()) std::abort();
}

/// A receive that NCCL has posted.
struct Posted {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes = 0;
  nccl::Request* request = nullptr;
};

void handle(Script& script) {
  std::array<std::byte, abi::kHandleBytes> bytes{};
  const auto said = script.take(bytes.size());
  std::ranges::copy(said, bytes.begin());
  if (script.byte() % 2 == 0) std::memcpy(bytes.data(), &NetHandle::kMagic, sizeof NetHandle::kMagic);
  const auto read = NetHandle::read(bytes.data());
  if (read && read->endpoint().host.size() >= read->host.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto engine = Engine::open({.name = "lo", .address = "127.0.0.1"}).value();
  Script script({data, size});
  Line line;
  auto channel = line.channel();
  Line::Channel& their_end = *channel;
  std::vector<Posted> posted;
  FrameReceiveComm comm(engine, std::move(channel), kSecret, kListeningAt);
  for (int steps = 0; !script.over() && steps < 256; ++steps) {
    switch (script.byte() % 8) {
      case 0:
        handle(script);
        break;
      case 1:
        if (!comm.greeted()) greet(script, line, comm, their_end);
        break;
      case 2:
      case 3: {
        Posted& one = posted.emplace_back();
        one.bytes = script.byte() * std::size_t{script.byte() % 4 == 0 ? 64U : 1U};
        one.memory = std::make_unique<std::byte[]>(one.bytes);
        if (comm.receive(one.memory.get(), one.bytes, script.byte() % 4, &one.request) != abi::Result::success)
          std::abort();
        if (one.request == nullptr) posted.pop_back();
        break;
      }
      case 4: {
        if (posted.empty()) break;
        const auto at = posted.begin() + script.byte() % static_cast<std::ptrdiff_t>(posted.size());
        int done = 0, bytes = -1;
        const auto result = at->request->test(&done, &bytes);
        if (result == abi::Result::success && done == 0) break;
        if (done != 0 && (bytes < 0 || static_cast<std::size_t>(bytes) > at->bytes)) std::abort();
        posted.erase(at);
        break;
      }
      case 5:
        if (script.byte() % 16 == 0) line.end(comm, their_end, "it is gone");
        break;
      default: {
        FrameHeader header;
        header.type = script.byte() % 32 == 0 ? static_cast<FrameType>(script.byte()) : FrameType::message;
        header.segment = script.byte() % 4;
        header.count = script.byte() * std::uint64_t{script.byte() % 4 == 0 ? 64U : 1U};
        if (script.byte() % 16 == 0) header.count = script.number(8);
        header.root = script.byte() % 4;
        header.payload_bytes = static_cast<std::uint32_t>(script.byte() % 4 == 0 ? script.number(2) : header.count);
        header.payload_bytes = std::min(header.payload_bytes, payload_bytes_max(FrameType::message));
        const std::vector<std::byte> payload(std::min<std::size_t>(header.payload_bytes, 65536));
        header.payload_bytes = static_cast<std::uint32_t>(payload.size());
        line.bring(comm, header, payload, their_end);
      }
    }
  }
  line.end(comm, their_end, "it is gone");
  for (const Posted& one : posted) {
    int done = 0;
    if (one.request->test(&done, nullptr) == abi::Result::success && done == 0) std::abort();
  }
  return 0;
}
