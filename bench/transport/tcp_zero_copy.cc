// Finds out whether MSG_ZEROCOPY saves time on a path: sends the same bytes over one TCP connection by send() and by
// send(MSG_ZEROCOPY), by turns. The system reports afterwards whether it has copied nevertheless, as it always does if
// the receiver is on this machine.
//
//   tcp_zero_copy [BYTES_OF_A_SEND [MIB]]             both ends here, over the loopback
//   tcp_zero_copy BYTES MIB listen PORT               the receiving end, in one namespace or host
//   tcp_zero_copy BYTES MIB ADDRESS PORT              the sending end, in another namespace or host
#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kRounds = 5;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_THREAD, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Counts the kernel's reports about sends without copies.
struct Notices {
  std::uint64_t done = 0;
  std::uint64_t copied = 0;
};

void read_notices(int socket, Notices& notices) {
  while (true) {
    std::array<char, 256> control{};
    msghdr message{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      const auto* error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(c));
      if (error->ee_origin != SO_EE_ORIGIN_ZEROCOPY) continue;
      const std::uint64_t count = error->ee_data - error->ee_info + 1;
      notices.done += count;
      if ((error->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) notices.copied += count;
    }
  }
}

void receive_all(int socket) {
  std::vector<std::byte> into(1U << 20U);
  while (::recv(socket, into.data(), into.size(), 0) > 0) {
  }
}

struct Figure {
  double gigabytes_per_second;
  double processor_seconds_per_gigabyte;
};

Figure send_all(int socket, std::span<const std::byte> from, std::size_t total, int flags, Notices& notices) {
  const Clock::time_point started = Clock::now();
  const double processor = processor_seconds();
  const std::uint64_t noted = notices.done;
  std::uint64_t sends = 0;
  for (std::size_t sent = 0; sent < total;) {
    std::size_t offset = 0;
    while (offset < from.size()) {
      const ssize_t wrote = ::send(socket, from.data() + offset, from.size() - offset, flags);
      if (wrote < 0 && errno == ENOBUFS) {  // too many notices are waiting
        read_notices(socket, notices);
        continue;
      }
      if (wrote < 0) fail("send");
      offset += static_cast<std::size_t>(wrote);
      ++sends;
    }
    sent += from.size();
    if (flags != 0) read_notices(socket, notices);
  }
  while (flags != 0 && notices.done - noted < sends) read_notices(socket, notices);  // so the memory is free
  const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
  const double gigabytes = static_cast<double>(total) / 1e9;
  return {gigabytes / seconds, (processor_seconds() - processor) / gigabytes};
}

void send_by_turns(int socket, std::size_t bytes, std::size_t total) {
  const int on = 1;
  if (::setsockopt(socket, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0) fail("SO_ZEROCOPY");
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::vector<std::byte> from(bytes, std::byte{1});
  std::array<std::vector<double>, 2> rates, costs;
  Notices notices;
  for (int round = 0; round < kRounds; ++round) {
    for (const std::size_t way : {0U, 1U}) {
      const Figure figure = send_all(socket, from, total, way == 0 ? 0 : MSG_ZEROCOPY, notices);
      rates[way].push_back(figure.gigabytes_per_second);
      costs[way].push_back(figure.processor_seconds_per_gigabyte);
    }
  }
  const auto median = [](std::vector<double>& of) {
    std::ranges::sort(of);
    return of[of.size() / 2];
  };
  const double plain = median(rates[0]);
  const double without = median(rates[1]);
  std::printf("%zu bytes a send, medians of %d turns each\n", bytes, kRounds);
  std::printf("  copied        %6.2f GB/s  %5.2f processor seconds of the sender per GB\n", plain, median(costs[0]));
  std::printf(
      "  MSG_ZEROCOPY  %6.2f GB/s  %5.2f  (%.2f times as fast); the system copied %.0f %% of them all the same\n",
      without, median(costs[1]), without / plain,
      100.0 * static_cast<double>(notices.copied) / static_cast<double>(std::max<std::uint64_t>(notices.done, 1)));
}

sockaddr_in address(const char* text, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (::inet_pton(AF_INET, text, &at.sin_addr) != 1) throw std::invalid_argument(std::string("no address: ") + text);
  return at;
}

int listen_at(const char* text, std::uint16_t& port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) fail("socket");
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at = address(text, port);
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(listener, 1) != 0)
    fail("listen");
  socklen_t length = sizeof at;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &length);
  port = ntohs(at.sin_port);
  return listener;
}

void send_to(const char* text, std::uint16_t port, std::size_t bytes, std::size_t total) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) fail("socket");
  const sockaddr_in to = address(text, port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fail("connect");
  send_by_turns(socket, bytes, total);
  ::close(socket);
}

int run(std::span<char*> arguments) {
  const auto number = [&](std::size_t at, long otherwise) {
    return arguments.size() > at ? std::atol(arguments[at]) : otherwise;
  };
  const auto bytes = static_cast<std::size_t>(number(1, 65536));
  const auto total = static_cast<std::size_t>(number(2, 512)) << 20U;
  const std::string where = arguments.size() > 3 ? arguments[3] : "";
  auto port = static_cast<std::uint16_t>(number(4, 0));
  if (bytes == 0 || total == 0 || arguments.size() > 5 || arguments.size() == 4) {
    std::fprintf(stderr, "usage: tcp_zero_copy [BYTES [MIB [listen|ADDRESS PORT]]]\n");
    return 64;
  }
  if (!where.empty() && where != "listen") {
    send_to(where.c_str(), port, bytes, total);
    return 0;
  }
  const int listener = listen_at(where.empty() ? "127.0.0.1" : "0.0.0.0", port);
  std::thread receiver([&] { receive_all(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)); });
  if (where.empty()) send_to("127.0.0.1", port, bytes, total);
  receiver.join();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv, static_cast<std::size_t>(argc)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tcp_zero_copy: %s\n", error.what());
    return 1;
  }
}
