// tributary-manager as a process: it starts, explains why it cannot start, and stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "tests/system/manager/manager_process.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kUsage = 64;
constexpr int kConfiguration = 78;

unsigned mode_of(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777U : 0;
}

TEST(Program, SaysWhereItServesKeepsItsSecretsToItselfAndStopsOnSigterm) {
  const Folder folder;
  const std::string state = folder.file("state");
  ManagerProcess manager({"--listen", "127.0.0.1:0", "--state-dir", state, "--ready-file", folder.file("ready")});
  const auto ready = manager.wait_ready();
  EXPECT_EQ(ready["listen"], "127.0.0.1:" + std::to_string(manager.port()));
  EXPECT_EQ(nlohmann::json::parse(read_file(folder.file("ready"))), ready);
  EXPECT_EQ(mode_of(state), 0700U);
  for (const char* name : {"aggregator.token", "job.token", "signing.key"})
    EXPECT_EQ(mode_of(state + "/" + name), 0600U) << name;
  EXPECT_NE(read_file(state + "/aggregator.token"), read_file(state + "/job.token"));
  EXPECT_EQ((*manager.client("").get("/healthz"))["status"], "ok");
  manager.signal(SIGTERM);
  const Ended ended = manager.wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.standard_error;
}

TEST(Program, KeepsItsKeyAndTokensOverARestart) {
  const Folder folder;
  const auto key = [&] {
    const auto manager = ManagerProcess::serving(folder.path());
    return (*manager->client("").get("/v1/public-key"))["public_key"].get<std::string>() +
           read_file(folder.file("job.token"));
  };
  EXPECT_EQ(key(), key());
}

TEST(Program, TakesTokensThatItsGroupMayRead) {
  const Folder folder;
  {
    ManagerProcess::serving(folder.path());
  }
  for (const char* name : {"aggregator.token", "job.token"}) ::chmod(folder.file(name).c_str(), 0440);
  EXPECT_TRUE(ManagerProcess::serving(folder.path())->client("").get("/v1/version"));
}

TEST(Program, RefusesASecretThatOthersCanRead) {
  const Folder folder;
  {
    ManagerProcess::serving(folder.path());
  }
  for (const auto& [name, mode] :
       {std::pair{"aggregator.token", 0644U}, {"job.token", 0604U}, {"job.token", 0660U}, {"signing.key", 0640U}}) {
    ::chmod(folder.file(name).c_str(), mode);
    const Ended ended = run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder.path()});
    EXPECT_EQ(ended.exit_code, kConfiguration) << name;
    EXPECT_THAT(ended.standard_error, HasSubstr("run: chmod 600 " + folder.file(name)));
    ::chmod(folder.file(name).c_str(), 0600);
  }
  folder.write("job.token", "short\n");
  EXPECT_THAT(run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder.path()}).standard_error,
              HasSubstr("holds no token"));
  folder.write("signing.key", "zz\n");
  EXPECT_THAT(run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder.path()}).standard_error,
              HasSubstr("holds no signing key"));
}

TEST(Program, NamesEveryMistakeOfConfigurationAndUsage) {
  const Folder folder;
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    std::string message;
  };
  const std::string unknown = folder.write("unknown.yaml", "listen: \"0.0.0.0:1\"\ncolour: red\n");
  const std::string unit = folder.write("unit.yaml", "group_lease: 5KiB\n");
  const std::string topology = folder.write(
      "topology.yaml", "switches: [{name: s, level: 1}]\nhosts: [a]\nlinks: [{from: a, to: s, rate: 5}]\n");
  const std::string with_topology = folder.write("with.yaml", "topology: " + topology + "\n");
  const std::string good = folder.write("good.yaml", "group_lease: 5s\n");
  const std::string no_folder =
      folder.write("no_folder.yaml", "job_token_file: " + folder.file("none") + "/job.token\n");
  const Folder damaged;
  damaged.write("manager.db", std::string(9000, 'x'));
  const std::vector<Case> cases{
      {{"--config", unknown, "--check"},
       kConfiguration,
       unknown + ":2: colour: there is no such setting (allowed: listen"},
      {{"--config", unknown}, kConfiguration, unknown + ":2: colour: there is no such setting"},
      {{"--config", unit, "--check"}, kConfiguration, unit + ":1: group_lease: '5KiB': 'KiB' is no unit for it"},
      {{"--config", folder.file("none.yaml")}, kConfiguration, "none.yaml': it cannot be read"},
      {{"--config", with_topology, "--check"}, kConfiguration, topology + ":3: links[0].rate: '5': it has no unit"},
      {{"--topology", folder.file("none.yaml"), "--state-dir", folder.path()},
       kConfiguration,
       "none.yaml': it cannot be read"},
      {{"--listen", "nowhere", "--check"},
       kConfiguration,
       "--listen: 'nowhere': 'nowhere' is no address: the port is missing"},
      {{"--log-level", "loud", "--check"}, kConfiguration, "allowed: trace, debug, info, warn or error"},
      {{"--colour"}, kUsage, "--colour"},
      {{"stray"}, kUsage, "stray"},
      {{"--state-dir", good + "/below-a-file", "--listen", "127.0.0.1:0"}, kConfiguration, "cannot be made"},
      {{"--state-dir", good + "/below-a-file", "--check"}, kConfiguration, "it is not there, and this user cannot"},
      {{"--config", no_folder, "--check"}, kConfiguration, "job_token_file: '" + folder.file("none") + "/job.token'"},
      {{"--state-dir", damaged.path(), "--check"}, kConfiguration, "manager.db is no SQLite database"},
      {{"--config", good, "--check"}, kConfiguration, "listen: '0.0.0.0:7470': other hosts can reach it"},
      {{"--config", good, "--listen", "127.0.0.1:0", "--check"}, 0, ""},
      {{"--config", good, "--listen", "0.0.0.0:0", "--allow-plain-http", "--check"}, 0, ""},
      {{"--config", folder.write("tls.yaml", "tls_cert: /nowhere.pem\ntls_key: /nowhere.key\n"), "--check"},
       kConfiguration,
       "/nowhere.pem: the file cannot be read"},
  };
  for (const Case& it : cases) {
    const Ended ended = run_manager(it.arguments);
    EXPECT_EQ(ended.exit_code, it.exit_code) << it.message;
    EXPECT_THAT(ended.standard_error, HasSubstr(it.message));
  }
}

TEST(Program, PrintsAConfigurationThatItReads) {
  const Folder folder;
  const Ended printed = run_manager({"--print-config", "--listen", "127.0.0.1:0"});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_THAT(printed.standard_output, HasSubstr("listen: 127.0.0.1:0\n"));
  const std::string path = folder.write("printed.yaml", printed.standard_output);
  EXPECT_EQ(run_manager({"--config", path, "--check"}).exit_code, 0);
}

TEST(Program, SaysThatThePortIsInUse) {
  const Folder first;
  const Folder second;
  const auto manager = ManagerProcess::serving(first.path());
  const Ended ended =
      run_manager({"--listen", "127.0.0.1:" + std::to_string(manager->port()), "--state-dir", second.path()});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.standard_error, AllOf(HasSubstr("Address already in use"), HasSubstr("another process has it")));
  const std::string port = "127.0.0.1:" + std::to_string(manager->port());
  const Ended checked = run_manager({"--listen", port, "--state-dir", second.path(), "--check"});
  EXPECT_EQ(checked.exit_code, 1) << "the configuration itself is right";
  EXPECT_THAT(checked.standard_error, HasSubstr("listen: '" + port + "': another process listens there"));
}

TEST(Program, SaysThatAnotherManagerHasTheState) {
  const Folder folder;
  const auto manager = ManagerProcess::serving(folder.path());
  const Ended ended = run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder.path()});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.standard_error, HasSubstr("another tributary-manager uses the state directory"));
  const Ended checked = run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder.path(), "--check"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.standard_error,
              HasSubstr("state_directory: '" + folder.path() + "/lock': another process holds"));
}

TEST(Program, SaysThatItsFileIsNoDatabase) {
  const Folder folder;
  folder.write("manager.db", std::string(9000, 'x'));
  const Ended ended = run_manager({"--listen", "127.0.0.1:0", "--state-dir", folder.path()});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.standard_error,
              AllOf(HasSubstr("is no SQLite database or is damaged"), HasSubstr("restore it from a backup")));
}

TEST(Program, ReloadsTheTopologyOnSighupAndKeepsTheOldOneWhenTheNewIsWrong) {
  const Folder folder;
  const std::string topology = folder.write("topology.yaml", "fabric: flat\n");
  const auto manager = ManagerProcess::serving(folder.path(), {"--topology", topology});
  auto client = manager->client("");
  const auto fabric = [&] { return (*client.get("/v1/topology"))["fabric"].get<std::string>(); };
  EXPECT_EQ(fabric(), "flat");
  folder.write("topology.yaml",
               "switches: [{name: s, level: 1}]\nhosts: [a]\nlinks: [{from: a, to: s, rate: 5Gbit/s}]\n");
  manager->signal(SIGHUP);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (fabric() != "fat-tree" && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(fabric(), "fat-tree");
  folder.write("topology.yaml", "nonsense\n");
  manager->signal(SIGHUP);
  manager->signal(SIGTERM);  // signals of different kinds may overtake each other; in any order the manager must end
                             // without an error
  const Ended ended = manager->wait();
  EXPECT_EQ(ended.exit_code, 0) << ended.standard_error;
}

TEST(Program, TellsSystemd) {
  const Folder folder;
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder.file("notify");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const timeval limit{20, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const auto told = [&] {
    char text[256];
    const ssize_t bytes = ::recv(fd, text, sizeof text, 0);
    return std::string(text, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  };
  ManagerProcess manager({"--listen", "127.0.0.1:0", "--state-dir", folder.file("state")}, {"NOTIFY_SOCKET=" + path});
  EXPECT_EQ(told(), "READY=1");
  manager.signal(SIGHUP);
  EXPECT_EQ(told(), "RELOADING=1");
  EXPECT_EQ(told(), "READY=1");
  manager.signal(SIGTERM);
  EXPECT_EQ(told(), "STOPPING=1");
  EXPECT_EQ(manager.wait().exit_code, 0);
  ::close(fd);
}

}  // namespace
}  // namespace tributary::manager
