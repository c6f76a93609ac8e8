// Measures what TLS costs at the manager: group requests a second, each followed by the group's deletion, over plain
// HTTP, over HTTPS on kept connections, and over HTTPS with a whole handshake for each request.
//
//     https_bench [SECONDS]
//
// Manager and clients share this machine, so the times include the clients' work. The store is in memory: a disk would
// hide the price. The three ways take turns, five times.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "service-kit/http/http_server.h"
#include "tests/unit/manager/fabrics.h"
#include "tests/unit/manager/memory_store.h"
#include "tests/unit/manager/temporary_folder.h"
#include "tests/unit/service_kit/test_ca.h"
#include "tree-manager/api/api.h"
#include "tributary/manager_client/manager_client.h"

namespace {

using namespace tributary;
using namespace tributary::manager;
using manager_client::ManagerClient;
using service::TlsContext;

constexpr int kClients = 2;
constexpr int kRounds = 5;
constexpr const char* kToken = "token";

template <class T>
T or_exit(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message.c_str());
  std::exit(1);
}

/// A manager, and an aggregator at each switch of a small fabric; it serves HTTP and HTTPS.
class Manager {
 public:
  Manager() {
    spdlog::set_level(spdlog::level::off);
    for (int i = 0; i < 4; ++i) {
      (void)cluster_->register_aggregator({.name = "agg-" + std::to_string(i),
                                           .host = "agg-leaf-" + std::to_string(i),
                                           .data = {"10.0.0.1", static_cast<std::uint16_t>(1000 + i)},
                                           .http = {"10.0.0.1", 7472},
                                           .memory_bytes = 1ULL << 38});
    }
    plain_ = serve(nullptr);
    secure_ = serve(or_exit(TlsContext::open(TlsContext::Side::server, {.cert = files_.cert, .key = files_.key})));
  }
  [[nodiscard]] manager_client::ManagerSettings client_of(bool secure) const {
    const auto port = (secure ? secure_ : plain_)->local().port;
    return {.url = (secure ? "https://localhost:" : "http://localhost:") + std::to_string(port),
            .token = kToken,
            .tls = secure ? believed_ : nullptr};
  }

 private:
  std::unique_ptr<service::HttpServer> serve(std::shared_ptr<TlsContext> tls) {
    service::HttpServerSettings settings;
    settings.listen = {"127.0.0.1", 0};
    settings.server_name = "bench";
    settings.thread_name = "http";
    settings.tls = std::move(tls);
    settings.handshakes_per_second_max = 0;
    return or_exit(service::HttpServer::start(settings, api_));
  }

  const TemporaryFolder folder_;
  service::TestCa ca_{folder_.path(), "ca"};
  const service::TlsFiles files_ = ca_.issue("manager");
  const std::shared_ptr<TlsContext> believed_ = or_exit(TlsContext::open(TlsContext::Side::client, {.ca = files_.ca}));
  MemoryStore store_;
  const SigningKey key_ = SigningKey::generate().value();
  const SystemClock clock_;
  const std::unique_ptr<Cluster> cluster_ =
      Cluster::open({}, store_, key_, clock_, *parse_topology(leaf_spine_yaml(4, 8, 2), "bench")).value();
  Api api_{*cluster_, ApiSettings{.aggregator_token = "other", .job_token = kToken}};
  std::unique_ptr<service::HttpServer> plain_, secure_;
};

struct Way {
  const char* name;
  bool secure;
  bool anew;  // a new client for each request: a whole handshake
};

/// Asks for a group of 16 ranks and deletes it.
void ask_once(ManagerClient& client) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 16; ++i) hosts.push_back("node-" + std::to_string(i));
  const auto group = or_exit(client.request_group({.job = "bench", .hosts = hosts}));
  if (auto ok = client.delete_group(group.descriptor.group); !ok) std::exit(1);
}

/// Returns pairs of requests a second.
double measure(const Manager& manager, const Way& way, double seconds) {
  std::atomic<std::uint64_t> done = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto end = start + std::chrono::duration<double>(seconds);
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&] {
      auto client = or_exit(ManagerClient::create(manager.client_of(way.secure)));
      while (std::chrono::steady_clock::now() < end) {
        if (way.anew) client = or_exit(ManagerClient::create(manager.client_of(way.secure)));
        ask_once(client);
        ++done;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  return static_cast<double>(done) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  constexpr std::array<Way, 3> ways{Way{"http", false, false}, Way{"https, kept connection", true, false},
                                    Way{"https, handshake for each group", true, true}};
  const Manager manager;
  std::array<std::vector<double>, ways.size()> rates;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) rates[i].push_back(measure(manager, ways[i], seconds));
  }
  for (auto& of_way : rates) std::ranges::sort(of_way);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::printf("%-32s %7.0f groups a second (%.0f to %.0f), %.2f of http\n", ways[i].name, rates[i][kRounds / 2],
                rates[i].front(), rates[i].back(), rates[i][kRounds / 2] / rates[0][kRounds / 2]);
  }
  return 0;
}
