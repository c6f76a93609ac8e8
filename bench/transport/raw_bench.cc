// The yardsticks of scripts/bench-check: plain system calls that move as many bytes as the transports' frames, and
// copies in memory. They use no code of Tributary, so a ratio to these rates stays the same on another machine.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/transport/loopback.h"

namespace tributary::transport::bench {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(FrameHeader);

void require(bool done, const char* call) {
  if (!done) throw std::runtime_error(std::string(call) + ": " + std::strerror(errno));
}

void write_all(int descriptor, const std::byte* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, from, bytes);
    require(written > 0, "write");
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

/// Returns false at the end of the stream.
bool read_all(int descriptor, std::byte* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = ::read(descriptor, to, bytes);
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

/// Two ends of one stream: each end has one descriptor to read and one to write, or one descriptor for both.
struct Ends {
  int near_read, near_write, far_read, far_write;
};

Ends tcp_ends() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(listener >= 0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  require(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0, "bind");
  require(::listen(listener, 1) == 0, "listen");
  require(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  const int near = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(near >= 0, "socket");
  require(::connect(near, reinterpret_cast<sockaddr*>(&address), length) == 0, "connect");
  const int far = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  require(far >= 0, "accept");
  ::close(listener);
  const int on = 1;
  for (const int end : {near, far}) ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {near, near, far, far};
}

Ends pipe_ends() {
  std::array<int, 2> up{}, down{};
  require(::pipe2(up.data(), O_CLOEXEC) == 0 && ::pipe2(down.data(), O_CLOEXEC) == 0, "pipe");
  return {down[0], up[1], up[0], down[1]};
}

/// Runs the far end on a separate thread until the near end closes.
template <class Near>
void run_pair(const Ends& ends, std::size_t bytes, bool echoes, Near near) {
  std::jthread far([ends, bytes, echoes] {
    std::vector<std::byte> place(bytes);
    while (read_all(ends.far_read, place.data(), bytes)) {
      if (echoes) write_all(ends.far_write, place.data(), bytes);
    }
  });
  near();
  if (ends.near_read == ends.near_write) {
    ::shutdown(ends.near_write, SHUT_WR);
  } else {
    ::close(ends.near_write);
  }
  far.join();
  ::close(ends.near_read);
  ::close(ends.far_read);
  if (ends.far_read != ends.far_write) ::close(ends.far_write);
}

/// Writes a header and a payload by blocking calls; the other end reads them into one place.
void raw_stream(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto frame = pattern(kHeaderBytes + bytes);
  const Ends ends = tcp_ends();
  run_pair(ends, frame.size(), false, [&] {
    for (auto _ : state) write_all(ends.near_write, frame.data(), frame.size());
  });
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
BENCHMARK(raw_stream)->ArgName("bytes")->Arg(65536)->Arg(1 << 20)->UseRealTime();

void ping_pong(benchmark::State& state, const Ends& ends) {
  const auto frame = pattern(kHeaderBytes + static_cast<std::size_t>(state.range(0)));
  std::vector<std::byte> answer(frame.size());
  run_pair(ends, frame.size(), true, [&] {
    for (auto _ : state) {
      write_all(ends.near_write, frame.data(), frame.size());
      require(read_all(ends.near_read, answer.data(), answer.size()), "read");
    }
  });
  if (answer != frame) state.SkipWithError("the bytes are wrong");
}

void raw_round_trip(benchmark::State& state) {
  ping_pong(state, tcp_ends());
}
BENCHMARK(raw_round_trip)->ArgName("bytes")->Arg(64)->UseRealTime();

void pipe_round_trip(benchmark::State& state) {
  ping_pong(state, pipe_ends());
}
BENCHMARK(pipe_round_trip)->ArgName("bytes")->Arg(64)->UseRealTime();

void copy(benchmark::State& state) {
  const auto from = pattern(static_cast<std::size_t>(state.range(0)));
  std::vector<std::byte> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  if (to != from) state.SkipWithError("the bytes are wrong");
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(from.size()));
}
BENCHMARK(copy)->ArgName("bytes")->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace tributary::transport::bench
