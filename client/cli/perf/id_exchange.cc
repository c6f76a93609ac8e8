#include "client/cli/perf/id_exchange.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "client/cli/perf/id_lines.h"
#include "client/cli/perf/id_socket.h"

namespace tributary::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kRetryPeriod{50};

/// Returns a line without its end; an empty text if no line comes in time.
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

std::string errno_text() {
  return std::strerror(errno);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

/// Tries every address of the name once; returns an invalid socket if no address answers.
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

}  // namespace

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
      why = "the process there closed the connection, or is not rank 0";
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
  // Link the file instead of renaming it: link() fails if the name exists.
  const int linked = link(draft.c_str(), path.c_str());
  const std::string reason = errno_text();
  unlink(draft.c_str());
  if (linked == 0) return {};
  return fail(Errc::bad_config, "the id file " + path + " cannot be made: " + reason +
                                    "; if it exists, an earlier run left it there: remove it first");
}

Result<IdBytes> read_id_file(const std::string& path, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (steady_clock::now() < deadline) {
    std::ifstream in(path);
    std::string line;
    if (in && std::getline(in, line)) {
      if (auto id = read_id(line)) return id;
      return fail(Errc::corrupt, path + " does not hold a unique id");
    }
    std::this_thread::sleep_for(kRetryPeriod);
  }
  return fail(Errc::timed_out, "rank 0 did not make the id file " + path + " within " +
                                   std::to_string(limit.count() / 1000) + " s; check that all hosts share this folder");
}

}  // namespace tributary::cli
