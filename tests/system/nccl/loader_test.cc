// A real NCCL takes the plugin's tables: nccl_loader calls that NCCL's own loader. The test uses the libraries that
// TRIBUTARY_NCCL_LIBRARIES names (paths of libnccl.so.2, separated by colons; scripts/nccl-versions sets it), else the
// installed library.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/system/chaos/workshop.h"

namespace tributary::nccl_test {
namespace {

constexpr int kExitSkipped = 77;  // exit code of nccl_loader if the library does not exist or was stripped

struct Load {
  int code = -1;
  std::string log;
  [[nodiscard]] std::string found(const char* pattern) const {
    std::smatch match;
    return std::regex_search(log, match, std::regex(pattern)) ? match[1].str() : std::string();
  }
};

std::vector<std::string> libraries() {
  const char* const named = std::getenv("TRIBUTARY_NCCL_LIBRARIES");
  if (named == nullptr) return {"libnccl.so.2"};
  std::vector<std::string> list;
  std::istringstream in(named);
  for (std::string one; std::getline(in, one, ':');) list.push_back(one);
  return list;
}

/// Loads the plugin like a user: by its name, beside the libraries.
Load load(const std::string& library, const std::string& log, cli::Environment environment) {
  const std::filesystem::path plugin = TRIBUTARY_NCCL_PLUGIN;
  std::string& paths = environment["LD_LIBRARY_PATH"];
  paths = plugin.parent_path().string() + (paths.empty() ? "" : ":" + paths);
  environment["NCCL_NET_PLUGIN"] = "tributary";
  environment["NCCL_NET"] = "tributary";
  environment["NCCL_COLLNET_ENABLE"] = "1";
  environment["NCCL_DEBUG"] = "INFO";
  environment["NCCL_DEBUG_SUBSYS"] = "INIT,NET,TUNING";
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  auto process = cli::ChildProcess::spawn({{TRIBUTARY_NCCL_LOADER, library}, std::move(environment), out, out});
  if (out >= 0) close(out);
  if (!process) throw std::runtime_error(process.error().message);
  const auto& status = process->wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(120));
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  return {status ? status->shell_code() : -1, text.str()};
}

TEST(NcclLoader, TakesTheNetAndTheCollNetTableOfOneVersionAndUsesThem) {
  chaos::Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  int loaded = 0;
  std::string reasons;
  for (const std::string& library : libraries()) {
    cli::Environment environment = cli::current_environment();
    cluster->add_to(environment, 0);
    const Load one = load(library, workshop.folder() + "/loader.log", std::move(environment));
    if (one.code == kExitSkipped) {
      reasons += one.log;
      continue;
    }
    ++loaded;
    EXPECT_EQ(one.code, 0) << library << "\n" << one.log;
    const std::string version = one.found("^NCCL ([0-9.]+)\n");
    const std::string net = one.found("NET/Tributary : net (v[0-9]+): ");
    const std::string collnet = one.found("NET/Tributary : CollNet (v[0-9]+) is ready");
    EXPECT_FALSE(net.empty()) << library << "\n" << one.log;
    EXPECT_EQ(net, collnet) << library << "\n" << one.log;
    EXPECT_EQ(one.log.find("NCCL WARN"), std::string::npos) << library << "\n" << one.log;
    // Only newer versions log which table they have loaded.
    const std::string tuner = one.found("TUNER/Plugin: Using ((?:tuner plugin )?tributary(?: \\(v[0-9]+\\))?)");
    std::printf("NCCL %s: net %s, CollNet %s%s\n", version.c_str(), net.c_str(), collnet.c_str(),
                tuner.empty() ? "" : (", tuner: using " + tuner).c_str());
  }
  if (loaded == 0) GTEST_SKIP() << "no NCCL that shows its symbols: " << reasons;
}

// NCCL itself takes the calls of a wrapped plugin, and CollNet of this plugin over the wrapped plugin's devices.
TEST(NcclLoader, TakesAnotherPluginsMessagesAndThisPluginsCollNet) {
  chaos::Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  int loaded = 0;
  for (const std::string& library : libraries()) {
    cli::Environment environment = cli::current_environment();
    cluster->add_to(environment, 0);
    environment["TRIBUTARY_NCCL_NET"] = PARCEL_ALL;
    const Load one = load(library, workshop.folder() + "/loader.log", std::move(environment));
    if (one.code == kExitSkipped) continue;
    ++loaded;
    EXPECT_EQ(one.code, 0) << library << "\n" << one.log;
    const std::string net = one.found("NET/Tributary : net (v[0-9]+): point-to-point by ");
    EXPECT_FALSE(net.empty()) << library << "\n" << one.log;
    EXPECT_EQ(one.found(R"(\(Parcel, (v[0-9]+)\))"), net) << library << "\n" << one.log;
    EXPECT_EQ(one.found("NET/Tributary : CollNet (v[0-9]+) is ready"), net) << library << "\n" << one.log;
    EXPECT_EQ(one.log.find("NCCL WARN"), std::string::npos) << library << "\n" << one.log;
  }
  if (loaded == 0) GTEST_SKIP() << "no NCCL that shows its symbols";
}

// A version that compares the numbers of CollNet devices ends a job if one host has no such device.
TEST(NcclLoader, KeepsCollNetWhereNoManagerAnswers) {
  chaos::Workshop workshop;
  int loaded = 0;
  for (const std::string& library : libraries()) {
    for (const char* manager : {"", "http://127.0.0.1:1"}) {
      cli::Environment environment = cli::current_environment();
      environment.erase("TRIBUTARY_CONFIG");
      environment["TRIBUTARY_MANAGER"] = manager;
      const Load one = load(library, workshop.folder() + "/loader.log", std::move(environment));
      if (one.code == kExitSkipped) continue;
      ++loaded;
      EXPECT_EQ(one.code, 0) << library << "\n" << one.log;
      EXPECT_FALSE(one.found("NET/Tributary : CollNet (v[0-9]+) is ready").empty()) << library << "\n" << one.log;
      EXPECT_EQ(one.log.find("NCCL WARN"), std::string::npos) << library << "\n" << one.log;
    }
  }
  if (loaded == 0) GTEST_SKIP() << "no NCCL that shows its symbols";
}

}  // namespace
}  // namespace tributary::nccl_test
