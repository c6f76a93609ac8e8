#include "tests/system/chaos/silent_flood.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace tributary::chaos {
namespace {

/// Returns a text such as "socket:[12345]" for each socket.
std::set<std::string> sockets_of(const std::vector<pid_t>& processes) {
  std::set<std::string> sockets;
  for (const pid_t process : processes) {
    std::error_code error;
    const std::filesystem::directory_iterator end;
    std::filesystem::directory_iterator at("/proc/" + std::to_string(process) + "/fd", error);
    for (; !error && at != end; at.increment(error)) {
      std::error_code gone;
      const std::string link = std::filesystem::read_symlink(at->path(), gone).string();
      if (link.starts_with("socket:[")) sockets.insert(link);
    }
  }
  return sockets;
}

/// Reads /proc/net/tcp: the second column is address:port in hex, the fourth the state, the tenth the inode.
std::set<std::uint16_t> listening_ports(const std::vector<pid_t>& processes) {
  constexpr const char* kListens = "0A";
  const std::set<std::string> sockets = sockets_of(processes);
  std::set<std::uint16_t> ports;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream in(line);
      std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      in >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      if (state != kListens || !sockets.contains("socket:[" + inode + "]")) continue;
      ports.insert(static_cast<std::uint16_t>(std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16)));
    }
  }
  return ports;
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS) return fd;
  ::close(fd);
  return -1;
}

// Reads all bytes that the listener sends to a stranger; otherwise this thread would not see the end of the connection.
bool closed(int fd) {
  std::array<char, 4096> said;
  ssize_t got = 0;
  while ((got = ::recv(fd, said.data(), said.size(), MSG_DONTWAIT)) > 0) {
  }
  return got == 0 || (errno != EAGAIN && errno != EINTR);
}

}  // namespace

SilentFlood::SilentFlood(std::vector<pid_t> processes, std::size_t connections)
    : processes_(std::move(processes)), connections_(connections), thread_([this] { run(); }) {}

SilentFlood::~SilentFlood() {
  stop_ = true;
  thread_.join();
}

void SilentFlood::run() {
  while (!stop_) {
    find_ports();
    std::size_t full = 0;
    for (auto& [port, connections] : ports_) {
      fill(port, connections);
      full += connections.size() == connections_ ? 1U : 0U;
    }
    ports_full_ = full;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (auto& [port, connections] : ports_) {
    for (const int fd : connections) ::close(fd);
  }
}

void SilentFlood::find_ports() {
  for (const std::uint16_t port : listening_ports(processes_)) ports_.try_emplace(port);
}

void SilentFlood::fill(std::uint16_t port, std::vector<int>& connections) {
  displaced_ += std::erase_if(connections, [](int fd) {
    if (!closed(fd)) return false;
    ::close(fd);
    return true;
  });
  while (connections.size() < connections_) {
    const int fd = connect_to(port);
    if (fd < 0) return;  // the port is closed, or this process has no descriptor left
    connections.push_back(fd);
  }
}

}  // namespace tributary::chaos
