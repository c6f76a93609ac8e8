#include "tests/fuzz/transport/hostile_packets.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "tests/fuzz/transport/resealing.h"
#include "tests/fuzz/transport/script.h"
#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/packet/sim_packets.h"
#include "transport/packet/wire.h"

using namespace tributary;
using namespace tributary::transport;
using namespace tributary::transport::packet;
using tributary::fuzz::PacketWorldSettings;
using tributary::fuzz::Resealing;
using tributary::fuzz::Script;
using tributary::transport::packet::test::SimPackets;
using namespace std::chrono_literals;

namespace {

constexpr std::uint8_t kVictim = 1, kHonest = 2, kHostile = 3;

FrameHeader header_of(std::uint64_t sequence) {
  FrameHeader header;
  header.type = FrameType::contribution;
  header.group = 7;
  header.epoch = 1;
  header.sequence = sequence;
  return header;
}

/// The hostile side's port. It sends each packet of the hostile transport as the script says.
class Mangler final : public PacketPort {
 public:
  Mangler(std::unique_ptr<PacketPort> port, Script& script, Resealing* resealing)
      : port_(std::move(port)), script_(script), resealing_(resealing) {}
  std::size_t receive(std::span<ReceivedPacket> into) override {
    const std::size_t count = port_->receive(into);
    if (resealing_ != nullptr) {
      for (const ReceivedPacket& packet : into.first(count)) resealing_->heard(packet.bytes);
    }
    return count;
  }
  bool send(const PacketAddress& to, std::span<const std::byte> header, std::span<const std::byte> payload) override {
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    if (resealing_ != nullptr) resealing_->unseal(bytes);
    kept_[script_.over() ? 0 : sent_++ % kept_.size()] = bytes;
    switch (script_.byte() % 8) {
      case 4:
        return pass_changed(to, std::move(bytes));
      case 5:
        return true;  // lost
      case 6:
        repeat(to);
        break;
      case 7:
        if (script_.byte() % 2 == 0) (void)pass_unchanged(to, bytes);
        return pass_changed(to, std::move(bytes));
      default:
        break;
    }
    return pass_unchanged(to, std::move(bytes));
  }
  void flush() override {
    port_->flush();
    passed_.clear();
  }
  void wait(Duration limit) override { port_->wait(limit); }
  void wake() noexcept override { port_->wake(); }
  std::size_t datagram_bytes_max(const PacketAddress& to) override { return port_->datagram_bytes_max(to); }
  PacketAddress local() const override { return port_->local(); }

 private:
  /// Sends one of the latest packets again, changed or not.
  void repeat(const PacketAddress& to) {
    const std::vector<std::byte>& old = kept_[script_.byte() % kept_.size()];
    if (old.size() < kPacketHeaderBytes) return;
    (void)(script_.byte() % 2 == 0 ? pass_changed(to, old) : pass_unchanged(to, old));
  }
  bool pass_changed(const PacketAddress& to, std::vector<std::byte> bytes) {
    if (bytes.size() < kPacketHeaderBytes) return pass(to, bytes);
    const std::uint8_t how = script_.byte();
    for (int changes = 1 + how % 3; changes > 0; --changes) {
      const std::size_t at = script_.byte() % std::min<std::size_t>(bytes.size(), 192);
      const std::size_t width = std::min<std::size_t>(std::size_t{1} << (how >> 2U) % 4, bytes.size() - at);
      std::uint64_t value = 0;
      std::memcpy(&value, &bytes[at], width);
      if ((how & 16U) != 0) {
        value += static_cast<std::uint64_t>(static_cast<std::int8_t>(script_.byte()));
      } else {
        value = script_.number(width);
      }
      std::memcpy(&bytes[at], &value, width);
    }
    if ((how & 32U) != 0) bytes.resize(kPacketHeaderBytes + script_.byte());
    if ((how & 64U) != 0) return pass(to, bytes);  // leave the checksum or the length wrong
    return pass_right(to, std::move(bytes));
  }
  bool pass_unchanged(const PacketAddress& to, std::vector<std::byte> bytes) {
    if (resealing_ != nullptr) resealing_->seal(bytes);
    return pass(to, bytes);
  }
  bool pass_right(const PacketAddress& to, std::vector<std::byte> bytes) {
    PacketHeader header;
    std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
    if (resealing_ != nullptr && (header.flags & packet_flags::kSealed) != 0) {
      resealing_->seal(bytes);
    } else {
      encode(header, std::span(bytes).first<kPacketHeaderBytes>(), std::span(bytes).subspan(kPacketHeaderBytes), {});
    }
    return pass(to, bytes);
  }
  bool pass(const PacketAddress& to, std::span<const std::byte> bytes) {
    passed_.emplace_back(bytes.begin(), bytes.end());  // the port may read the payload until flush()
    const auto all = std::span<const std::byte>(passed_.back());
    const std::size_t head = std::min(all.size(), kPortHeaderBytesMax);
    return port_->send(to, all.first(head), all.subspan(head));
  }

  std::unique_ptr<PacketPort> port_;
  Script& script_;
  Resealing* resealing_;
  std::array<std::vector<std::byte>, 8> kept_;
  std::size_t sent_ = 0;
  std::vector<std::vector<std::byte>> passed_;
};

/// A side that decides by each frame's number: it takes the frame at once or later, refuses it, or closes in the middle
/// of it.
class Fickle : public ChannelHandler {
 public:
  bool takes_in_place(Channel&, const FrameHeader& header) override { return in_place_ = header.sequence % 4 == 1; }
  Placement on_header(Channel& from, const FrameHeader& header) override {
    if (closed_) std::abort();
    in_place_ = false;
    switch (header.sequence % 16) {
      case 3:
        if (!std::exchange(stopped, true)) return NotYet{};
        break;
      case 7:
        return Reject{{Errc::corrupt, "not wanted"}};
      case 11:
        if (header.sequence > 16) {
          from.close();
          return NotYet{};
        }
        break;
      default:
        break;
    }
    place_ = std::make_unique<std::byte[]>(header.payload_bytes);
    return Accept{{place_.get(), header.payload_bytes}};
  }
  void on_frame(Channel& from, const FrameHeader& header, std::span<std::byte> payload) override {
    if (closed_ || payload.size() != header.payload_bytes) std::abort();
    stopped = false;
    if (std::exchange(in_place_, false) && header.sequence % 8 == 1) from.give_back(payload);
    if (header.sequence % 16 == 13) return from.close();
    if (header.sequence % 16 == 14) return from.close_after_flush(10ms);
    from.send_copy(header_of(header.sequence), payload.first(std::min<std::size_t>(payload.size(), 64)));
  }
  void on_closed(Channel&, const Error&) override {
    if (std::exchange(closed_, true)) std::abort();  // on_closed is the last callback
  }
  void go_on() {
    if (stopped && channel && !channel->closed()) channel->resume();
  }
  bool stopped = false;
  std::unique_ptr<Channel> channel;

 private:
  bool closed_ = false;
  bool in_place_ = false;
  std::unique_ptr<std::byte[]> place_;
};

/// A side that sends every frame back.
class Echo : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader& header) override {
    place_.resize(header.payload_bytes);
    return Accept{place_};
  }
  void on_frame(Channel& from, const FrameHeader& header, std::span<std::byte> payload) override {
    from.send_copy(header, payload);
  }
  void on_closed(Channel&, const Error&) override { std::abort(); }
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> place_;
};

/// The victim's listener; it recognizes the honest client by its address.
class Accepting : public Acceptor {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
    if (accepted->peer().starts_with(SimPackets::host(kHonest) + ":")) {
      honest.channel = std::move(accepted);
      return &honest;
    }
    if (hostile.size() >= 32) return nullptr;
    hostile.push_back(std::make_unique<Fickle>());
    hostile.back()->channel = std::move(accepted);
    return hostile.back().get();
  }
  Echo honest;
  std::vector<std::unique_ptr<Fickle>> hostile;
};

/// The honest client. It sends one frame after another; each must come back unchanged.
class Asking : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader& header) override {
    if (header.sequence != answers || header.payload_bytes != payload_.size()) std::abort();
    place_.assign(header.payload_bytes, std::byte{0});
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte> payload) override {
    if (!std::ranges::equal(payload, payload_)) std::abort();
    ++answers;
  }
  void on_closed(Channel&, const Error&) override { std::abort(); }
  void ask() {
    payload_.resize(500 + answers % 3 * 1000);
    for (std::size_t i = 0; i < payload_.size(); ++i) payload_[i] = static_cast<std::byte>(i * 7 + answers);
    channel->send_copy(header_of(answers), payload_);
  }
  std::uint64_t answers = 0;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> payload_, place_;
};

/// Returns keys for connections of any group, header_of()'s group included.
std::shared_ptr<LinkKeys> keys_with(PacketSecurity security, std::uint8_t first) {
  auto keys = transport::test::sealed_keys(security, first);
  if (security != PacketSecurity::off)
    keys->add({7, 1, 0, 5}, transport::test::secret_of(static_cast<std::uint8_t>(first + 5)), security);
  return keys;
}

PacketSettings settings_with(std::uint64_t seed, bool short_ways, std::shared_ptr<LinkKeys> keys) {
  PacketSettings settings;
  settings.keys = std::move(keys);
  settings.short_ways = short_ways;
  settings.seed = seed;
  settings.window_bytes = 32768;
  settings.kept_bytes_max = 4U << 20;
  return settings;
}

class World {
 public:
  World(Script& script, const PacketWorldSettings& settings) : script_(script), settings_(settings) {
    network_.watch = [this](const PacketAddress&, const PacketAddress& to, std::span<const std::byte> bytes) {
      sent_ = crc32c(bytes, sent_ ^ to.port);
    };
    listener_ = victim_.listen({SimPackets::host(kVictim), 4000}, accepting_).value();
    hostile_listener_ = hostile_.listen({SimPackets::host(kHostile), 4000}, hostile_accepting_).value();
    asking_.channel = honest_.connect(listener_->local(), asking_, 10s);
    ask();
  }
  /// Sends an honest frame, which must come back whatever the hostile side does before that.
  void ask() {
    const std::uint64_t before = asking_.answers;
    asking_.ask();
    if (!run([&] { return asking_.answers > before; }, 60s)) std::abort();
  }
  /// Returns a sum over all datagrams in their order.
  [[nodiscard]] std::uint32_t sent() const noexcept { return sent_; }
  void step() {
    switch (script_.byte() % 8) {
      case 0:  // the hostile client comes (again)
        client_.channel = hostile_.connect(listener_->local(), client_, 2s);
        break;
      case 1:  // the victim connects to the hostile server
        if (calling_.size() >= 8) break;
        calling_.push_back(std::make_unique<Fickle>());
        calling_.back()->channel = victim_.connect(hostile_listener_->local(), *calling_.back(), 2s);
        send(calling_.back()->channel.get());
        break;
      case 2:
      case 3:
        send(client_.channel.get());
        break;
      case 4:
        for (const auto& accepted : hostile_accepting_.hostile) send(accepted->channel.get());
        break;
      case 5:
        for (const auto& accepted : accepting_.hostile) accepted->go_on();
        for (const auto& called : calling_) called->go_on();
        break;
      case 6:
        run([] { return false; }, std::chrono::microseconds(1 + script_.byte() * script_.byte()));
        break;
      default:
        run([] { return false; }, 50us);
        if (script_.byte() % 8 == 0) ask();
    }
  }

 private:
  bool run(const std::function<bool()>& done, Duration limit) {
    return network_.run_until({&victim_, &honest_, &hostile_}, done, limit);
  }
  void send(Channel* channel) {
    const std::uint8_t number = script_.byte();
    const std::size_t bytes = std::size_t{script_.byte()} * (number < 128 ? 1 : 64);
    static const std::array<std::byte, 255 * 64> kPayload{};
    if (channel != nullptr && !channel->closed()) {
      FrameHeader header = header_of(number);
      header.payload_bytes = static_cast<std::uint32_t>(bytes);
      channel->send_copy(header, std::span(kPayload).first(bytes));
    }
  }
  PacketTransport::OpenPort mangled() {
    return [this, open = network_.opener(kHostile)](const Endpoint& at) -> Result<std::unique_ptr<PacketPort>> {
      auto port = open(at);
      if (!port) return port;
      return std::make_unique<Mangler>(std::move(*port), script_, resealing_ ? &*resealing_ : nullptr);
    };
  }

  /// The hostile side's own ends. They accept every frame without a check, because they get the victim's answers to
  /// nonsense.
  class Deaf : public ChannelHandler {
   public:
    Placement on_header(Channel&, const FrameHeader& header) override {
      place_.resize(header.payload_bytes);
      return Accept{place_};
    }
    void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {}
    void on_closed(Channel&, const Error&) override {}
    std::unique_ptr<Channel> channel;

   private:
    std::vector<std::byte> place_;
  };
  class HostileAccepting : public Acceptor {
   public:
    ChannelHandler* on_accept(std::unique_ptr<Channel> accepted) override {
      if (hostile.size() >= 8) return nullptr;
      hostile.push_back(std::make_unique<Deaf>());
      hostile.back()->channel = std::move(accepted);
      return hostile.back().get();
    }
    std::vector<std::unique_ptr<Deaf>> hostile;
  };

  Script& script_;
  const PacketWorldSettings settings_;
  const bool sealed_ = settings_.victim != PacketSecurity::off || settings_.hostile != PacketSecurity::off;
  const std::shared_ptr<LinkKeys> keys_ = sealed_ ? keys_with(settings_.victim, 1) : nullptr;
  const std::shared_ptr<LinkKeys> hostile_keys_ =
      sealed_ ? keys_with(settings_.hostile, settings_.same_secret ? 1 : 101) : nullptr;
  std::optional<Resealing> resealing_ = sealed_ ? std::optional<Resealing>(hostile_keys_) : std::nullopt;
  std::uint32_t sent_ = 0;
  SimPackets network_{1};
  PacketTransport victim_{network_.opener(kVictim), settings_with(1, settings_.short_ways, keys_), network_.time()};
  PacketTransport honest_{network_.opener(kHonest), settings_with(2, settings_.short_ways, keys_), network_.time()};
  PacketTransport hostile_{mangled(), settings_with(3, settings_.short_ways, hostile_keys_), network_.time()};
  Accepting accepting_;
  HostileAccepting hostile_accepting_;
  Asking asking_;
  Deaf client_;
  std::vector<std::unique_ptr<Fickle>> calling_;
  std::unique_ptr<Listener> listener_, hostile_listener_;
};

}  // namespace

std::uint32_t tributary::fuzz::play_hostile_packets(std::span<const std::uint8_t> input,
                                                    const PacketWorldSettings& settings) {
  Script script(input);
  World world(script, settings);
  for (int steps = 0; !script.over() && steps < 256; ++steps) world.step();
  world.ask();
  return world.sent();
}
