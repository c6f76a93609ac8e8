#include "client/cli/cluster/local_cluster.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cli/cluster/machine.h"
#include "client/cli/free_port/free_port.h"
#include "tributary/manager_client/manager_client.h"
#include "tributary/transport/rdma_path.h"

namespace tributary::cli {
namespace {

using manager_client::ManagerClient;
using std::chrono::steady_clock;

constexpr auto kStopLimit = std::chrono::seconds(5);
constexpr auto kStartPollPeriod = std::chrono::milliseconds(10);
constexpr std::chrono::milliseconds kRequestLimit{3000};
constexpr const char* kDpdkDevice = "TRIBUTARY_CLUSTER_DPDK_DEVICE";

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (out) return {};
  return fail(Errc::io, path + " cannot be written: " + std::strerror(errno) + "; is the disk full?");
}

std::string read_token(const std::string& path) {
  std::ifstream in(path);
  std::string token;
  in >> token;
  return token;
}

Result<ManagerClient> client_for(const std::string& url, std::string token) {
  return ManagerClient::create(
      {.url = url, .token = std::move(token), .connect_limit = kRequestLimit, .request_limit = kRequestLimit});
}

}  // namespace

LocalCluster::LocalCluster(LocalClusterSettings settings, const Guardian* guardian)
    : settings_(std::move(settings)), guardian_(guardian) {}

Result<std::unique_ptr<LocalCluster>> LocalCluster::start(LocalClusterSettings settings, const Guardian* guardian) {
  std::unique_ptr<LocalCluster> cluster(new LocalCluster(std::move(settings), guardian));
  auto layout = lay_out_cluster(cluster->settings_.shape);
  if (!layout) return std::unexpected(layout.error());
  cluster->layout_ = std::move(*layout);
  if (auto ok = cluster->prepare_manager(); !ok) return std::unexpected(ok.error());
  for (const PlacedAggregator& placed : cluster->layout_.aggregators) {
    if (auto ok = cluster->prepare_aggregator(placed); !ok) return std::unexpected(ok.error());
  }
  if (auto ok = cluster->spawn(cluster->manager_); !ok) return std::unexpected(ok.error());
  // Wait for the manager first: aggregators would try again until it and its tokens exist, but that takes longer.
  const auto deadline = steady_clock::now() + cluster->settings_.start_limit;
  while (!std::filesystem::exists(cluster->settings_.folder + "/manager.ready") && steady_clock::now() < deadline) {
    if (auto ok = cluster->check_daemons(); !ok) return std::unexpected(ok.error());
    std::this_thread::sleep_for(kStartPollPeriod);
  }
  for (Daemon& aggregator : cluster->aggregators_) {
    if (auto ok = cluster->spawn(aggregator); !ok) return std::unexpected(ok.error());
  }
  if (auto ok = cluster->wait_until_serving(); !ok) return std::unexpected(ok.error());
  return cluster;
}

/// Returns the name of the aggregators' transport: the ranks' transport. If the ranks use the kernel's UDP, aggregators
/// may have their own DPDK devices, which the caller has made (TRIBUTARY_CLUSTER_DPDK_DEVICE).
std::string LocalCluster::transport() {
  const char* const wanted = std::getenv("TRIBUTARY_TRANSPORT");
  for (const char* name : {"verbs", "udp"}) {
    if (wanted == nullptr || !std::string_view(wanted).starts_with(name)) continue;
    return name == std::string_view("udp") && std::getenv(kDpdkDevice) != nullptr ? "dpdk" : name;
  }
  return "tcp";
}

/// Returns the settings for an aggregator's own device. In the variable's text, % stands for the aggregator's number,
/// from 1 on, and # for the number of queues of its device.
std::string LocalCluster::dpdk_settings(std::uint32_t workers) const {
  if (transport() != "dpdk") return "";
  std::string lines = "\ndpdk_sleep: 100us";
  const auto replace = [](std::string& in, char what, std::size_t by) {
    for (std::size_t at = 0; (at = in.find(what, at)) != std::string::npos;) in.replace(at, 1, std::to_string(by));
  };
  const auto add = [&](const char* name, const char* variable) {
    const char* const told = std::getenv(variable);
    std::string value = told == nullptr ? "" : told;
    replace(value, '%', aggregators_.size() + 1);
    replace(value, '#', workers == 1 ? 1 : workers + 1);  // a queue for each worker, and one for the front door
    lines += "\n" + std::string(name) + ": \"" + value + "\"";
  };
  add("dpdk_device", kDpdkDevice);
  add("dpdk_addresses", "TRIBUTARY_CLUSTER_DPDK_ADDRESSES");
  return lines;
}

/// Returns the setting by which aggregators refuse connections with less security than the ranks use.
std::string LocalCluster::security() {
  for (const char* const name : {"TRIBUTARY_SECURITY", "TRIBUTARY_PACKET_SECURITY"}) {
    const char* const wanted = std::getenv(name);
    if (wanted != nullptr && *wanted != '\0') return "\nsecurity: " + std::string(wanted);
  }
  return "";
}

/// Returns the setting by which aggregators use no shared memory, if the ranks use none: then all parts of the cluster
/// talk over TCP, as on several hosts.
std::string LocalCluster::shared_memory() {
  const char* const wanted = std::getenv("TRIBUTARY_SHM");
  return wanted != nullptr && std::string_view(wanted) == "off" ? "\nshared_memory: off" : "";
}

/// Returns the aggregators' setting: the same as the ranks'.
std::string LocalCluster::late_ranks() {
  const char* const wanted = std::getenv("TRIBUTARY_LATE_RANKS");
  return wanted != nullptr && std::string_view(wanted) == "off" ? "\nlate_ranks: off" : "";
}

/// Returns the aggregators' limit: the same as the ranks' limit, so that one variable is enough for a slow machine.
std::string LocalCluster::hang_after() {
  const char* const wanted = std::getenv("TRIBUTARY_HANG_AFTER");
  if (wanted == nullptr || *wanted == '\0') return "";
  return "\nhang_after: " + std::string(wanted) + (std::string_view(wanted) == "0" ? "s" : "ms");
}

/// Returns the aggregators' RDMA settings: the same as the ranks' settings. The smaller number of queue pairs of the
/// two sides holds, and all must use one partition.
std::string LocalCluster::rdma_settings() {
  std::string lines;
  const auto add = [&lines](std::string_view name, std::string_view variable) {
    const char* const wanted = std::getenv(std::string(variable).c_str());
    if (wanted != nullptr && *wanted != '\0') lines += "\n" + std::string(name) + ": " + wanted;
  };
  add("rdma_queue_pairs", "TRIBUTARY_RDMA_QUEUE_PAIRS");
  for (const auto& setting : transport::rdma_path_settings()) add(setting.name, setting.variable);
  return lines;
}

std::string LocalCluster::address_of(const std::string& host) const {
  return settings_.network == nullptr ? "127.0.0.1" : settings_.network->address_of(host);
}

/// Returns an aggregator's data addresses. Over RDMA it takes the devices' addresses in turn, at most one of each
/// device.
std::string LocalCluster::data_addresses(const PlacedAggregator& placed) const {
  if (settings_.network != nullptr) return to_string(Endpoint{address_of(placed.host), 0});
  if (transport() == "dpdk") return "0.0.0.0:7471";  // the addresses of aggregators differ
  const std::vector<std::string> devices = transport() == "verbs" ? rdma_addresses() : std::vector<std::string>{};
  const std::size_t first = aggregators_.size() * settings_.addresses;
  const std::size_t count =
      devices.empty() ? settings_.addresses : std::min<std::size_t>(settings_.addresses, devices.size());
  std::string list;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string host =
        devices.empty() ? "127.0.0." + std::to_string(i + 1) : devices[(first + i) % devices.size()];
    list += (list.empty() ? "" : ",") + to_string(Endpoint{host, 0});
  }
  return list;
}

LocalCluster::~LocalCluster() {
  const auto deadline = steady_clock::now() + kStopLimit;
  for (Daemon& aggregator : aggregators_) {
    if (aggregator.process) aggregator.process->signal(SIGTERM);
  }
  for (Daemon& aggregator : aggregators_) stop(aggregator, deadline);
  if (manager_.process) manager_.process->signal(SIGTERM);
  stop(manager_, deadline);
}

Status LocalCluster::prepare_manager() {
  const std::string& folder = settings_.folder;
  const auto program = find_program("tributary-manager");
  if (!program) return std::unexpected(program.error());
  const auto port = free_port();  // not 0, because a restarted manager must keep its port
  if (!port) return std::unexpected(port.error());
  const std::string listen = to_string(Endpoint{address_of(kManagerHost), *port});
  url_ = "http://" + listen;
  if (auto ok = write_file(folder + "/topology.yaml", layout_.topology); !ok) return ok;
  if (auto ok = write_file(folder + "/manager.yaml",
                           "listen: \"" + listen + "\"\nstate_directory: " + folder +
                               "/manager-state\ntopology: " + folder + "/topology.yaml\nready_file: " + folder +
                               "/manager.ready\nallow_plain_http: true\nlog_level: " + settings_.log_level + "\n" +
                               settings_.manager_settings);
      !ok) {
    return ok;
  }
  manager_ = {.name = "manager",
              .command = {*program, "--config", folder + "/manager.yaml"},
              .log = folder + "/manager.log",
              .host = settings_.network == nullptr ? ChildHost{} : settings_.network->place_of(kManagerHost)};
  return {};
}

Status LocalCluster::prepare_aggregator(const PlacedAggregator& placed) {
  const auto program = find_program("tributary-aggregator");
  if (!program) return std::unexpected(program.error());
  std::uint32_t workers = std::clamp(settings_.lanes, 1U, std::max(1U, std::thread::hardware_concurrency()));
  // Use one worker for devices with only one queue, because each worker needs a queue.
  if (transport() == "dpdk" && std::getenv("TRIBUTARY_CLUSTER_DPDK_ONE_WORKER") != nullptr) workers = 1;
  const std::string file = settings_.folder + "/" + placed.name;
  const std::string text =
      "name: " + placed.name + "\nhost_id: " + placed.host + "\nmanager: " + url_ +
      "\ntoken_file: " + aggregator_token_file() + "\nstate_file: " + file + ".key\ntransport: " + transport() +
      "\nlisten: \"" + data_addresses(placed) + "\"\nhttp_listen: " + to_string(Endpoint{address_of(placed.host), 0}) +
      "\nworkers: " + std::to_string(workers) + "\nlog_level: " + settings_.log_level + security() + shared_memory() +
      late_ranks() + hang_after() + rdma_settings() + dpdk_settings(workers) + "\n" + settings_.aggregator_settings;
  if (auto ok = write_file(file + ".yaml", text); !ok) return ok;
  aggregators_.push_back(
      {.name = placed.name,
       .command = {*program, "--config", file + ".yaml"},
       .log = file + ".log",
       .host = settings_.network == nullptr ? ChildHost{} : settings_.network->place_of(placed.host)});
  return {};
}

Status LocalCluster::spawn(Daemon& daemon) {
  const int log = open(daemon.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return fail(Errc::io, daemon.log + " cannot be written: " + std::strerror(errno));
  Environment environment = current_environment();
  // Remove the caller's variables: these daemons do not run under systemd, even if this process does.
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "STATE_DIRECTORY"}) environment.erase(name);
  auto process = ChildProcess::spawn({daemon.command, std::move(environment), log, log, guardian_, daemon.host});
  close(log);
  if (!process) return std::unexpected(process.error());
  daemon.process = std::make_unique<ChildProcess>(std::move(*process));
  daemon.reported = false;
  return {};
}

std::string LocalCluster::job_token_file() const {
  return settings_.folder + "/manager-state/job.token";
}
std::string LocalCluster::aggregator_token_file() const {
  return settings_.folder + "/manager-state/aggregator.token";
}

void LocalCluster::add_to(Environment& environment, std::uint32_t rank) const {
  environment["TRIBUTARY_MANAGER"] = url_;
  environment["TRIBUTARY_TOKEN_FILE"] = job_token_file();
  environment["TRIBUTARY_HOST_ID"] = layout_.host_of_rank[rank];
}

bool LocalCluster::all_serving() const {
  auto client = client_for(url_, {});
  if (!client) return false;
  const auto answer = client->get("/v1/aggregators");
  if (!answer || !answer->contains("aggregators")) return false;
  std::size_t active = 0;
  for (const auto& entry : answer->at("aggregators")) active += entry.value("state", "") == "active" ? 1U : 0U;
  return active == aggregators_.size();
}

Status LocalCluster::check_daemons() {
  if (settings_.interrupted && settings_.interrupted()) return fail(Errc::aborted, "interrupted");
  const auto check = [](Daemon& daemon) -> Status {
    if (!daemon.process || !daemon.process->poll()) return {};
    return fail(Errc::io, daemon.name + " " + to_string(*daemon.process->status()) + " instead of serving:\n" +
                              tail_of(daemon.log));
  };
  if (auto ok = check(manager_); !ok) return ok;
  for (Daemon& aggregator : aggregators_) {
    if (auto ok = check(aggregator); !ok) return ok;
  }
  return {};
}

Status LocalCluster::wait_until_serving() {
  const auto deadline = steady_clock::now() + settings_.start_limit;
  while (!all_serving()) {
    if (auto ok = check_daemons(); !ok) return ok;
    if (steady_clock::now() > deadline) {
      return fail(Errc::timed_out, "the service was not ready within " +
                                       std::to_string(settings_.start_limit.count() / 1000) +
                                       " s; the manager says:\n" + tail_of(manager_.log));
    }
    std::this_thread::sleep_for(kStartPollPeriod);
  }
  return {};
}

Result<std::uint32_t> LocalCluster::planned_levels(std::uint32_t lanes) const {
  auto client = client_for(url_, read_token(job_token_file()));
  if (!client) return std::unexpected(client.error());
  const auto answer = client->request("POST", "/v1/plan", {{"ranks", layout_.host_of_rank}, {"lanes", lanes}});
  if (!answer) return std::unexpected(answer.error());
  std::uint32_t levels = 0;
  for (const auto& tree : answer->at("trees")) levels = std::max(levels, tree.value("levels", 0U));
  if (levels == 0) return fail(Errc::exhausted, answer->value("reason", "the manager has no tree for these ranks"));
  return levels;
}

void LocalCluster::kill(std::size_t which) {
  Daemon& victim = daemon(which);
  if (!victim.process) return;
  victim.process->kill();
  victim.reported = true;
  if (guardian_ != nullptr) guardian_->forget(victim.process->pid());
}

Status LocalCluster::restart(std::size_t which) {
  Daemon& one = daemon(which);
  if (one.process && !one.process->poll()) return fail(Errc::bad_argument, one.name + " is running");
  return spawn(one);
}

std::vector<std::string> LocalCluster::ended() {
  std::vector<std::string> sentences;
  const auto look = [&](Daemon& daemon) {
    if (!daemon.process || daemon.reported || !daemon.process->poll()) return;
    daemon.reported = true;
    sentences.push_back(daemon.name + " " + to_string(*daemon.process->status()));
  };
  look(manager_);
  for (Daemon& aggregator : aggregators_) look(aggregator);
  return sentences;
}

void LocalCluster::stop(Daemon& daemon, steady_clock::time_point deadline) {
  if (!daemon.process) return;
  if (!daemon.process->wait_until(deadline)) daemon.process->kill();
  if (guardian_ != nullptr) guardian_->forget(daemon.process->pid());
}

}  // namespace tributary::cli
