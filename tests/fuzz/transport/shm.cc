// A process that the victim has let in to shared memory writes any bytes there, at any time between two turns of the
// victim: positions, headers, payloads, and fields that only the victim may write. The victim must neither crash nor
// hang, and an honest process's frames must come back right to the end.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/transport/script.h"
#include "tests/fuzz/transport/victim.h"
#include "tests/unit/transport/shm_stranger.h"
#include "tributary/transport/shm.h"

using namespace tributary;
using namespace tributary::transport;
using namespace tributary::fuzz;
using tributary::transport::test::ShmStranger;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kRingBytes = 32768;  // half of it is room for payloads that a handler takes without a copy
/// The victim and an honest process, which stay for all inputs; each input is a stranger.
class World {
 public:
  World() {
    listener_ = victim_.listen({"fuzz-" + std::to_string(::getpid()), 0}, accepting_).value();
    asking_.channel = honest_.connect(listener_->local(), asking_, 5s);
    ask();
  }
  void ask() {
    const std::uint64_t before = asking_.answers;
    asking_.ask();
    run_until([&] { return asking_.answers > before; });
  }
  std::unique_ptr<ShmStranger> let_in() {
    auto stranger = std::make_unique<ShmStranger>(to_string(listener_->local()));
    if (!stranger->socket.is_open()) std::abort();
    run_until([&] { return stranger->take_offer(); });
    return stranger;
  }
  void turn() { victim_.poll({}); }
  Victim& newest() { return *accepting_.ends.back(); }
  /// Drops every connection except the honest process's connection.
  void forget() {
    if (accepting_.ends.size() > 1) accepting_.ends.resize(1);
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

  ShmTransport victim_{{.ring_bytes = kRingBytes, .huge_pages = false}};
  ShmTransport honest_;
  Accepting accepting_;
  Asking asking_;
  std::unique_ptr<Listener> listener_;
};

/// The stranger. It writes like the other side, at places that the script chooses.
class Scribbler {
 public:
  Scribbler(ShmStranger& stranger, Script& script) : stranger_(stranger), script_(script) {}
  void frame() {
    FrameHeader header = header_of(kHostileGroup, script_.byte());
    const std::uint8_t length = script_.byte();
    header.payload_bytes = length < 128 ? length : (length - 127U) * 128U;
    if (script_.byte() % 4 == 0) header.payload_bytes = static_cast<std::uint32_t>(script_.number(3));
    FrameBytes bytes{};
    encode(header, bytes);
    if (const std::uint8_t how = script_.byte(); how % 8 == 0) bytes[how / 4] ^= static_cast<std::byte>(script_.byte());
    put(written_, bytes);
    put(written_ + bytes.size(), script_.take(16));
    written_ += kFrameHeaderBytes + whole_lines(header.payload_bytes);
    mine().written.store(written_);
  }
  /// Withdraws a part of the bytes that frame() announced, or announces more.
  void position() {
    const std::uint64_t by = script_.number(2);
    switch (script_.byte() % 4) {
      case 0:
        mine().written.store(written_ - by / kLineBytes * kLineBytes);
        break;
      case 1:
        mine().written.store(written_ + by);
        break;
      case 2:
        mine().written.store(script_.number(8));
        break;
      default:
        mine().written.store(written_);
    }
  }
  void reading() {
    switch (script_.byte() % 4) {
      case 0:
        mine().read.store(theirs().written.load());
        break;
      case 1:
        mine().read.store(script_.number(8));
        break;
      case 2:
        mine().room_at.store(script_.number(8));
        break;
      default:
        mine().asleep.store(static_cast<std::uint32_t>(script_.number(4)));
        mine().finished.store(script_.byte());
    }
  }
  void into_theirs() {
    switch (script_.byte() % 4) {
      case 0:
        theirs().written.store(script_.number(8));
        break;
      case 1:
        theirs().read.store(script_.number(8));
        break;
      case 2:
        theirs().room_at.store(script_.number(8));
        break;
      default:
        theirs().asleep.store(static_cast<std::uint32_t>(script_.number(4)));
    }
  }
  void bytes() { put(script_.number(2), script_.take(script_.byte())); }

 private:
  Side& mine() { return stranger_.memory->mine(); }
  Side& theirs() { return stranger_.their_side(); }
  void put(std::uint64_t at, std::span<const std::byte> from) {
    copy_in(stranger_.memory->outgoing(), kRingBytes, at, from);
  }

  ShmStranger& stranger_;
  Script& script_;
  std::uint64_t written_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  Script script({data, size});
  auto stranger = world.let_in();
  if (const std::uint8_t greeting = script.byte(); greeting % 16 == 15) {
    stranger->say(static_cast<std::uint32_t>(script.number(4)));
    if (greeting >= 128) stranger.reset();
    world.turn();
  } else {
    stranger->say_mapped();
    for (int turns = 0; turns < 1000 && !stranger->hear_go(); ++turns) world.turn();
  }
  if (stranger) {
    Scribbler scribbler(*stranger, script);
    for (int steps = 0; !script.over() && steps < 256; ++steps) {
      switch (script.byte() % 12) {
        case 0:
        case 1:
        case 2:
          scribbler.frame();
          break;
        case 3:
          scribbler.position();
          break;
        case 4:
          scribbler.reading();
          break;
        case 5:
          scribbler.into_theirs();
          break;
        case 6:
          scribbler.bytes();
          break;
        case 7:
          world.newest().go_on();
          break;
        case 8:
          world.newest().give_back(script.byte());
          break;
        case 9:
          stranger->ring();
          break;
        default:
          world.turn();
      }
    }
    world.turn();
    if (size % 2 == 0) stranger.reset();  // it dies before the victim has given back its payloads
    world.turn();
  }
  world.ask();
  world.forget();
  stranger.reset();
  world.turn();
  return 0;
}
