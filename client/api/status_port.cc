#include "client/api/status_port.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "client/api/flight_report.h"
#include "client/api/fork_guard.h"
#include "client/api/rank_figures.h"
#include "client/api/rank_traces.h"
#include "tributary/transport/blocked_signals.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client {
namespace {

using transport::OwnedDescriptor;

constexpr int kQueue = 16;
constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};  // for a client that does not send or read
constexpr int kPauseMs = 100;
constexpr std::size_t kLineBytesMax = 64;
constexpr std::size_t kStaleMax = 256;  // sockets of ended processes that one start removes

std::unexpected<Error> no_port(const std::string& why) {
  return fail(Errc::io, "no status port: " + why);
}

std::string system_error() {
  return std::strerror(errno);
}

/// Makes the folder, or checks that no other user can put a socket into it.
Status prepare_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return no_port(folder + ": " + system_error());
  struct stat found{};
  if (::lstat(folder.c_str(), &found) != 0) return no_port(folder + ": " + system_error());
  if (!S_ISDIR(found.st_mode)) return no_port(folder + " is no folder; set TRIBUTARY_STATUS_DIR to another one");
  if (found.st_uid != ::geteuid() || (found.st_mode & 0022) != 0) {
    return no_port("other users can write to " + folder + "; set TRIBUTARY_STATUS_DIR to a folder of your own");
  }
  return {};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return no_port("the path " + path + " is longer than " + std::to_string(sizeof address.sun_path - 1) +
                   " bytes; set TRIBUTARY_STATUS_DIR to a shorter one");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

bool is_stale(const std::string& path) {
  const auto address = address_of(path);
  const OwnedDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return address && socket.is_open() &&
         ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 &&
         errno == ECONNREFUSED;
}

/// Removes the sockets of processes that were killed.
void remove_stale(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  if (!entries) return;
  std::size_t seen = 0;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string path = folder + "/" + entry->d_name;
    if (!path.ends_with(".sock")) continue;
    if (++seen > kStaleMax) return;
    if (is_stale(path)) ::unlink(path.c_str());
  }
}

/// Opens the socket under another name first: a name that ends with .sock always answers, or its process is gone.
Result<OwnedDescriptor> listen_at(const std::string& path) {
  const std::string made = path + ".new";
  const auto address = address_of(made);
  if (!address) return std::unexpected(address.error());
  OwnedDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket.is_open() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 &&
      ::chmod(made.c_str(), 0600) == 0 && ::listen(socket.get(), kQueue) == 0 &&
      ::rename(made.c_str(), path.c_str()) == 0) {
    return socket;
  }
  const std::string why = system_error();
  ::unlink(made.c_str());
  return no_port(path + ": " + why);
}

bool may_ask(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

/// Returns the client's line; empty if none comes in time, in one piece.
std::string read_line(int socket) {
  std::array<char, kLineBytesMax> bytes{};
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
  const std::string_view line(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return std::string(line.substr(0, std::min(line.find('\n'), line.size())));
}

void send_all(int socket, std::string_view text) {
  const auto end = transport::Clock::now() + std::chrono::seconds(2 * kPatience.tv_sec);
  while (!text.empty() && transport::Clock::now() < end) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// Answers "GROUP NUMBER"; no value: the text has another form.
std::optional<std::string> late_answer(std::string_view text, FlightRecords records) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(blank + 1);
  std::uint64_t number = 0;
  const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (wrong != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return late_text(records, text.substr(0, blank), number);
}

std::string answer_to(const std::string& line, const std::vector<std::shared_ptr<const FlightRecord>>& records) {
  constexpr std::string_view kLate = "late ";
  if (line == "status") return status_text(records);
  if (line == "dump") return flight_text(records);
  if (line == "dump json") return flight_json(records);
  if (line == "calls json") return calls_json(records);
  if (line.starts_with(kLate)) {
    if (auto answer = late_answer(std::string_view(line).substr(kLate.size()), records)) return std::move(*answer);
  }
  return "unknown line; known lines: status, dump, dump json, calls json, metrics json, late GROUP NUMBER, "
         "trace begin MILLISECONDS, trace json\n";
}

}  // namespace

class ServedRecord::Port {
 public:
  /// Returns the port of this process, and opens it if it is not open.
  [[nodiscard]] static Result<std::shared_ptr<Port>> of_process(const std::string& folder);
  Port(OwnedDescriptor socket, OwnedDescriptor stop, std::string path);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port();

  void add(std::shared_ptr<FlightRecord> record) {
    const std::lock_guard lock(mutex_);
    figures_.began(*record);
    records_.push_back(std::move(record));
  }
  void remove(const std::shared_ptr<FlightRecord>& record) {
    const std::lock_guard lock(mutex_);
    figures_.ended(*record);
    std::erase(records_, record);
  }

 private:
  void run();
  void serve(int socket);

  const OwnedDescriptor socket_;
  const OwnedDescriptor stop_;
  const std::string path_;
  const std::uint64_t process_ = fork_generation();
  std::mutex mutex_;
  std::vector<std::shared_ptr<FlightRecord>> records_;  // guarded by mutex_
  RankFigures figures_;                                 // guarded by mutex_
  RankTraces traces_;                                   // used by thread_
  std::thread thread_;                                  // last member: it uses the other members
};

// A forked child has its parent's port without its thread, and opens one of its own.
Result<std::shared_ptr<ServedRecord::Port>> ServedRecord::Port::of_process(const std::string& folder) {
  static std::mutex mutex;
  static auto* const present = new std::weak_ptr<Port>;  // never destroyed: threads may use it while the process ends
  const std::lock_guard lock(mutex);
  if (auto port = present->lock(); port && port->process_ == fork_generation()) return port;
  if (auto ok = prepare_folder(folder); !ok) return std::unexpected(ok.error());
  remove_stale(folder);
  const auto moment = transport::Clock::now().time_since_epoch().count();  // containers may share the folder and pids
  std::string path = folder + "/" + std::to_string(::getpid()) + "-" + std::to_string(moment) + ".sock";
  auto socket = listen_at(path);
  if (!socket) return std::unexpected(socket.error());
  OwnedDescriptor stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.is_open()) {
    const std::string why = system_error();
    ::unlink(path.c_str());
    return no_port(why);
  }
  auto port = std::make_shared<Port>(std::move(*socket), std::move(stop), std::move(path));
  *present = port;
  return port;
}

ServedRecord::Port::Port(OwnedDescriptor socket, OwnedDescriptor stop, std::string path)
    : socket_(std::move(socket)), stop_(std::move(stop)), path_(std::move(path)) {
  const transport::BlockedSignals blocked;  // the new thread inherits them
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "tributary-port");
}

ServedRecord::Port::~Port() {
  if (process_ != fork_generation()) {  // the parent has the thread, and needs the socket
    thread_.detach();
    return;
  }
  ::eventfd_write(stop_.get(), 1);
  thread_.join();
  ::unlink(path_.c_str());
}

void ServedRecord::Port::run() {
  std::array<pollfd, 2> waits{pollfd{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                              pollfd{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return;
    if (waits[1].revents != 0) return;
    const OwnedDescriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.is_open()) {
      // If no descriptor is left, the client goes on waiting, and a new attempt now would only spin.
      ::poll(&waits[1], 1, kPauseMs);
      continue;
    }
    try {
      serve(client.get());
    } catch (const std::exception&) {  // no memory for an answer: this client gets none
    }
  }
}

void ServedRecord::Port::serve(int socket) {
  if (!may_ask(socket)) return;
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  const std::string line = read_line(socket);
  if (line.empty()) return;
  std::vector<std::shared_ptr<FlightRecord>> records;
  RankFigures figures;
  {
    const std::lock_guard lock(mutex_);
    records = records_;
    figures = figures_;
  }
  if (line == "metrics json") return send_all(socket, figures.json({records.begin(), records.end()}));
  if (const auto trace = traces_.answer(line, records)) return send_all(socket, *trace);
  send_all(socket, answer_to(line, {records.begin(), records.end()}));
}

Result<std::unique_ptr<ServedRecord>> ServedRecord::serve(const std::string& folder,
                                                          std::shared_ptr<FlightRecord> record) {
  auto port = Port::of_process(folder);
  if (!port) return std::unexpected(port.error());
  return std::unique_ptr<ServedRecord>(new ServedRecord(std::move(*port), std::move(record)));
}

ServedRecord::ServedRecord(std::shared_ptr<Port> port, std::shared_ptr<FlightRecord> record)
    : port_(std::move(port)), record_(std::move(record)) {
  port_->add(record_);
}

ServedRecord::~ServedRecord() {
  port_->remove(record_);
}

}  // namespace tributary::client
