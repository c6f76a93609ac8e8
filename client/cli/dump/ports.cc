#include "client/cli/dump/ports.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "service-kit/status_folder.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::cli {
namespace {

using Clock = std::chrono::steady_clock;
using transport::OwnedDescriptor;

constexpr std::size_t kAnswerBytesMax = std::size_t{64} << 20;

struct Conversation {
  std::string path;
  OwnedDescriptor socket;
  std::string answer;
  std::string trouble;  // the reason why there is no answer; empty: none so far
};

Conversation begin(const std::string& path, std::string_view line) {
  Conversation c{.path = path, .socket = {}, .answer = {}, .trouble = {}};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    c.trouble = "its path is too long";
    return c;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  c.socket = OwnedDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool asked =
      c.socket.is_open() &&
      ::connect(c.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::send(c.socket.get(), line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
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

void converse(std::vector<Conversation>& all, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
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
    if (c.socket.is_open()) c.trouble = "it has not answered within " + std::to_string(limit.count() / 1000) + " s";
  }
}

}  // namespace

std::string status_folder(const std::string& given) {
  if (!given.empty()) return given;
  const char* const named = std::getenv(service::kStatusFolderVariable);
  const std::string folder = named == nullptr ? "" : named;
  return folder.empty() || folder == "auto" || folder == "off" ? service::default_status_folder() : folder;
}

Result<std::vector<std::string>> ports_in(const std::string& folder) {
  std::error_code failed;
  const std::filesystem::directory_iterator entries(folder, failed);
  if (failed) return fail(Errc::io, folder + ": " + failed.message());
  std::vector<std::string> ports;
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".sock") ports.push_back(entry.path().string());
  }
  std::ranges::sort(ports);
  return ports;
}

std::vector<PortAnswer> ask_ports(const std::vector<std::string>& ports, std::string_view line,
                                  std::chrono::milliseconds limit) {
  std::vector<Conversation> all;
  for (const std::string& port : ports) all.push_back(begin(port, line));
  converse(all, limit);
  std::vector<PortAnswer> answers;
  for (Conversation& c : all)
    answers.push_back({.port = std::move(c.path), .text = std::move(c.answer), .trouble = std::move(c.trouble)});
  return answers;
}

}  // namespace tributary::cli
