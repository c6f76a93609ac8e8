#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <thread>

#include "client/cli/nccl_check/link.h"
#include "client/cli/nccl_check/messages.h"
#include "client/cli/nccl_check/registered.h"
#include "client/cli/nccl_check/sockets.h"

namespace tributary::cli::nccl_check {
namespace {

using Clock = std::chrono::steady_clock;
using Buffer = std::vector<std::byte>;

constexpr std::size_t kInFlight = 8;
constexpr std::size_t kTotalBytes = std::size_t{256} << 20;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Posts requests by `post`, and tests them, until `count` requests have ended.
void run_requests(Session& session, int count, const std::function<void*()>& post) {
  std::deque<void*> flights;
  for (int posted = 0, ended = 0; ended < count;) {
    while (posted < count && flights.size() < kInFlight) {
      void* request = post();
      if (request == nullptr) break;
      flights.push_back(request);
      ++posted;
    }
    int done = 0, size = 0;
    require_success(session.net().test(flights.front(), &done, &size), "net test");
    if (done == 0) continue;
    flights.pop_front();
    ++ended;
  }
}

void send_many(Session& session, const Link& link, Registered& from, int count) {
  run_requests(session, count, [&] {
    void* request = nullptr;
    require_success(
        session.net().send(link.send_comm, from.bytes().data(), from.bytes().size(), 1, from.memory(), &request),
        "isend");
    return request;
  });
}

void receive_many(Session& session, const Link& link, Registered& to, int count) {
  run_requests(session, count, [&] {
    void* request = nullptr;
    require_success(
        session.net().receive(link.receive_comm, to.bytes().data(), to.bytes().size(), 1, to.memory(), &request),
        "irecv");
    return request;
  });
}

/// Sends messages from rank 0 to rank 1, and one word back. Returns the time that rank 0 measures.
double stream_seconds(Session& session, const Link& link, std::size_t bytes, int count) {
  const bool sends = session.rank() == 0;
  Registered buffer(session, sends ? link.send_comm : link.receive_comm, bytes);
  Registered word(session, sends ? link.receive_comm : link.send_comm, 8);
  const auto begin = Clock::now();
  if (sends) {
    send_many(session, link, buffer, count);
    receive_many(session, link, word, 1);
  } else {
    receive_many(session, link, buffer, count);
    send_many(session, link, word, 1);
  }
  return since(begin);
}

double round_trip_seconds(Session& session, const Link& link, int count) {
  Registered ping(session, link.send_comm, 8), pong(session, link.receive_comm, 8);
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (session.rank() == 0) send_many(session, link, ping, 1);
    receive_many(session, link, pong, 1);
    if (session.rank() != 0) send_many(session, link, ping, 1);
  }
  return since(begin) / count;
}

/// One socket between two ranks, which uses only system calls.
class PlainSocket {
 public:
  explicit PlainSocket(Session& session) {
    const int listener = open_socket(AF_INET);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    require(bind(listener, reinterpret_cast<sockaddr*>(&at), length) == 0 && listen(listener, 1) == 0,
            "the plain socket cannot listen");
    getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
    const auto all = session.bootstrap().all_gather_value(at);
    if (session.rank() == 0) {
      socket_ = accept(listener, nullptr, nullptr);
    } else if (session.rank() == 1) {
      socket_ = open_socket(AF_INET);
      require(connect(socket_, reinterpret_cast<const sockaddr*>(&all[0]), length) == 0,
              "the plain socket cannot connect");
    }
    close(listener);
    const int on = 1;
    if (socket_ >= 0) setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~PlainSocket() {
    if (socket_ >= 0) close(socket_);
  }
  PlainSocket(const PlainSocket&) = delete;
  PlainSocket& operator=(const PlainSocket&) = delete;

  void send_all(Buffer& buffer) const {
    for (std::size_t at = 0; at < buffer.size();) {
      const ssize_t sent = ::send(socket_, buffer.data() + at, buffer.size() - at, MSG_NOSIGNAL);
      require(sent > 0, "the plain socket broke");
      at += static_cast<std::size_t>(sent);
    }
  }
  // Waits in a loop without sleep, as NCCL's progress thread does.
  void receive_all(Buffer& buffer) const {
    for (std::size_t at = 0; at < buffer.size();) {
      const ssize_t got = ::recv(socket_, buffer.data() + at, buffer.size() - at, MSG_DONTWAIT);
      if (got < 0 && errno == EAGAIN) continue;
      require(got > 0, "the plain socket broke");
      at += static_cast<std::size_t>(got);
    }
  }

 private:
  int socket_ = -1;
};

double plain_seconds(Session& session, const PlainSocket& socket, std::size_t bytes, int count) {
  Buffer buffer(bytes), word(8);
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) session.rank() == 0 ? socket.send_all(buffer) : socket.receive_all(buffer);
  session.rank() == 0 ? socket.receive_all(word) : socket.send_all(word);
  return since(begin);
}

double plain_round_trip_seconds(Session& session, const PlainSocket& socket, int count) {
  Buffer word(8);
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    if (session.rank() == 0) socket.send_all(word);
    socket.receive_all(word);
    if (session.rank() != 0) socket.send_all(word);
  }
  return since(begin) / count;
}

}  // namespace

void measure_messages(Session& session) {
  if (session.ranks() < 2) return;
  auto links = make_links(session, 1);
  const PlainSocket plain(session);
  if (session.rank() < 2) {
    session.progress().run([&] {
      const auto at = std::ranges::find(links, 1 - session.rank(), &Link::peer);
      for (const std::size_t bytes :
           {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{512} << 10, std::size_t{4} << 20}) {
        const int count = static_cast<int>(std::min<std::size_t>(kTotalBytes / bytes, 20'000));
        const double ours = stream_seconds(session, *at, bytes, count);
        const double bare = plain_seconds(session, plain, bytes, count);
        if (session.rank() != 0) continue;
        const double total = static_cast<double>(bytes) * count / 1e9;
        std::printf("net messages of %8zu bytes: %6.2f GB/s; plain socket %6.2f GB/s\n", bytes, total / ours,
                    total / bare);
      }
      const double ours = round_trip_seconds(session, *at, 2'000);
      const double bare = plain_round_trip_seconds(session, plain, 2'000);
      if (session.rank() == 0) {
        std::printf("net round trip of 8 bytes: %.1f us; plain socket %.1f us\n", ours * 1e6, bare * 1e6);
      }
    });
  }
  session.bootstrap().barrier();
  close_links(session, links);
}

}  // namespace tributary::cli::nccl_check
