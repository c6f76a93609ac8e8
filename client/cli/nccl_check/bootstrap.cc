#include "client/cli/nccl_check/bootstrap.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "client/cli/nccl_check/failure.h"
#include "client/cli/nccl_check/sockets.h"

namespace tributary::cli::nccl_check {
namespace {

using std::chrono::steady_clock;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses look_up(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  require(error == 0, "MASTER_ADDR " + host + ": " + gai_strerror(error));
  return Addresses(found);
}

void send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    require(sent > 0, "another rank of the check is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

void receive_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    require(got > 0, "another rank of the check is gone");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace

Bootstrap::Bootstrap(int rank, int ranks, const std::string& host, std::uint16_t port, std::chrono::seconds limit)
    : rank_(rank), ranks_(ranks) {
  rank == 0 ? gather_connections(host, port, limit) : connect_to_root(host, port, limit);
}

Bootstrap::~Bootstrap() {
  for (const int socket : sockets_) {
    if (socket >= 0) close(socket);
  }
}

void Bootstrap::gather_connections(const std::string& host, std::uint16_t port, std::chrono::seconds limit) {
  sockets_.assign(static_cast<std::size_t>(ranks_), -1);
  const Addresses at = look_up(host, port);
  const int listener = open_socket(at->ai_family);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = bind(listener, at->ai_addr, at->ai_addrlen) == 0 && listen(listener, ranks_) == 0;
  const std::string reason = std::strerror(errno);
  const auto deadline = steady_clock::now() + limit;
  for (int missing = ranks_ - 1; listens && missing > 0; --missing) {
    pollfd waiting{listener, POLLIN, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    if (poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) <= 0) break;
    const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    std::int32_t number = -1;
    receive_all(peer, std::as_writable_bytes(std::span(&number, 1)));
    require(number > 0 && number < ranks_ && sockets_[static_cast<std::size_t>(number)] < 0,
            "two processes say that they are rank " + std::to_string(number));
    sockets_[static_cast<std::size_t>(number)] = peer;
  }
  close(listener);
  require(listens, "cannot listen at " + host + ":" + std::to_string(port) + ": " + reason);
  for (int other = 1; other < ranks_; ++other) {
    require(sockets_[static_cast<std::size_t>(other)] >= 0, "rank " + std::to_string(other) + " did not come");
  }
}

void Bootstrap::connect_to_root(const std::string& host, std::uint16_t port, std::chrono::seconds limit) {
  const Addresses to = look_up(host, port);
  for (const auto deadline = steady_clock::now() + limit; sockets_.empty();) {
    const int one = open_socket(to->ai_family);
    if (connect(one, to->ai_addr, to->ai_addrlen) == 0) {
      sockets_.push_back(one);
      break;
    }
    close(one);
    require(steady_clock::now() < deadline, "rank 0 does not answer at " + host + ":" + std::to_string(port));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::int32_t number = rank_;
  send_all(sockets_[0], std::as_bytes(std::span(&number, 1)));
}

std::vector<std::byte> Bootstrap::all_gather(std::span<const std::byte> mine) {
  std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(ranks_));
  const auto part = [&](std::size_t rank) { return std::span(all).subspan(rank * mine.size(), mine.size()); };
  if (rank_ != 0) {
    send_all(sockets_[0], mine);
    receive_all(sockets_[0], all);
    return all;
  }
  std::memcpy(all.data(), mine.data(), mine.size());
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) receive_all(sockets_[rank], part(rank));
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) send_all(sockets_[rank], all);
  return all;
}

}  // namespace tributary::cli::nccl_check
