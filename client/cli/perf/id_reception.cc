// Distributes the unique id on rank 0. Strangers may connect, too. Connections stay in a waiting room, so that any
// number of silent strangers keeps no rank out; a rank whose connection was closed to make room asks again.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "client/cli/perf/id_exchange.h"
#include "client/cli/perf/id_lines.h"
#include "client/cli/perf/id_socket.h"
#include "tributary/protocol/waiting_room.h"

namespace tributary::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLineLimit{2000};
constexpr std::size_t kGuestsMax = 256;
constexpr int kAcceptedAtOnce = 64;  // most accepted guests before the earlier guests are read again

std::int64_t nanoseconds(steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

Source source_of(const sockaddr_storage& address) {
  std::array<std::byte, 16> bytes{};
  if (address.ss_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, bytes.size());
  } else {
    bytes[10] = bytes[11] = std::byte{0xFF};
    std::memcpy(bytes.data() + 12, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
  }
  return tributary::source_of(bytes);
}

Result<Socket> listen_on(std::uint16_t port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1, off = 0;
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  const sockaddr* address = reinterpret_cast<const sockaddr*>(&six);
  socklen_t bytes = sizeof six;
  if (!socket.valid()) {  // this system has no IPv6
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    address = reinterpret_cast<const sockaddr*>(&four);
    bytes = sizeof four;
  } else {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket.valid() && bind(socket.get(), address, bytes) == 0 && listen(socket.get(), 1024) == 0) return socket;
  return fail(Errc::bad_config, "rank 0 cannot listen on port " + std::to_string(port) +
                                    " to hand out the unique id: " + std::strerror(errno) +
                                    "; set MASTER_PORT to a free port, or use --id-file");
}

/// The reception of rank 0: it answers the other ranks.
class Reception {
 public:
  Reception(const IdBytes& id, const IdMeeting& meeting) : id_(id), meeting_(meeting), served_(meeting.ranks, false) {
    served_[0] = true;
  }

  Status run() {
    const auto listener = listen_on(meeting_.port);
    if (!listener) return std::unexpected(listener.error());
    const auto deadline = steady_clock::now() + meeting_.limit;
    while (served_count_ < meeting_.ranks) {
      const auto now = steady_clock::now();
      if (now >= deadline) return fail(Errc::timed_out, missing());
      while (const auto late = room_.late(nanoseconds(now))) leave(*late);
      wait(*listener, deadline);
      if (auto ok = listen_to_guests(); !ok) return ok;  // read all guests before one of them loses its place
      welcome(*listener);
    }
    return {};
  }

 private:
  struct Guest {
    Socket socket;
    std::string line;
  };

  void wait(const Socket& listener, steady_clock::time_point deadline) const {
    std::vector<pollfd> list{{listener.get(), POLLIN, 0}};
    for (const auto& [_, guest] : guests_) list.push_back({guest.socket.get(), POLLIN, 0});
    auto until = nanoseconds(deadline);
    if (const auto limit = room_.next_limit_ns()) until = std::min(until, *limit);
    const std::int64_t left = (until - nanoseconds(steady_clock::now())) / 1'000'000 + 1;
    poll(list.data(), list.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30)));
  }

  void welcome(const Socket& listener) {
    for (int i = 0; i < kAcceptedAtOnce; ++i) {
      sockaddr_storage from{};
      socklen_t bytes = sizeof from;
      Socket socket(accept4(listener.get(), reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) return;
      if (const auto makes_room = room_.makes_room()) leave(*makes_room);
      const WaitingRoom::Id id = next_guest_++;
      room_.enter(id, source_of(from), nanoseconds(steady_clock::now()));
      guests_.emplace(id, Guest{std::move(socket), {}});
    }
  }

  void leave(WaitingRoom::Id id) {
    room_.leave(id);
    guests_.erase(id);
  }

  Status listen_to_guests() {
    std::vector<WaitingRoom::Id> done;
    Status status;
    for (auto& [id, guest] : guests_) {
      const Heard heard = hear(guest);
      if (heard == Heard::not_yet) continue;
      done.push_back(id);
      if (heard == Heard::line) status = serve(guest.socket, guest.line);
      if (!status) break;
    }
    for (const WaitingRoom::Id id : done) leave(id);
    return status;
  }

  enum class Heard : std::uint8_t { not_yet, line, nothing };
  [[nodiscard]] static Heard hear(Guest& guest) {
    while (guest.line.size() < kLineBytesMax) {
      char c = 0;
      const ssize_t got = recv(guest.socket.get(), &c, 1, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Heard::not_yet;
      if (got <= 0) return Heard::nothing;
      if (c == '\n') return Heard::line;
      guest.line.push_back(c);
    }
    return Heard::nothing;
  }

  /// Answers a guest. A stranger gets no answer. A rank of another run gets a refusal, and this run ends.
  Status serve(const Socket& guest, const std::string& line) {
    const auto asked = read_question(line);
    if (!asked) return {};
    const auto& [rank, ranks, job] = *asked;
    if (ranks != meeting_.ranks || rank >= meeting_.ranks || job != meeting_.job) {
      const std::string reason = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " (job '" + job +
                                 "') asked rank 0 of " + std::to_string(meeting_.ranks) + " (job '" + meeting_.job +
                                 "') for the unique id; check whether two jobs use port " +
                                 std::to_string(meeting_.port);
      write_line(guest, refusal_line(reason));
      return fail(Errc::mismatch, reason);
    }
    if (!write_line(guest, to_line(id_))) return {};  // the rank will ask again
    if (!served_[rank]) ++served_count_;
    served_[rank] = true;
    return {};
  }

  [[nodiscard]] std::string missing() const {
    std::string text;
    std::uint32_t listed = 0;
    for (std::uint32_t rank = 0; rank < meeting_.ranks; ++rank) {
      if (served_[rank] || ++listed > 8) continue;
      text += (text.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (listed > 8) text += " and " + std::to_string(listed - 8) + " more";
    return "within " + std::to_string(meeting_.limit.count() / 1000) + " s nothing came from rank " + text +
           "; check that these ranks were started, and that they reach port " + std::to_string(meeting_.port) +
           " of rank 0's host";
  }

  const IdBytes& id_;
  const IdMeeting& meeting_;
  std::vector<bool> served_;
  std::uint32_t served_count_ = 1;
  WaitingRoom room_{kGuestsMax, std::chrono::nanoseconds(kLineLimit).count()};
  WaitingRoom::Id next_guest_ = 0;
  std::map<WaitingRoom::Id, Guest> guests_;
};

}  // namespace

Status hand_out_id(const IdBytes& id, const IdMeeting& meeting) {
  return Reception(id, meeting).run();
}

}  // namespace tributary::cli
