#include "tests/system/aggregator/daemon_rig.h"

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

namespace tributary::aggregator::test {

using nlohmann::json;

std::string aggregator_program() {
  return AGGREGATOR_PROGRAM;
}

namespace {

std::vector<std::string> command_of(const TemporaryFolder& folder, const std::string& name,
                                    std::vector<std::string> arguments) {
  std::erase_if(arguments, [](const std::string& argument) { return argument.empty(); });
  arguments.insert(arguments.begin(),
                   {aggregator_program(), "--name", name, "--ready-file", folder.file(name + ".ready")});
  return arguments;
}

}  // namespace

DaemonProcess::DaemonProcess(const TemporaryFolder& folder, std::string given_name, std::vector<std::string> arguments,
                             const std::vector<std::string>& environment)
    : name(std::move(given_name)),
      process((std::remove(folder.file(name + ".ready").c_str()), command_of(folder, name, std::move(arguments))),
              folder.file(name + ".log"), environment) {
  const std::string ready = folder.file(name + ".ready");
  EXPECT_TRUE(eventually([&] { return !text_of_file(ready).empty() || !process.running(); }));
  const json ports = json::parse(text_of_file(ready), nullptr, false);
  if (ports.is_discarded()) {
    ADD_FAILURE() << name << " did not start:\n" << process.output();
    return;
  }
  data_port = ports.at("data").at("port");
  http_port = ports.at("http").at("port");
}

json DaemonProcess::health() const {
  return json::parse(http_get(http_port, "/healthz").body, nullptr, false);
}
json DaemonProcess::lanes() const {
  return json::parse(http_get(http_port, "/lanes").body, nullptr, false).at("lanes");
}
bool DaemonProcess::takes_joins() const {
  return health().value("takes_joins", false);
}
std::uint64_t DaemonProcess::memory_reserved() const {
  return health().at("memory_reserved_bytes");
}

double DaemonProcess::metric(const std::string& metric_name, const std::string& label) const {
  std::istringstream lines(http_get(http_port, "/metrics").body);
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string_view full = std::string_view(line).substr(0, line.find_last_of(' '));
    if (full.substr(0, full.find('{')) != "tributary_aggregator_" + metric_name) continue;
    if (!full.contains(label)) continue;
    sum += std::stod(line.substr(line.find_last_of(' ')));
  }
  return sum;
}

int DaemonProcess::terminate(std::chrono::milliseconds limit) {
  process.signal(SIGTERM);
  return process.wait(limit).value_or(-1);
}

DaemonTest::DaemonTest() {
  raise_descriptor_limit();
}

std::vector<std::string> DaemonTest::arguments_of(const std::string& name) const {
  return {"--manager", manager_.url(), "--listen",  "127.0.0.1:0",
          "--http",    "127.0.0.1:0",  "--host-id", "host-of-" + name};
}

DaemonProcess& DaemonTest::aggregator(const std::string& name, std::vector<std::string> arguments) {
  const auto common = arguments_of(name);
  arguments.insert(arguments.begin(), common.begin(), common.end());
  auto& daemon = daemons_[name];
  daemon.reset();
  daemon = std::make_unique<DaemonProcess>(folder_, name, std::move(arguments));
  EXPECT_TRUE(eventually([&] { return daemon->takes_joins(); })) << daemon->process.output();
  return *daemon;
}

TokenClaims DaemonTest::claims_of(const std::string& aggregator, std::uint16_t child, std::uint16_t children) const {
  return claims_of_rank(aggregator, epoch_, child, children, end_of_new_token());
}

Bytes DaemonTest::join_of(const std::vector<TokenClaims>& chain) const {
  TokenChain tokens;
  for (const TokenClaims& claims : chain) tokens.push_back(*manager_.key().sign(claims));
  return encode(tokens);
}

Child& DaemonTest::child(const Endpoint& to, const Bytes& join) {
  return *children_.emplace_back(std::make_unique<Child>(transport_, to, join, epoch_));
}

std::vector<Child*> DaemonTest::lane_of(const DaemonProcess& root, std::uint16_t children) {
  ++epoch_;
  std::vector<Child*> all;
  for (std::uint16_t i = 0; i < children; ++i) {
    all.push_back(&child(root.endpoint(), join_of({claims_of(root.name, i, children)})));
  }
  EXPECT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); })) << all[0]->refused.value_or("");
  return all;
}

std::unique_ptr<Process> DaemonTest::rank_process(const DaemonProcess& root, std::uint16_t child,
                                                  std::uint16_t children) {
  const Bytes join = join_of({claims_of(root.name, child, children)});
  const std::string rank = "rank" + std::to_string(child);
  const std::string file = folder_.write(rank + ".join", {reinterpret_cast<const char*>(join.data()), join.size()});
  return std::make_unique<Process>(std::vector<std::string>{RANK_PROGRAM, std::to_string(root.data_port), file,
                                                            std::to_string(kGroup), std::to_string(epoch_)},
                                   folder_.file(rank + ".log"));
}

bool DaemonTest::run_until(const std::function<bool()>& done, std::chrono::milliseconds limit) {
  return eventually(
      [&] {
        transport_.poll(std::chrono::milliseconds(1));
        return done();
      },
      limit);
}

void DaemonTest::expect_serves(const DaemonProcess& root) {
  const auto ranks = lane_of(root, 2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  ASSERT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
  EXPECT_EQ(ranks[1]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
  for (Child* rank : ranks) rank->leave();
  EXPECT_TRUE(run_until([&] { return ranks[0]->closed && ranks[1]->closed; }));
}

}  // namespace tributary::aggregator::test
