#include "tests/system/replicas/etcd_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <thread>

#include <nlohmann/json.hpp>

#include "client/cli/free_port/free_port.h"
#include "tree-manager/store/etcd/etcd_client.h"

namespace tributary::manager {
namespace {

constexpr const char* kProgram = "/usr/bin/etcd";
constexpr std::chrono::seconds kStartLimit{30};

/// Returns different ports at which no process listens.
std::vector<std::uint16_t> free_ports(std::size_t count) {
  std::set<std::uint16_t> ports;
  while (ports.size() < count) {
    const auto port = cli::free_port();
    if (!port) throw std::runtime_error(port.error().message);
    ports.insert(*port);
  }
  return {ports.begin(), ports.end()};
}

int start(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  std::vector<std::string> copies = words;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int pid = ::fork();
  if (pid == 0) {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::execv(kProgram, arguments.data());
    ::_exit(127);
  }
  return pid;
}

}  // namespace

bool has_etcd() {
  return ::access(kProgram, X_OK) == 0;
}

EtcdProcesses::EtcdProcesses(int members, const EtcdWishes& wishes) {
  const auto count = static_cast<std::size_t>(members);
  const auto ports = free_ports(2 * count);
  const auto url = [](std::uint16_t port) { return "http://127.0.0.1:" + std::to_string(port); };
  const bool secure = !wishes.tls.empty();
  const auto client_url = [&](std::uint16_t port) { return secure ? "https" + url(port).substr(4) : url(port); };
  std::vector<std::string> more = wishes.more;
  if (secure) {
    for (const std::string& word :
         {std::string("--cert-file"), wishes.tls.cert, std::string("--key-file"), wishes.tls.key,
          std::string("--client-cert-auth"), std::string("--trusted-ca-file"), wishes.tls.ca})
      more.push_back(word);
  }
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    all += (i == 0 ? "" : ",") + ("m" + std::to_string(i)) + "=" + url(ports[count + i]);
    endpoints_.push_back(client_url(ports[i]));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "m" + std::to_string(i);
    const std::string client = client_url(ports[i]);
    const std::string peer = url(ports[count + i]);
    const std::string data = wishes.data.empty() ? folder_.file(name) : wishes.data + "/" + name;
    std::vector<std::string> words{kProgram, "--name",
                                   name,     "--data-dir",
                                   data,     "--listen-client-urls",
                                   client,   "--advertise-client-urls",
                                   client,   "--listen-peer-urls",
                                   peer,     "--initial-advertise-peer-urls",
                                   peer,     "--initial-cluster",
                                   all,      "--initial-cluster-state",
                                   "new"};
    words.insert(words.end(), more.begin(), more.end());
    words_.push_back(words);
    pids_.push_back(start(words, folder_.file(name + ".log")));
  }
  const auto client = EtcdClient::create({.endpoints = endpoints_, .tls = wishes.client});
  const auto answer = (*client)->call("/v3/kv/range", {{"key", (*client)->key("any")}}, kStartLimit);
  if (!answer) throw std::runtime_error(answer.error().message + "\n" + read_file(folder_.file("m0.log")));
}

EtcdProcesses::~EtcdProcesses() {
  for (const int pid : pids_) {
    if (pid <= 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

std::string EtcdProcesses::list() const {
  std::string all;
  for (const std::string& endpoint : endpoints_) all += (all.empty() ? "" : ",") + endpoint;
  return all;
}

void EtcdProcesses::wait_end(std::size_t member) {
  if (pids_.at(member) > 0) ::waitpid(pids_[member], nullptr, 0);
  pids_[member] = 0;
}

void EtcdProcesses::restart(std::size_t member) {
  wait_end(member);
  pids_.at(member) = start(words_.at(member), folder_.file("m" + std::to_string(member) + ".log"));
}

void EtcdProcesses::signal(std::size_t member, int number) const {
  ::kill(pids_.at(member), number);
}

}  // namespace tributary::manager
