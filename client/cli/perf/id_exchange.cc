#include "client/cli/perf/id_exchange.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/cli/perf/id_lines.h"

namespace tributary::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kLineBytesMax = 512;
constexpr milliseconds kLineLimit{2000};
constexpr milliseconds kRetryPeriod{50};

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& from) noexcept : descriptor_(std::exchange(from.descriptor_, -1)) {}
  Socket& operator=(Socket&& from) noexcept {
    std::swap(descriptor_, from.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] bool valid() const noexcept { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

bool wait_for(const Socket& socket, short events, steady_clock::time_point deadline) {
  pollfd one{socket.get(), events, 0};
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  return left > 0 && poll(&one, 1, static_cast<int>(std::min<std::int64_t>(left, 1 << 30))) > 0;
}

/// Without its end; empty when none comes in time.
std::string read_line(const Socket& socket, steady_clock::time_point deadline) {
  std::string line;
  while (line.size() < kLineBytesMax && wait_for(socket, POLLIN, deadline)) {
    char c = 0;
    const ssize_t got = recv(socket.get(), &c, 1, 0);
    if (got <= 0) return {};
    if (c == '\n') return line;
    line.push_back(c);
  }
  return {};
}

bool write_line(const Socket& socket, const std::string& line) {
  const std::string text = line + "\n";
  return send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::string errno_text() {
  return std::strerror(errno);
}

Result<Socket> listen_on(std::uint16_t port) {
  Socket socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1, off = 0;
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  const sockaddr* address = reinterpret_cast<const sockaddr*>(&six);
  socklen_t bytes = sizeof six;
  if (!socket.valid()) {  // a system without IPv6
    socket = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    address = reinterpret_cast<const sockaddr*>(&four);
    bytes = sizeof four;
  } else {
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (socket.valid() && bind(socket.get(), address, bytes) == 0 && listen(socket.get(), 1024) == 0) return socket;
  return fail(Errc::bad_config, "rank 0 cannot listen on port " + std::to_string(port) +
                                    " to hand out the unique id: " + errno_text() +
                                    "; set MASTER_PORT to a free one, or use --id-file");
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// One attempt at every address of the name; none: not valid.
Socket connect_once(const IdMeeting& meeting, steady_clock::time_point deadline, std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  const int found = getaddrinfo(meeting.host.c_str(), std::to_string(meeting.port).c_str(), &hints, &raw);
  if (found != 0) {
    why = gai_strerror(found);
    return Socket();
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(raw);
  for (const addrinfo* one = raw; one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) continue;
    if (connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) return socket;
    const bool under_way = errno == EINPROGRESS && wait_for(socket, POLLOUT, deadline);
    int error = errno;
    socklen_t bytes = sizeof error;
    if (under_way) getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (under_way && error == 0) return socket;
    why = std::strerror(error);
  }
  return Socket();
}

/// Rank 0's answers to the others.
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
      if (!wait_for(*listener, POLLIN, deadline)) return fail(Errc::timed_out, missing());
      const Socket guest(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!guest.valid()) continue;
      if (auto ok = serve(guest, read_line(guest, std::min(deadline, steady_clock::now() + kLineLimit))); !ok)
        return ok;
    }
    return {};
  }

 private:
  /// Strangers get no answer; a rank that does not belong here gets one, and the run ends.
  Status serve(const Socket& guest, const std::string& line) {
    const auto asked = read_question(line);
    if (!asked) return {};
    const auto& [rank, ranks, job] = *asked;
    if (ranks != meeting_.ranks || rank >= meeting_.ranks || job != meeting_.job) {
      const std::string reason = "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " (job '" + job +
                                 "') asked rank 0 of " + std::to_string(meeting_.ranks) + " (job '" + meeting_.job +
                                 "') for the unique id; do two jobs use port " + std::to_string(meeting_.port) + "?";
      write_line(guest, refusal_line(reason));
      return fail(Errc::mismatch, reason);
    }
    if (!write_line(guest, to_line(id_))) return {};  // it will ask again
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
    return "within " + std::to_string(meeting_.limit.count() / 1000) + " s no word came from rank " + text +
           ": were they started, and do they reach port " + std::to_string(meeting_.port) + " of rank 0's host?";
  }

  const IdBytes& id_;
  const IdMeeting& meeting_;
  std::vector<bool> served_;
  std::uint32_t served_count_ = 1;
};

}  // namespace

Status hand_out_id(const IdBytes& id, const IdMeeting& meeting) {
  return Reception(id, meeting).run();
}

Result<IdBytes> fetch_id(const IdMeeting& meeting) {
  const auto deadline = steady_clock::now() + meeting.limit;
  const std::string question = to_line({.rank = meeting.rank, .ranks = meeting.ranks, .job = meeting.job});
  std::string why = "no answer";
  while (steady_clock::now() < deadline) {
    const Socket socket = connect_once(meeting, deadline, why);
    if (socket.valid() && write_line(socket, question)) {
      const std::string answer = read_line(socket, deadline);
      if (is_id(answer)) return read_id(answer);
      if (const auto reason = read_refusal(answer)) return fail(Errc::mismatch, *reason);
      why = "it closed the connection, or is something else";
    }
    std::this_thread::sleep_for(kRetryPeriod);
  }
  return fail(Errc::unreachable, "rank 0 did not hand out the unique id at " + meeting.host + ":" +
                                     std::to_string(meeting.port) + " within " +
                                     std::to_string(meeting.limit.count() / 1000) + " s (" + why +
                                     "); check MASTER_ADDR and MASTER_PORT, or use --id-file");
}

Status write_id_file(const IdBytes& id, const std::string& path) {
  const std::string draft = path + ".new";
  {
    std::ofstream out(draft, std::ios::trunc);
    out << to_line(id) << "\n";
    if (!out.flush()) return fail(Errc::bad_config, draft + " cannot be written: " + errno_text());
  }
  // A link, not a rename: it fails where the name is taken.
  const int linked = link(draft.c_str(), path.c_str());
  const std::string reason = errno_text();
  unlink(draft.c_str());
  if (linked == 0) return {};
  return fail(Errc::bad_config, "the id file " + path + " cannot be made: " + reason +
                                    "; if it exists, an earlier run has left it: remove it first");
}

Result<IdBytes> read_id_file(const std::string& path, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (steady_clock::now() < deadline) {
    std::ifstream in(path);
    std::string line;
    if (in && std::getline(in, line)) {
      if (auto id = read_id(line)) return id;
      return fail(Errc::corrupt, path + " holds something else than a unique id");
    }
    std::this_thread::sleep_for(kRetryPeriod);
  }
  return fail(Errc::timed_out, "rank 0 did not make the id file " + path + " within " +
                                   std::to_string(limit.count() / 1000) + " s: do all hosts share this folder?");
}

}  // namespace tributary::cli
