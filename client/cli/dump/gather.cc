#include "client/cli/dump/gather.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tributary/transport/shared_memory.h"

namespace tributary::cli {
namespace {

using Clock = std::chrono::steady_clock;
using transport::OwnedDescriptor;

constexpr auto kLimit = std::chrono::seconds(2);
constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;
constexpr std::string_view kQuestion = "dump json\n";

struct Conversation {
  std::string path;
  OwnedDescriptor socket;
  std::string answer;
  std::string trouble;  // the reason why there is no answer; empty: none so far
};

Conversation begin(const std::string& path) {
  Conversation c{.path = path, .socket = {}, .answer = {}, .trouble = {}};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    c.trouble = "its path is too long";
    return c;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  c.socket = OwnedDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool asked = c.socket.is_open() &&
                     ::connect(c.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                     ::send(c.socket.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) ==
                         static_cast<ssize_t>(kQuestion.size());
  if (asked) return c;
  c.trouble = errno == ECONNREFUSED ? "its process has ended" : std::strerror(errno);
  c.socket.reset();
  return c;
}

/// Takes what has come. Closes the connection at its end.
void take(Conversation& c) {
  std::array<char, 65536> bytes{};
  const ssize_t got = ::recv(c.socket.get(), bytes.data(), bytes.size(), 0);
  if (got > 0 && c.answer.size() < kAnswerBytesMax) {
    c.answer.append(bytes.data(), static_cast<std::size_t>(got));
    return;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) c.trouble = "its answer is too long";
  if (got < 0) c.trouble = std::strerror(errno);
  c.socket.reset();
}

void converse(std::vector<Conversation>& all) {
  const auto end = Clock::now() + kLimit;
  while (true) {
    std::vector<pollfd> waits;
    for (const Conversation& c : all) {
      if (c.socket.is_open()) waits.push_back({.fd = c.socket.get(), .events = POLLIN, .revents = 0});
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (waits.empty() || left <= 0) break;
    static_cast<void>(::poll(waits.data(), waits.size(), static_cast<int>(left)));
    for (const pollfd& wait : waits) {
      if (wait.revents == 0) continue;
      take(*std::ranges::find(all, wait.fd, [](const Conversation& c) { return c.socket.get(); }));
    }
  }
  for (Conversation& c : all) {
    if (c.socket.is_open()) c.trouble = "it has not answered within 2 s";
  }
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

Result<Gathered> gather(const std::string& folder) {
  std::error_code failed;
  std::filesystem::directory_iterator entries(folder, failed);
  if (failed) return fail(Errc::io, folder + ": " + failed.message());
  Gathered gathered;
  std::vector<Conversation> ports;
  const auto note = [&](const std::string& path, const Status& added) {
    if (!added) gathered.silent.push_back(path + ": " + added.error().message);
  };
  for (const auto& entry : entries) {
    const std::string path = entry.path().string();
    if (path.ends_with(".json") && entry.is_regular_file(failed))
      note(path, add_document(gathered.groups, file_text(path)));
    if (path.ends_with(".sock")) ports.push_back(begin(path));
  }
  converse(ports);
  for (const Conversation& port : ports) {
    note(port.path, port.trouble.empty() ? add_document(gathered.groups, port.answer) : fail(Errc::io, port.trouble));
  }
  return gathered;
}

}  // namespace tributary::cli
