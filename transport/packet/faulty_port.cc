#include "transport/packet/faulty_port.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "transport/random/random.h"

namespace tributary::transport::packet {
namespace {

class FaultyPort final : public PacketPort {
 public:
  FaultyPort(std::unique_ptr<PacketPort> port, const PortFaults& faults)
      : port_(std::move(port)), faults_(faults), random_(faults.seed) {}

  std::size_t receive(std::span<ReceivedPacket> into) override { return port_->receive(into); }
  bool send(const PacketAddress& to, std::span<const std::byte> header, std::span<const std::byte> payload) override {
    if (happens(faults_.lost)) return true;
    if (happens(faults_.overtaken)) {
      Held& held = hold(to, header, payload);
      held.wait = 1 + random_.below(4);
      return true;
    }
    if (happens(faults_.damaged)) {
      Held& held = hold(to, header, payload);
      held.bytes[random_.below(held.bytes.size())] ^= static_cast<std::byte>(1 + random_.below(255));
      return true;
    }
    if (happens(faults_.repeated)) (void)port_->send(to, header, payload);
    return port_->send(to, header, payload);
  }
  /// Sends held packets some flushes later, so that later packets overtake them.
  void flush() override {
    std::vector<Held> due;
    std::erase_if(held_, [&](Held& held) {
      if (held.wait-- > 0) return false;
      due.push_back(std::move(held));
      return true;
    });
    for (const Held& held : due) {
      port_->set_priority(held.priority);
      const std::size_t head = std::min(held.bytes.size(), kPortHeaderBytesMax);
      (void)port_->send(held.to, std::span(held.bytes).first(head), std::span(held.bytes).subspan(head));
    }
    if (!due.empty()) port_->set_priority(priority_);
    port_->flush();
  }
  void set_priority(std::uint32_t priority) noexcept override { port_->set_priority(priority_ = priority); }
  void leave_checksums() noexcept override { port_->leave_checksums(); }
  bool keep(void* buffer) noexcept override { return port_->keep(buffer); }
  void give_back(void* buffer) noexcept override { port_->give_back(buffer); }
  void wait(Duration limit) override { port_->wait(limit); }
  int descriptor() const noexcept override { return port_->descriptor(); }
  void watch(std::span<const int> descriptors) override { port_->watch(descriptors); }
  void wake() noexcept override { port_->wake(); }
  std::size_t datagram_bytes_max(const PacketAddress& to) override { return port_->datagram_bytes_max(to); }
  void believe_path(const PacketAddress& to, std::uint32_t bytes) override { port_->believe_path(to, bytes); }
  PortCounts counts() const noexcept override { return port_->counts(); }
  PacketAddress local() const override { return port_->local(); }

 private:
  struct Held {
    PacketAddress to;
    std::vector<std::byte> bytes;
    std::uint32_t priority = 0;
    std::uint64_t wait = 0;  // number of flushes
  };
  [[nodiscard]] bool happens(std::uint32_t per_thousand) { return random_.below(1000) < per_thousand; }
  Held& hold(const PacketAddress& to, std::span<const std::byte> header, std::span<const std::byte> payload) {
    held_.push_back({.to = to, .bytes = {header.begin(), header.end()}, .priority = priority_});
    held_.back().bytes.insert(held_.back().bytes.end(), payload.begin(), payload.end());
    return held_.back();
  }

  std::unique_ptr<PacketPort> port_;
  PortFaults faults_;
  Random random_;
  std::uint32_t priority_ = 0;
  std::vector<Held> held_;
};

}  // namespace

Result<PortFaults> parse_port_faults(std::string_view text) {
  PortFaults faults;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? std::string_view{} : part.substr(equals + 1);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool good = error == std::errc{} && end == value.data() + value.size() && (name == "seed" || number <= 1000);
    const auto share = static_cast<std::uint32_t>(number);
    if (good && name == "lost") {
      faults.lost = share;
    } else if (good && name == "repeated") {
      faults.repeated = share;
    } else if (good && name == "overtaken") {
      faults.overtaken = share;
    } else if (good && name == "damaged") {
      faults.damaged = share;
    } else if (good && name == "seed") {
      faults.seed = number;
    } else {
      return fail(Errc::bad_config, "'" + std::string(part) +
                                        "' is no fault of packets: there are lost, repeated, overtaken and damaged, "
                                        "each =0 to =1000 of a thousand, and seed=");
    }
  }
  return faults;
}

std::unique_ptr<PacketPort> make_faulty(std::unique_ptr<PacketPort> port, const PortFaults& faults) {
  return std::make_unique<FaultyPort>(std::move(port), faults);
}

Result<std::unique_ptr<PacketPort>> with_faults(std::unique_ptr<PacketPort> port, std::string_view told) {
  if (const char* const variable = std::getenv("TRIBUTARY_TEST_PACKET_FAULTS"); told.empty() && variable != nullptr) {
    told = variable;
  }
  if (told.empty()) return port;
  const auto faults = parse_port_faults(told);
  if (!faults) return std::unexpected(faults.error());
  return make_faulty(std::move(port), *faults);
}

}  // namespace tributary::transport::packet
