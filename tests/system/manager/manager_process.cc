#include "tests/system/manager/manager_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tributary::manager {

using Clock = std::chrono::steady_clock;

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "tributary-system-XXXXXX").string();
  path_ = ::mkdtemp(name.data());
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(file(name), std::ios::binary) << text;
  return file(name);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

ManagerProcess::ManagerProcess(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::string error_name = (std::filesystem::temp_directory_path() / "tributary-stderr-XXXXXX").string();
  const int error = ::mkostemp(error_name.data(), O_CLOEXEC);
  error_path_ = error_name;
  int ends[2];
  if (error < 0 || ::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::vector<std::string> words{TRIBUTARY_MANAGER_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables = environment;
  for (char** it = environ; *it != nullptr; ++it) variables.emplace_back(*it);
  std::vector<char*> envp;
  for (std::string& it : variables) envp.push_back(it.data());
  envp.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(error, STDERR_FILENO);
    ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  ::close(error);
  output_ = ends[0];
}

ManagerProcess::~ManagerProcess() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_);
  ::unlink(error_path_.c_str());
}

std::unique_ptr<ManagerProcess> ManagerProcess::serving(const std::string& state_directory,
                                                        std::vector<std::string> more) {
  std::vector<std::string> arguments{"--listen", "127.0.0.1:0", "--state-dir", state_directory};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto process = std::make_unique<ManagerProcess>(arguments);
  process->wait_ready();
  return process;
}

nlohmann::json ManagerProcess::wait_ready() {
  while (!read_so_far_.contains('\n')) {
    char bytes[4096];
    const ssize_t got = ::read(output_, bytes, sizeof bytes);
    if (got <= 0) throw std::runtime_error("the manager did not start: " + read_file(error_path_));
    read_so_far_.append(bytes, static_cast<std::size_t>(got));
  }
  ready_ = nlohmann::json::parse(read_so_far_.substr(0, read_so_far_.find('\n')));
  port_ = ready_.at("port");
  return ready_;
}

void ManagerProcess::signal(int number) const {
  ::kill(pid_, number);
}

Ended ManagerProcess::wait() {
  Ended ended;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(output_, bytes, sizeof bytes)) > 0;)
    read_so_far_.append(bytes, static_cast<std::size_t>(got));
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ended.standard_output = read_so_far_;
  ended.standard_error = read_file(error_path_);
  return ended;
}

manager_client::ManagerClient ManagerProcess::client(const std::string& token) const {
  auto made = manager_client::ManagerClient::create({.url = url(), .token = token});
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

manager_client::ManagerClient ManagerProcess::for_aggregators() const {
  return client(read_file(ready_.at("aggregator_token_file")));
}

manager_client::ManagerClient ManagerProcess::for_jobs() const {
  return client(read_file(ready_.at("job_token_file")));
}

Ended run_manager(const std::vector<std::string>& arguments) {
  return ManagerProcess(arguments).wait();
}

Connection::Connection(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
  }
}

Connection::~Connection() {
  ::close(fd_);
}

bool Connection::send(const std::string& bytes) const {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t got = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (got <= 0) return false;
    sent += static_cast<std::size_t>(got);
  }
  return true;
}

bool Connection::more(std::chrono::milliseconds limit) {
  pollfd waiting{fd_, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(limit.count())) <= 0) return false;
  char bytes[65536];
  const ssize_t got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

std::string Connection::answer(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const auto left = [&] { return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()); };
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (left().count() <= 0 || !more(left())) return "";
  }
  end += 4;
  const std::size_t field = buffer_.find("Content-Length: ");
  if (field < end) end += std::stoul(buffer_.substr(field + 16));
  while (buffer_.size() < end) {
    if (left().count() <= 0 || !more(left())) return "";
  }
  const std::string whole = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return whole;
}

bool Connection::closes_within(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd waiting{fd_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
    char bytes[65536];
    if (::recv(fd_, bytes, sizeof bytes, 0) <= 0) return true;
  }
}

}  // namespace tributary::manager
