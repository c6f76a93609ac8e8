// Another process, which knows the secret, writes bytes to the first socket of a connection of NCCL: heads and bytes of
// messages in any order and in pieces of any length, while the test posts and tests buffers like NCCL. The end may
// write only within posted buffers, and each request must end exactly once.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "client/plugins/nccl/p2p/sockets/socket_receive_comm.h"
#include "tests/fuzz/transport/script.h"

using namespace tributary;
using namespace tributary::nccl;
using tributary::fuzz::Script;

namespace {

/// The other side's end.
class Writer {
 public:
  explicit Writer(int descriptor) : descriptor_(descriptor) {}
  ~Writer() { close(); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void write(std::span<const std::byte> bytes) const {
    if (descriptor_ >= 0 && !bytes.empty())
      (void)::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

/// A receive that NCCL has posted.
struct Posted {
  std::unique_ptr<std::byte[]> memory;
  std::size_t bytes = 0;
  nccl::Request* request = nullptr;
};

void write_message(Script& script, const Writer& writer, std::uint32_t& number) {
  MessageHead head{.number = number, .bytes = script.byte(), .tag = script.byte() % 4};
  const std::uint8_t faults = script.byte();
  if (faults % 4 == 0) head.bytes *= 64;
  if (faults % 32 == 1) head.number = static_cast<std::uint32_t>(script.number(4));
  if (faults % 32 == 2) head.bytes = static_cast<std::uint32_t>(script.number(4));
  HeadBytes bytes = encode(head);
  if (faults % 32 == 3) bytes[script.byte() % bytes.size()] ^= std::byte{script.byte()};
  ++number;
  writer.write(std::span(bytes).first(faults % 32 == 4 ? script.byte() % bytes.size() : bytes.size()));
  const std::vector<std::byte> body(std::min<std::size_t>(head.bytes, 32768));
  writer.write(std::span(body).first(faults % 32 == 5 ? script.byte() % (body.size() + 1) : body.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto engine = Engine::open({.name = "lo", .address = "127.0.0.1"}).value();
  Script script({data, size});
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) return 0;
  Writer writer(ends[0]);
  std::vector<StreamSocket> sockets;
  sockets.emplace_back(transport::ReleasedSocket{.socket = ends[1]}, "the other end");
  SocketReceiveComm comm(engine, std::move(sockets), {});
  std::vector<Posted> posted;
  std::uint32_t number = 0;
  for (int steps = 0; !script.over() && steps < 256; ++steps) {
    switch (script.byte() % 8) {
      case 0:
      case 1: {
        Posted& one = posted.emplace_back();
        one.bytes = script.byte() * std::size_t{script.byte() % 4 == 0 ? 64U : 1U};
        one.memory = std::make_unique<std::byte[]>(one.bytes);
        if (comm.receive(one.memory.get(), one.bytes, script.byte() % 4, &one.request) != abi::Result::success)
          std::abort();
        if (one.request == nullptr) posted.pop_back();
        break;
      }
      case 2:
      case 3: {
        if (posted.empty()) break;
        const auto at = posted.begin() + script.byte() % static_cast<std::ptrdiff_t>(posted.size());
        int done = 0, bytes = -1;
        const auto result = at->request->test(&done, &bytes);
        if (result == abi::Result::success && done == 0) break;
        if (done != 0 && (bytes < 0 || static_cast<std::size_t>(bytes) > at->bytes)) std::abort();
        posted.erase(at);
        break;
      }
      case 4:
        if (script.byte() % 16 == 0) writer.close();
        break;
      default:
        write_message(script, writer, number);
    }
  }
  // The requests of the posted buffers end with the connection, or wait behind a message without a buffer.
  writer.close();
  for (std::size_t rounds = 0; rounds < 4 * kNetRequestsMax && !posted.empty(); ++rounds) {
    const Posted& one = posted[rounds % posted.size()];
    int done = 0;
    if (one.request->test(&done, nullptr) == abi::Result::success && done == 0) continue;
    posted.erase(posted.begin() + static_cast<std::ptrdiff_t>(rounds % posted.size()));
  }
  return 0;
}
