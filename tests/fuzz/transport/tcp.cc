// A stranger on a TCP connection sends frames and nonsense, cut anywhere, with urgent bytes, ends and resets between
// them, at any time between two turns of the victim. The victim must neither crash nor hang, and an honest client's
// frames must come back right to the end.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/fuzz/transport/script.h"
#include "tests/fuzz/transport/victim.h"
#include "tributary/transport/tcp.h"

using namespace tributary;
using namespace tributary::transport;
using namespace tributary::fuzz;
using namespace std::chrono_literals;

namespace {

/// Sends the stranger's bytes in pieces that end where the input says.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    constexpr int kOn = 1;
    // Close with a reset, so that no address stays in TIME_WAIT.
    constexpr linger kAtOnce{.l_onoff = 1, .l_linger = 0};
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) std::abort();
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &kAtOnce, sizeof kAtOnce);
  }
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void frame(Script& script) {
    FrameHeader header = header_of(kHostileGroup, script.byte());
    const std::uint8_t length = script.byte();
    header.payload_bytes = length < 128 ? length : (length - 127U) * 128U;
    const std::uint8_t how = script.byte();
    if (how % 16 == 1) header.payload_bytes = static_cast<std::uint32_t>(script.number(3));
    FrameBytes bytes{};
    encode(header, bytes);
    if (how % 16 == 2) bytes[script.byte() % bytes.size()] ^= static_cast<std::byte>(script.byte());
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    // Send as many bytes as the header says, or fewer.
    const std::size_t payload = std::min<std::size_t>(header.payload_bytes, 65536);
    waiting_.resize(waiting_.size() + (how % 16 == 3 ? payload / 2 : payload), std::byte{how});
  }
  void bytes(Script& script) {
    const auto some = script.take(script.byte());
    waiting_.insert(waiting_.end(), some.begin(), some.end());
  }
  void write(std::size_t most) {
    const std::size_t count = std::min(most, waiting_.size());
    const ssize_t written = ::send(socket_, waiting_.data(), count, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written > 0) waiting_.erase(waiting_.begin(), waiting_.begin() + written);
  }
  void urgent(std::uint8_t what) {
    static_cast<void>(::send(socket_, &what, 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  void read() {
    std::array<std::byte, 4096> scratch{};
    static_cast<void>(::recv(socket_, scratch.data(), scratch.size(), MSG_DONTWAIT));
  }
  void finish() { ::shutdown(socket_, SHUT_WR); }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::vector<std::byte> waiting_;
};

/// The victim and an honest client, which stay for all inputs; each input is a stranger.
class World {
 public:
  World() {
    listener_ = victim_.listen({"127.0.0.1", 0}, accepting_).value();
    asking_.channel = honest_.connect(listener_->local(), asking_, 5s);
    ask();
  }
  void ask() {
    const std::uint64_t before = asking_.answers;
    asking_.ask();
    run_until([&] { return asking_.answers > before; });
  }
  std::unique_ptr<Stranger> let_in() {
    auto stranger = std::make_unique<Stranger>(listener_->local().port);
    run_until([&] { return accepting_.ends.size() > 1; });
    return stranger;
  }
  void turn() { victim_.poll({}); }
  Victim& newest() { return *accepting_.ends.back(); }
  /// Drops every connection except the honest client's connection.
  void forget() {
    if (accepting_.ends.size() > 1) accepting_.ends.resize(1);
    turn();
    if (victim_.statistics().connections > 8) std::abort();
  }

 private:
  void run_until(const auto& done) {
    // Abort only after many turns and much time: the machine may have stopped this process for a while.
    const TimePoint end = Clock::now() + 8s;
    for (std::uint64_t turns = 0; !done(); ++turns) {
      if (turns > 1'000'000 && Clock::now() > end) std::abort();
      victim_.poll({});
      honest_.poll({});
    }
  }

  TcpTransport victim_{{.poll_bytes_max = 20'000, .spin_max = {}}};
  TcpTransport honest_{{.spin_max = {}}};
  Accepting accepting_;
  Asking asking_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  Script script({data, size});
  auto stranger = world.let_in();
  for (int steps = 0; !script.over() && stranger && steps < 256; ++steps) {
    switch (script.byte() % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
        stranger->frame(script);
        break;
      case 4:
        stranger->bytes(script);
        break;
      case 5:
      case 6:
        stranger->write(script.byte());
        break;
      case 7:
      case 8:
        stranger->write(65536);
        break;
      case 9:
        stranger->urgent(script.byte());
        break;
      case 10:
        world.newest().go_on();
        break;
      case 11:
        stranger->read();
        break;
      case 12:
        stranger->finish();
        break;
      case 13:
        if (script.byte() % 4 == 0) stranger.reset();
        break;
      default:
        world.turn();
    }
  }
  if (stranger) stranger->write(SIZE_MAX);
  world.turn();
  if (size % 2 == 0) stranger.reset();
  world.turn();
  world.ask();
  world.forget();
  return 0;
}
