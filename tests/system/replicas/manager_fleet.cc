#include "tests/system/replicas/manager_fleet.h"

#include <signal.h>

#include <filesystem>
#include <stdexcept>
#include <thread>

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;

constexpr auto kLimit = 30s;
constexpr auto kStep = 20ms;

std::string without_line_end(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

ManagerFleet::ManagerFleet(const EtcdProcesses& etcd, int managers, const std::string& config, Members members)
    : config_(folder_.write("m.yaml", config)), endpoints_(etcd.endpoints()), members_(members) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(managers); ++i) {
    if (i != 0) {
      std::filesystem::create_directories(state_of(i));
      std::filesystem::copy_file(state_of(0) + "/signing.key", state_of(i) + "/signing.key");
    }
    managers_.push_back(start(i, "127.0.0.1:0"));
    urls_.push_back(managers_.back()->url());
    static_cast<void>(wait_leader());
  }
}

std::string ManagerFleet::store_of(std::size_t which) const {
  const bool secure = endpoints_.at(0).starts_with("https://");
  std::string store = secure ? "etcds://" : "etcd://";
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    if (members_ == Members::own && i != which) continue;
    store += (store.ends_with('/') ? "" : ",") + endpoints_[i].substr(secure ? 8 : 7);
  }
  return store;
}

std::unique_ptr<ManagerProcess> ManagerFleet::start(std::size_t which, const std::string& listen) const {
  auto process = std::make_unique<ManagerProcess>(std::vector<std::string>{
      "--config", config_, "--listen", listen, "--state-dir", state_of(which), "--store", store_of(which)});
  process->wait_ready();
  return process;
}

std::string ManagerFleet::urls() const {
  std::string all;
  for (const std::string& url : urls_) all += (all.empty() ? "" : ",") + url;
  return all;
}

manager_client::ManagerClient ManagerFleet::client(const std::string& urls, const std::string& token) const {
  auto made = manager_client::ManagerClient::create(
      {.url = urls, .token = token.empty() ? "" : without_line_end(read_file(state_of(0) + "/" + token))});
  if (!made) throw std::runtime_error(made.error().message);
  return std::move(*made);
}

nlohmann::json ManagerFleet::ask(std::size_t which, const std::string& path) const {
  auto client =
      manager_client::ManagerClient::create({.url = urls_.at(which), .connect_limit = 500ms, .request_limit = 1000ms});
  const auto answer = client->get(path);
  return answer ? *answer : nlohmann::json();
}

std::optional<std::size_t> ManagerFleet::leader() const {
  for (std::size_t i = 0; i < managers_.size(); ++i) {
    const nlohmann::json answer = managers_[i] ? ask(i, "/v1/leader") : nlohmann::json();
    if (answer.is_object() && answer["role"] == "leader") return i;
  }
  return std::nullopt;
}

std::size_t ManagerFleet::wait_leader(std::optional<std::size_t> not_this) const {
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (std::chrono::steady_clock::now() < end) {
    const auto now = leader();
    if (now && now != not_this) return *now;
    std::this_thread::sleep_for(kStep);
  }
  throw std::runtime_error("no manager leads");
}

void ManagerFleet::kill(std::size_t which) {
  managers_.at(which)->signal(SIGKILL);
  static_cast<void>(managers_[which]->wait());
  managers_[which].reset();
}

void ManagerFleet::restart(std::size_t which) {
  managers_.at(which) = start(which, urls_.at(which).substr(std::string("http://").size()));
}

bool ManagerFleet::register_only_aggregator() const {
  return for_aggregators()
      .register_aggregator({.name = "only",
                            .host = "h",
                            .data = {"10.0.0.1", 7471},
                            .http = {"10.0.0.1", 7472},
                            .memory_bytes = 1ULL << 48,
                            .version = "test"})
      .has_value();
}

}  // namespace tributary::manager
