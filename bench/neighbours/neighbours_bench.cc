// Two tenants on the workers of one aggregator: one sends small operations, one after the other; the other floods. The
// program measures how long the small operations take: alone, in one share of the turns together with the flood, and in
// a separate share.
//
//   neighbours_bench [--workers 1] [--seconds 2] [--rounds 3] [--connections 16] [--segment 262144] [--window 16]
//                    [--flood data|asks|silence|two] [--transport tcp|udp] [--slow 0]
//
// two: two tenants flood, with different weights, and send no small operations; the program prints the bytes of each,
// and in how many rounds of turns a tenant had to wait for its share. The workers compute exact sums, so that a worker,
// not the ranks' core, is what the tenants share. slow: a worker sleeps this many times as long as it works, as a
// slower processor would need more time for the same work.
//
// data: the flooding tenant's ranks reduce large segments, as fast as their window allows. asks: they send nothing but
// questions. silence: they contribute and read no results. Every kind of run comes once in each round; the figures are
// medians over rounds. Worker i runs on core i, and all ranks on the last core, where the ranks of the small operations
// have precedence.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "aggregator/worker/worker.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/numerics.h"
#include "tributary/transport/tcp.h"
#include "tributary/transport/udp.h"

namespace tributary::bench {
namespace {

using namespace std::chrono_literals;
using transport::Channel;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kNow = 1'000'000;

/// Puts this thread on a core, with this precedence over other threads (a nice value).
void run_on_core(unsigned core, int nice) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core % std::max(1U, std::thread::hardware_concurrency()), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), nice);
}

std::unique_ptr<transport::Transport> make_transport(bool udp) {
  if (udp) return std::make_unique<transport::UdpTransport>(transport::UdpSettings{});
  return std::make_unique<transport::TcpTransport>();
}

/// The time for which this thread has used a processor.
std::chrono::nanoseconds thread_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// A worker on its own thread and port.
class WorkerThread {
 public:
  WorkerThread(unsigned core, const TokenVerifier& verifier, bool udp, int slow = 0)
      : transport_(make_transport(udp)), worker_(*transport_, verifier, budget_, {.name = "agg"}, [] { return kNow; }) {
    auto listener = transport_->listen({"127.0.0.1", 0}, worker_);
    if (!listener) throw std::runtime_error(listener.error().message);
    listener_ = std::move(*listener);
    thread_ = std::jthread([this, core, slow](const std::stop_token& stop) {
      run_on_core(core, -15);
      for (auto next = transport_->now(); !stop.stop_requested();) {
        const auto before = thread_time();
        transport_->poll(std::max(transport::Duration::zero(), next - transport_->now()));
        if (slow > 0) std::this_thread::sleep_for(slow * (thread_time() - before));
        if (transport_->now() < next) continue;
        worker_.tick(transport_->now());
        share_waits_.store(worker_.metrics().share_waits, std::memory_order_relaxed);
        next = transport_->now() + 50ms;
      }
    });
  }
  /// The number of rounds in which a tenant had to wait for its share.
  [[nodiscard]] std::uint64_t share_waits() const noexcept { return share_waits_.load(std::memory_order_relaxed); }
  [[nodiscard]] Endpoint at() const { return listener_->local(); }

 private:
  std::unique_ptr<transport::Transport> transport_;
  aggregator::MemoryBudget budget_{4ULL << 30};
  aggregator::Worker worker_;
  std::unique_ptr<transport::Listener> listener_;
  std::atomic<std::uint64_t> share_waits_{0};
  std::jthread thread_;
};

struct Party {
  std::string tenant;
  std::uint8_t weight = 1;
  std::uint64_t group = 0;
  std::uint16_t children = 2;
  std::uint16_t window = 1;
  std::uint32_t segment_bytes = 4096;
  ReduceOp op = ReduceOp::sum;
};

enum class Flood : std::uint8_t { data, asks, silence };

/// One rank of a party.
class Rank final : public transport::ChannelHandler {
 public:
  Rank(transport::Transport& transport, const Endpoint& to, const SigningKey& key, const Party& party,
       std::uint16_t child)
      : party_(party), input_(party.segment_bytes / sizeof(float), 1.0F), result_(input_.size()) {
    const TokenClaims claims{.job = "bench",
                             .aggregator = "agg",
                             .group = party.group,
                             .epoch = 1,
                             .child = child,
                             .children = party.children,
                             .window = party.window,
                             .segment_bytes = party.segment_bytes,
                             .rank = child,
                             .ranks = party.children,
                             .root = true,
                             .expires_at = kNow + 120,
                             .tenant = party.tenant,
                             .weight = party.weight};
    channel_ = transport.connect(to, *this, 5s);
    FrameHeader header;
    header.type = FrameType::join;
    channel_->send_copy(header, encode(TokenChain{key.sign(claims).value()}));
  }
  void contribute() {
    FrameHeader header = header_of(FrameType::contribution);
    header.sequence = header.operation = sent_++;
    header.flags = frame_flags::kWantsResult;
    header.set_signature(
        {Collective::all_reduce, DType::float32, party_.op, 0, static_cast<std::uint32_t>(input_.size())});
    if (!channel_->send(header, std::as_bytes(std::span(input_)), 0)) throw std::runtime_error("the queue is full");
  }
  void ask() { static_cast<void>(channel_->send(header_of(FrameType::ask), {}, 0)); }
  void fill_window() {
    while (sent_ < received_ + party_.window) contribute();
  }
  void go_silent() { silent_ = true; }

  transport::Placement on_header(Channel&, const FrameHeader& header) override {
    if (silent_ && header.type == FrameType::result) return transport::NotYet{};
    if (header.payload_bytes > party_.segment_bytes) throw std::runtime_error("a frame is too long");
    return transport::Accept{std::as_writable_bytes(std::span(result_)).first(header.payload_bytes)};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    if (header.type == FrameType::ready) ready = true;
    if (header.type == FrameType::refuse)
      throw std::runtime_error("refused: " +
                               std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
    if (header.type != FrameType::result) return;
    if (result_.front() != party_.children || result_.back() != party_.children)
      throw std::runtime_error("the sum is wrong");
    ++received_;
    if (on_result) on_result();
  }
  void on_closed(Channel&, const Error& error) override { throw std::runtime_error("closed: " + error.message); }

  bool ready = false;
  std::function<void()> on_result;
  [[nodiscard]] std::uint64_t received() const { return received_; }

 private:
  [[nodiscard]] FrameHeader header_of(FrameType type) const {
    FrameHeader header;
    header.type = type;
    header.group = party_.group;
    header.epoch = 1;
    return header;
  }

  const Party party_;
  std::vector<float> input_, result_;
  std::uint64_t sent_ = 0, received_ = 0;
  bool silent_ = false;
  std::unique_ptr<Channel> channel_;
};

struct Ranks {
  explicit Ranks(bool udp) : made(make_transport(udp)) {}
  std::unique_ptr<transport::Transport> made;
  transport::Transport& transport = *made;
  std::vector<std::unique_ptr<Rank>> all;

  void join(const Endpoint& to, const SigningKey& key, const Party& party) {
    for (std::uint16_t child = 0; child < party.children; ++child) {
      all.push_back(std::make_unique<Rank>(transport, to, key, party, child));
    }
  }
  void wait_ready() {
    while (!std::ranges::all_of(all, [](const auto& rank) { return rank->ready; })) transport.poll(1ms);
  }
};

/// The flooding tenant, on a thread of its own.
class Flooder {
 public:
  Flooder(const std::vector<std::unique_ptr<WorkerThread>>& workers, const SigningKey& key, const Party& party,
          Flood kind, bool udp)
      : party_(party) {
    std::atomic<bool> begun{false};
    thread_ = std::jthread([&, kind, udp](const std::stop_token& stop) {
      run_on_core(static_cast<unsigned>(workers.size()), -5);
      Ranks ranks(udp);
      for (std::size_t lane = 0; lane < workers.size(); ++lane) {
        Party of_lane = party;
        of_lane.group += lane;
        ranks.join(workers[lane]->at(), key, of_lane);
      }
      ranks.wait_ready();
      for (const auto& rank : ranks.all) {
        if (kind == Flood::data) rank->on_result = [&rank = *rank] { rank.fill_window(); };
        if (kind == Flood::silence) rank->go_silent();
        if (kind != Flood::asks) rank->fill_window();
      }
      begun = true;
      while (!stop.stop_requested()) {
        if (kind == Flood::asks) {
          for (const auto& rank : ranks.all) {
            for (int i = 0; i < 64; ++i) rank->ask();
          }
        }
        ranks.transport.poll(1ms);
        std::uint64_t segments = 0;
        for (const auto& rank : ranks.all) segments += rank->received();
        segments_.store(segments, std::memory_order_relaxed);
      }
    });
    while (!begun) std::this_thread::sleep_for(1ms);
  }
  /// Bytes of contributions that were summed so far.
  [[nodiscard]] double bytes() const {
    return static_cast<double>(segments_.load(std::memory_order_relaxed)) * party_.segment_bytes;
  }

 private:
  const Party party_;
  std::atomic<std::uint64_t> segments_{0};
  std::jthread thread_;
};

struct Figures {
  double p50_us = 0, p99_us = 0, per_second = 0, flood_gigabytes = 0;
};

struct Options {
  std::size_t workers = 1;
  double seconds = 2;
  int rounds = 3;
  Party flood{.group = 1000, .children = 16, .window = 16, .segment_bytes = 262144};
  Flood kind = Flood::data;
  bool two_floods = false;
  bool udp = false;
  int slow = 0;
};

/// The flood's tenant, or none; and the weight of the small operations' tenant.
struct Case {
  const char* name;
  const char* flood_tenant;
  std::uint8_t weight = 1;
};
constexpr Case kCases[] = {{"alone", nullptr},
                           {"beside a flood, in one share", "small"},
                           {"beside a flood, own share", "large"},
                           {"beside a flood, own share of weight 4", "large", 4}};

Figures measure(const Options& options, const Case& what) {
  const SigningKey key = std::move(*SigningKey::generate());
  const TokenVerifier verifier = std::move(*TokenVerifier::create(key.public_key()));
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (unsigned i = 0; i < options.workers; ++i)
    workers.push_back(std::make_unique<WorkerThread>(i, verifier, options.udp, options.slow));
  std::unique_ptr<Flooder> flooder;
  if (what.flood_tenant != nullptr) {
    Party flood = options.flood;
    flood.tenant = what.flood_tenant;
    flooder = std::make_unique<Flooder>(workers, key, flood, options.kind, options.udp);
  }
  run_on_core(static_cast<unsigned>(options.workers), -15);
  Ranks small(options.udp);
  small.join(workers.front()->at(), key,
             {.tenant = "small", .weight = what.weight, .group = 1, .children = 2, .window = 1, .segment_bytes = 4096});
  small.wait_ready();
  std::vector<double> took;
  const double flood_before = flooder ? flooder->bytes() : 0;
  const auto begun = Clock::now();
  const auto end = begun + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  for (std::uint64_t done = 0; Clock::now() < end; ++done) {
    const auto start = Clock::now();
    for (const auto& rank : small.all) rank->contribute();
    while (small.all[0]->received() <= done || small.all[1]->received() <= done) small.transport.poll(100ms);
    took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  }
  const std::chrono::duration<double> elapsed = Clock::now() - begun;
  Figures figures;
  if (flooder) figures.flood_gigabytes = (flooder->bytes() - flood_before) / elapsed.count() / 1e9;
  std::ranges::sort(took);
  figures.per_second = static_cast<double>(took.size()) / elapsed.count();
  figures.p50_us = took[took.size() / 2];
  figures.p99_us = took[took.size() * 99 / 100];
  return figures;
}

double median_of(const std::vector<Figures>& all, double Figures::* member) {
  std::vector<double> values;
  for (const Figures& figures : all) values.push_back(figures.*member);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Options options_of(const std::vector<std::string>& words) {
  Options options;
  if (words.size() % 2 != 0) throw std::runtime_error("every option has a value");
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string& name = words[i];
    const std::string& value = words[i + 1];
    if (name == "--workers")
      options.workers = std::stoul(value);
    else if (name == "--seconds")
      options.seconds = std::stod(value);
    else if (name == "--rounds")
      options.rounds = std::stoi(value);
    else if (name == "--connections")
      options.flood.children = static_cast<std::uint16_t>(std::stoul(value));
    else if (name == "--segment")
      options.flood.segment_bytes = static_cast<std::uint32_t>(std::stoul(value));
    else if (name == "--window")
      options.flood.window = static_cast<std::uint16_t>(std::stoul(value));
    else if (name == "--transport")
      options.udp = value == "udp";
    else if (name == "--slow")
      options.slow = std::stoi(value);
    else if (name == "--flood" && value == "two")
      options.two_floods = true;
    else if (name == "--flood")
      options.kind = value == "asks" ? Flood::asks : value == "silence" ? Flood::silence : Flood::data;
    else
      throw std::runtime_error("there is no option " + name);
  }
  return options;
}

/// The figures of two tenants that flood at once.
struct Floods {
  double first = 0, second = 0;  // gigabytes that were summed in a second
  double waits = 0;              // rounds in a second in which a tenant waited for its share, each tenant for itself
};

Floods measure_two(const Options& options, std::array<std::uint8_t, 2> weights) {
  const SigningKey key = std::move(*SigningKey::generate());
  const TokenVerifier verifier = std::move(*TokenVerifier::create(key.public_key()));
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (unsigned i = 0; i < options.workers; ++i)
    workers.push_back(std::make_unique<WorkerThread>(i, verifier, options.udp, options.slow));
  std::vector<std::unique_ptr<Flooder>> floods;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    Party party = options.flood;
    party.tenant = i == 0 ? "first" : "second";
    party.weight = weights.at(i);
    party.group += 1000 * i;
    party.op = kExactSum;
    floods.push_back(std::make_unique<Flooder>(workers, key, party, Flood::data, options.udp));
  }
  std::this_thread::sleep_for(200ms);
  const auto waits = [&] {
    std::uint64_t sum = 0;
    for (const auto& worker : workers) sum += worker->share_waits();
    return static_cast<double>(sum);
  };
  const std::array<double, 3> before = {floods[0]->bytes(), floods[1]->bytes(), waits()};
  const auto begun = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const std::chrono::duration<double> elapsed = Clock::now() - begun;
  return {.first = (floods[0]->bytes() - before[0]) / elapsed.count() / 1e9,
          .second = (floods[1]->bytes() - before[1]) / elapsed.count() / 1e9,
          .waits = (waits() - before[2]) / elapsed.count()};
}

int run_two(const Options& options) {
  constexpr std::array<std::array<std::uint8_t, 2>, 5> kWeights = {{{1, 1}, {2, 1}, {4, 1}, {8, 1}, {1, 4}}};
  std::printf("%zu worker(s); two floods: %u connections each, segments of %u bytes, window %u\n", options.workers,
              options.flood.children, options.flood.segment_bytes, options.flood.window);
  std::printf("| weights | first GB/s in | second GB/s in | ratio | waits/s |\n|---|---:|---:|---:|---:|\n");
  std::map<std::size_t, std::vector<Floods>> all;
  for (int round = 0; round < options.rounds; ++round)
    for (std::size_t i = 0; i < kWeights.size(); ++i) all[i].push_back(measure_two(options, kWeights.at(i)));
  for (std::size_t i = 0; i < kWeights.size(); ++i) {
    auto& list = all.at(i);
    std::ranges::sort(list, {}, [](const Floods& both) { return both.first / both.second; });
    const Floods& both = list[list.size() / 2];
    std::printf("| %u : %u | %.3f | %.3f | %.2f | %.0f |\n", kWeights.at(i)[0], kWeights.at(i)[1], both.first,
                both.second, both.first / both.second, both.waits);
  }
  return 0;
}

int run(const Options& options) {
  if (options.two_floods) return run_two(options);
  std::map<const Case*, std::vector<Figures>> all;
  for (int round = 0; round < options.rounds; ++round) {
    for (const Case& what : kCases) all[&what].push_back(measure(options, what));
  }
  std::printf("%zu worker(s); flood: %u connections for each, segments of %u bytes, window %u\n", options.workers,
              options.flood.children, options.flood.segment_bytes, options.flood.window);
  std::printf(
      "| small operations of 2 ranks, 4 KiB | p50 us | p99 us | per second | flood GB/s in "
      "|\n|---|---:|---:|---:|---:|\n");
  for (const Case& what : kCases) {
    const auto& list = all.at(&what);
    std::printf("| %s | %.0f | %.0f | %.0f | %.2f |\n", what.name, median_of(list, &Figures::p50_us),
                median_of(list, &Figures::p99_us), median_of(list, &Figures::per_second),
                median_of(list, &Figures::flood_gigabytes));
  }
  return 0;
}

}  // namespace
}  // namespace tributary::bench

int main(int count, char** words) {
  try {
    return tributary::bench::run(tributary::bench::options_of({words + 1, words + count}));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "neighbours_bench: %s\n", error.what());
    return 1;
  }
}
