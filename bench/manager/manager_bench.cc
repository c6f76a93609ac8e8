// Measures the price of a group of many ranks for the manager and rank 0: bytes and time of each answer, over the
// manager's handlers and its real store, without the network.
//
//     manager_bench [RANKS...]
//     manager_bench --yardstick RANKS    the times to make one grant, and to read and write JSON
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <spdlog/spdlog.h>

#include "tests/unit/manager/fabrics.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tree-manager/api/api.h"
#include "tributary/protocol/token_page.h"

namespace {

using namespace tributary;
using namespace tributary::manager;
using nlohmann::json;

constexpr int kRanksPerHost = 8;
constexpr int kHostsPerLeaf = 8;
constexpr int kSpines = 16;
constexpr int kLanes = 4;
constexpr const char* kToken = "token";

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

/// One answer: its body, and the time it took.
struct Answer {
  std::string body;
  double milliseconds = 0;
};

Answer ask(Api& api, const std::string& method, const std::string& path, const std::string& query,
           const std::string& body) {
  const auto start = std::chrono::steady_clock::now();
  HttpReply reply = api.handle({.method = method,
                                .path = path,
                                .query = query,
                                .authorization = std::string("Bearer ") + kToken,
                                .remote_address = ""},
                               body);
  const Answer answer{std::move(reply.body), milliseconds_since(start)};
  if (reply.status == 200) return answer;
  std::fprintf(stderr, "%s %s: %u %s\n", method.c_str(), path.c_str(), reply.status, answer.body.c_str());
  std::exit(1);
}

void enlist(Cluster& cluster, const std::string& host, std::uint16_t port) {
  if (cluster.register_aggregator({.name = "on-" + host,
                                   .host = host,
                                   .data = {"10.0.0.1", port},
                                   .http = {"10.0.0.1", 7472},
                                   .memory_bytes = 1ULL << 38})) {
    return;
  }
  std::exit(1);
}

/// A manager over its real store, with an aggregator at each switch of a leaf-spine fabric for this many ranks.
class Fabric {
 public:
  explicit Fabric(int ranks) {
    const int leaves = (ranks + kRanksPerHost * kHostsPerLeaf - 1) / (kRanksPerHost * kHostsPerLeaf);
    ClusterSettings settings;
    settings.group_lease = std::chrono::seconds(3600);
    cluster_ = Cluster::open(settings, *store_, key_, clock_,
                             *parse_topology(leaf_spine_yaml(leaves, kHostsPerLeaf, kSpines), "bench"))
                   .value();
    for (int leaf = 0; leaf < leaves; ++leaf) {
      enlist(*cluster_, "agg-leaf-" + std::to_string(leaf), static_cast<std::uint16_t>(1000 + leaf));
    }
    for (int spine = 0; spine < kSpines; ++spine) {
      enlist(*cluster_, "agg-spine-" + std::to_string(spine), static_cast<std::uint16_t>(9000 + spine));
    }
    api_ = std::make_unique<Api>(*cluster_, ApiSettings{.aggregator_token = "other", .job_token = kToken});
  }
  [[nodiscard]] Api& api() { return *api_; }

 private:
  const TemporaryFolder folder_;
  const std::unique_ptr<Store> store_ = open_sqlite({.path = folder_.file("manager.db")}).value();
  const SigningKey key_ = SigningKey::generate().value();
  const SystemClock clock_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Api> api_;
};

json request_of(int ranks, int number) {
  json request{
      {"job", "bench"}, {"lanes", kLanes}, {"request_id", "bench-" + std::to_string(number)}, {"ranks", json::array()}};
  for (int rank = 0; rank < ranks; ++rank) request["ranks"].push_back("node-" + std::to_string(rank / kRanksPerHost));
  return request;
}

/// Fails unless the manager planned all lanes.
json grant_of(const Answer& granted, int ranks) {
  json grant = json::parse(granted.body);
  if (grant["lanes"].size() == kLanes) return grant;
  std::fprintf(stderr, "%d ranks: %s\n", ranks, grant["reason"].dump().c_str());
  std::exit(1);
}

/// Prints the median time of a grant, and the median time to read and write the same JSON 20 times, which uses no code
/// of Tributary. The two measurements take turns, each time with a new group.
void compare_with_yardstick(int ranks) {
  constexpr int kRounds = 9;
  constexpr int kCopies = 20;
  Fabric fabric(ranks);
  std::vector<double> grants, yardsticks;
  for (int round = 0; round < kRounds; ++round) {
    const std::string body = request_of(ranks, round).dump();
    const Answer granted = ask(fabric.api(), "POST", "/v1/groups", "", body);
    grant_of(granted, ranks);
    grants.push_back(granted.milliseconds);
    const auto start = std::chrono::steady_clock::now();
    for (int copy = 0; copy < kCopies; ++copy) {
      if (json::parse(body).dump() != body) std::exit(1);
    }
    yardsticks.push_back(milliseconds_since(start));
  }
  std::ranges::sort(grants);
  std::ranges::sort(yardsticks);
  std::printf("%d ranks: grant %.3f ms, yardstick %.3f ms\n", ranks, grants[kRounds / 2], yardsticks[kRounds / 2]);
}

void measure(int ranks) {
  Fabric fabric(ranks);
  Api& api = fabric.api();
  const json request = request_of(ranks, 0);

  const Answer granted = ask(api, "POST", "/v1/groups", "", request.dump());
  const json grant = grant_of(granted, ranks);
  const std::string path = "/v1/groups/" + grant["group"].dump();
  std::size_t page_bytes = 0, page_bytes_max = 0, chains = 0;
  double page_milliseconds = 0, page_milliseconds_max = 0, read_milliseconds = 0;
  for (int first = 0; first < ranks; first += static_cast<int>(kTokenPageRanksMax)) {
    const int count = std::min(static_cast<int>(kTokenPageRanksMax), ranks - first);
    const Answer page = ask(api, "GET", path + "/tokens",
                            "epoch=1&from=" + std::to_string(first) + "&count=" + std::to_string(count), "");
    page_bytes += page.body.size();
    page_bytes_max = std::max(page_bytes_max, page.body.size());
    page_milliseconds += page.milliseconds;
    page_milliseconds_max = std::max(page_milliseconds_max, page.milliseconds);
    const auto start = std::chrono::steady_clock::now();
    const auto read = token_page_from_json(json::parse(page.body)).value();
    read_milliseconds += milliseconds_since(start);
    for (const auto& entries : read.lanes) {
      for (const LaneEntry& entry : entries) chains += entry.tokens.size();
    }
  }
  const json proof{{"record", grant["record"]}, {"ranks", request["ranks"]}};
  const Answer adopted = ask(api, "PUT", path + "/lease", "", proof.dump());
  const Answer again = ask(api, "POST", "/v1/groups", "", request.dump());
  const Answer renewed = ask(api, "PUT", path + "/lease", "", "");
  constexpr double kMega = 1e6;
  constexpr std::size_t kTokenTextBytes = kTokenBytes * 4 / 3 + 5;
  std::printf(
      "%6d | %9zu %9zu %8.1f %8.1f | %3zu pages %8.2f MB %6.2f MB %8.1f ms %7.1f ms %7.1f ms | %8.1f MB | %7.1f "
      "%7.3f\n",
      ranks, granted.body.size(), grant["record"].get_ref<const std::string&>().size(), granted.milliseconds,
      again.milliseconds, (static_cast<std::size_t>(ranks) + kTokenPageRanksMax - 1) / kTokenPageRanksMax,
      static_cast<double>(page_bytes) / kMega, static_cast<double>(page_bytes_max) / kMega, page_milliseconds,
      page_milliseconds_max, read_milliseconds, static_cast<double>(chains * kTokenTextBytes) / kMega,
      adopted.milliseconds, renewed.milliseconds);
}

/// Reads a positive number of ranks; another text ends the program.
int number_of(const char* text) {
  const std::string_view all = text;
  int number = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (error == std::errc() && end == all.data() + all.size() && number > 0) return number;
  std::fprintf(stderr, "manager_bench: %s is no number of ranks\n", text);
  std::exit(64);
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  if (argc == 3 && std::string_view(argv[1]) == "--yardstick") {
    compare_with_yardstick(number_of(argv[2]));
    return 0;
  }
  std::printf(
      " ranks |  answer B  record B       ms again ms | tokens: all, largest page, all, longest page, rank 0 reads "
      "| in one answer | adoption ms, renewal ms\n");
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(number_of(argv[i]));
  if (sizes.empty()) sizes = {64, 1024, 4096, 32768};
  for (const int ranks : sizes) measure(ranks);
}
