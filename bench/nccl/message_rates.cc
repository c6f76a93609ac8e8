// Measures how fast two net plugins move messages over one connection each, by turns:
//
//     nccl_message_rates MODE ROUNDS PLUGIN.so OTHER.so [SIZE...]
//
// The program uses the newest table of functions that both libraries have. Eight requests are under way, each with its
// own buffer of up to 4 MiB, like NCCL's steps. Like NCCL's progress thread, the program calls test() for the oldest
// request, and yields the processor if this request has not ended.
//
// MODE two: two processes, one for each end; the clock measures them. On a busy machine single turns differ widely, so
// turns are short and many, and the plugins go first alternately. The program prints the medians, and the upper tenth
// of the turns, in which other programs hardly used the machine.
// MODE two@NAME: the receiving process enters the network namespace NAME first (bench/nccl/shaped makes a pair).
// MODE one: one thread drives both ends. The program measures the processor time of the whole process, with helper
// threads; other processes hardly change this time. Its inverse is the greatest rate of a busy core.
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/nccl_check/failure.h"
#include "client/cli/nccl_check/library.h"

namespace tributary::cli::nccl_check {
namespace {

using Handle = std::array<std::byte, abi::kHandleBytes>;

constexpr std::size_t kInFlight = 8;
constexpr std::size_t kStepBytesMax = std::size_t{4} << 20;
constexpr std::size_t kBytesMax = std::size_t{64} << 20;
constexpr std::size_t kTurnBytes = std::size_t{24} << 20;
constexpr std::size_t kTurnMessages = 2'000;

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void quiet(abi::LogLevel, unsigned long, const char*, int, const char*, ...) {}

/// A plugin that was loaded and has listed its devices.
class Plugin {
 public:
  explicit Plugin(const std::string& path) : library_(path), net_(library_.net(kNewestVersion, &version_)) {
    require_success(net_->init(&context_, quiet), path + ": init");
    int devices = 0;
    require_success(net_->devices(&devices), "devices");
    require(devices > 0, path + " has no device: TRIBUTARY_IFNAME and NCCL_SOCKET_IFNAME choose");
  }
  [[nodiscard]] NetTable& net() { return *net_; }
  [[nodiscard]] void* context() { return context_; }

 private:
  Library library_;
  int version_ = 0;
  std::unique_ptr<NetTable> net_;
  void* context_ = nullptr;
};

/// One end of one connection.
class End {
 public:
  End(Plugin& plugin, bool sends) : net_(plugin.net()), context_(plugin.context()), sends_(sends) {}
  ~End() {
    if (comm_ != nullptr) sends_ ? net_.close_send(comm_) : net_.close_receive(comm_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  [[nodiscard]] Handle listen() {
    Handle handle{};
    require_success(net_.listen(context_, 0, handle.data(), &listening_), "listen");
    return handle;
  }
  /// True after the connection is made.
  [[nodiscard]] bool accept() {
    if (comm_ == nullptr) require_success(net_.accept(listening_, &comm_), "accept");
    return comm_ != nullptr;
  }
  [[nodiscard]] bool connect(Handle& handle) {
    if (comm_ == nullptr) require_success(net_.connect(context_, 0, handle.data(), &comm_), "connect");
    return comm_ != nullptr;
  }
  void make_buffers() {
    if (listening_ != nullptr) require_success(net_.close_listen(listening_), "closeListen");
    for (auto& buffer : buffers_) buffer.assign(kStepBytesMax, std::byte{1});
    large_.assign(kBytesMax, std::byte{1});
    for (std::size_t i = 0; i <= kInFlight; ++i) {
      auto& buffer = i < kInFlight ? buffers_[i] : large_;
      require_success(net_.register_memory(comm_, buffer.data(), buffer.size(), &memory_[i]), "regMr");
    }
  }

  /// Begins a series of messages; advance() drives it, and returns whether it has not ended yet.
  void begin(std::size_t bytes, std::size_t count) {
    bytes_ = bytes;
    count_ = count;
    posted_ = ended_ = 0;
  }
  bool advance() {
    if (ended_ == count_) return false;
    while (posted_ < count_ && flights_.size() < kInFlight) {
      void* const request = post();
      if (request == nullptr) break;
      flights_.push_back(request);
      ++posted_;
    }
    int done = 0, size = 0;
    require_success(net_.test(flights_.front(), &done, &size), "test");
    if (done != 0) {
      require(static_cast<std::size_t>(size) == bytes_, "a message arrived with another length");
      flights_.pop_front();
      ++ended_;
    } else {
      ::sched_yield();
    }
    return ended_ < count_;
  }

 private:
  [[nodiscard]] void* post() {
    const std::size_t at = bytes_ > kStepBytesMax ? kInFlight : posted_ % kInFlight;
    std::byte* const data = at == kInFlight ? large_.data() : buffers_[at].data();
    void* request = nullptr;
    require_success(sends_ ? net_.send(comm_, data, bytes_, 1, memory_[at], &request)
                           : net_.receive(comm_, data, bytes_, 1, memory_[at], &request),
                    sends_ ? "isend" : "irecv");
    return request;
  }

  NetTable& net_;
  void* const context_;
  const bool sends_;
  void* listening_ = nullptr;
  void* comm_ = nullptr;
  std::array<std::vector<std::byte>, kInFlight> buffers_;
  std::vector<std::byte> large_;
  std::array<void*, kInFlight + 1> memory_{};
  std::size_t bytes_ = 0, count_ = 0, posted_ = 0, ended_ = 0;
  std::deque<void*> flights_;
};

std::size_t messages_of(std::size_t bytes) {
  return std::clamp<std::size_t>(kTurnBytes / bytes, 2, kTurnMessages);
}
double gigabytes(std::size_t bytes) {
  return static_cast<double>(bytes * messages_of(bytes)) / 1e9;
}

/// One plugin's connection in one of the modes.
class Line {
 public:
  virtual ~Line() = default;
  /// Returns the rate in gigabytes a second.
  virtual double turn(std::size_t bytes) = 0;
};

class LineInOneThread final : public Line {
 public:
  explicit LineInOneThread(Plugin& plugin) : sends_(plugin, true), receives_(plugin, false) {
    Handle handle = receives_.listen();
    for (bool stands = false; !stands;) {
      const bool connected = sends_.connect(handle), accepted = receives_.accept();
      stands = connected && accepted;
    }
    sends_.make_buffers();
    receives_.make_buffers();
  }
  double turn(std::size_t bytes) override {
    const double begin = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    sends_.begin(bytes, messages_of(bytes));
    receives_.begin(bytes, messages_of(bytes));
    for (bool busy = true; busy;) {
      const bool here = sends_.advance(), there = receives_.advance();
      busy = here || there;
    }
    return gigabytes(bytes) / (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begin);
  }

 private:
  End sends_, receives_;
};

/// Sends a number to the other process.
class Pipe {
 public:
  explicit Pipe(int socket) : socket_(socket) {}
  template <class Value>
  void put(const Value& value) const {
    require(::write(socket_, &value, sizeof value) == static_cast<ssize_t>(sizeof value), "the other process is gone");
  }
  template <class Value>
  [[nodiscard]] Value get() const {
    Value value{};
    require(::recv(socket_, &value, sizeof value, MSG_WAITALL) == static_cast<ssize_t>(sizeof value),
            "the other process is gone");
    return value;
  }

 private:
  int socket_;
};

class LineBetweenProcesses final : public Line {
 public:
  LineBetweenProcesses(Plugin& plugin, bool sends, const Pipe& pipe) : sends_(sends), pipe_(pipe), end_(plugin, sends) {
    Handle handle{};
    if (!sends) pipe.put(end_.listen());
    if (sends) handle = pipe.get<Handle>();
    while (sends ? !end_.connect(handle) : !end_.accept()) {
    }
    end_.make_buffers();
  }
  /// Measures at the sender, until the receiver says that it has all messages.
  double turn(std::size_t bytes) override {
    pipe_.put('g');
    (void)pipe_.get<char>();
    const double begin = seconds_of(CLOCK_MONOTONIC);
    end_.begin(bytes, messages_of(bytes));
    while (end_.advance()) {
    }
    if (sends_) {
      (void)pipe_.get<char>();
    } else {
      pipe_.put('d');
    }
    return gigabytes(bytes) / (seconds_of(CLOCK_MONOTONIC) - begin);
  }

 private:
  const bool sends_;
  const Pipe pipe_;
  End end_;
};

double quantile(std::vector<double> values, std::size_t tenths) {
  std::ranges::sort(values);
  return values[values.size() * tenths / 10];
}

struct Rates {
  std::vector<double> ours, theirs, ratio;
};

Rates measure(Line& ours, Line& theirs, std::size_t bytes, int rounds) {
  Rates rates;
  for (int round = -2; round < rounds; ++round) {
    double a = 0, b = 0;
    if (round % 2 == 0) a = ours.turn(bytes);
    b = theirs.turn(bytes);
    if (round % 2 != 0) a = ours.turn(bytes);
    if (round < 0) continue;  // the first rounds warm up
    rates.ours.push_back(a);
    rates.theirs.push_back(b);
    rates.ratio.push_back(a / b);
  }
  return rates;
}

void print(std::size_t bytes, const Rates& rates) {
  const double best = quantile(rates.ours, 9), best_theirs = quantile(rates.theirs, 9);
  std::printf("%10zu | %8.4g %8.4g | %8.4g %8.4g | %6.3f %6.3f\n", bytes, quantile(rates.ours, 5), best,
              quantile(rates.theirs, 5), best_theirs, quantile(rates.ratio, 5), best / best_theirs);
  std::fflush(stdout);
}

void compare(Line& ours, Line& theirs, const std::vector<std::size_t>& sizes, int rounds, bool prints) {
  if (prints) std::printf("     bytes | GB/s, upper tenth | the other's       | ratio, upper tenth\n");
  for (const std::size_t bytes : sizes) {
    const Rates rates = measure(ours, theirs, bytes, rounds);
    if (prints) print(bytes, rates);
  }
}

void go_into_namespace(const std::string& name) {
  const int space = ::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  require(space >= 0 && ::setns(space, CLONE_NEWNET) == 0, "cannot go into the network namespace " + name);
  ::close(space);
}

int compare_processes(const char* ours, const char* theirs, const std::vector<std::size_t>& sizes, int rounds,
                      const std::string& receivers_namespace) {
  std::array<int, 2> sockets{};
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) == 0, "the system gives no pair of sockets");
  const pid_t child = ::fork();
  require(child >= 0, "cannot fork");
  const bool sends = child != 0;
  ::close(sockets[sends ? 1 : 0]);
  if (!sends && !receivers_namespace.empty()) go_into_namespace(receivers_namespace);
  const Pipe pipe(sockets[sends ? 0 : 1]);
  {
    Plugin first(ours), second(theirs);
    LineBetweenProcesses line(first, sends, pipe), other(second, sends, pipe);
    compare(line, other, sizes, rounds, sends);
  }
  if (!sends) ::_exit(0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

int run(const std::vector<std::string>& words) {
  const bool apart = words.size() > 1 && words[1].starts_with("two@");
  if (words.size() < 5 || (words[1] != "one" && words[1] != "two" && !apart)) {
    std::fprintf(stderr, "usage: nccl_message_rates one|two|two@NAMESPACE ROUNDS PLUGIN.so OTHER.so [SIZE...]\n");
    return 2;
  }
  const int rounds = std::max(1, std::atoi(words[2].c_str()));
  std::vector<std::size_t> sizes;
  for (std::size_t i = 5; i < words.size(); ++i) sizes.push_back(std::strtoul(words[i].c_str(), nullptr, 10));
  for (std::size_t bytes = 1024; words.size() == 5 && bytes <= kBytesMax; bytes *= 4) sizes.push_back(bytes);
  require(std::ranges::all_of(sizes, [](std::size_t bytes) { return bytes > 0 && bytes <= kBytesMax; }),
          "sizes are from 1 byte to 64 MiB");
  if (words[1] != "one") {
    const std::string receivers_namespace = apart ? words[1].substr(4) : std::string();
    return compare_processes(words[3].c_str(), words[4].c_str(), sizes, rounds, receivers_namespace);
  }
  Plugin first(words[3]), second(words[4]);
  LineInOneThread line(first), other(second);
  compare(line, other, sizes, rounds, true);
  return 0;
}

}  // namespace
}  // namespace tributary::cli::nccl_check

int main(int argc, char** argv) {
  try {
    return tributary::cli::nccl_check::run({argv, argv + argc});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "nccl_message_rates: %s\n", problem.what());
    return 1;
  }
}
