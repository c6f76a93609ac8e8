// tributary-aggregator starts, or says in one sentence why it does not.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DaemonStart : public DaemonTest {
 protected:
  struct Ended {
    int code = -1;
    std::string output;
  };
  Ended run(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
    arguments.insert(arguments.begin(), aggregator_program());
    Process process(arguments, folder_.file("run.log"), environment);
    const auto code = process.wait(std::chrono::seconds(20));
    EXPECT_TRUE(code.has_value()) << "the process still runs:\n" << process.output();
    return {code.value_or(-1), process.output()};
  }
};

TEST_F(DaemonStart, WrongUsageEndsWith64) {
  const Ended ended = run({"--confg", "x"});
  EXPECT_EQ(ended.code, 64);
  EXPECT_THAT(ended.output, AllOf(HasSubstr("--confg"), HasSubstr("--help")));
  EXPECT_EQ(run({"--workers"}).code, 64);
  EXPECT_EQ(run({"left-over"}).code, 64);
}

TEST_F(DaemonStart, HelpAndVersionEndWith0) {
  const Ended help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, AllOf(HasSubstr("--ready-file"), HasSubstr("Exit codes")));
  EXPECT_THAT(run({"--version"}).output, HasSubstr("tributary-aggregator "));
}

TEST_F(DaemonStart, ATransportWithoutItsModuleEndsWith78AndNamesThePackage) {
  const std::string alone = folder_.file("tributary-aggregator");  // a copy of the program, without a module beside it
  std::filesystem::copy_file(aggregator_program(), alone);
  for (const std::string transport : {"verbs", "dpdk"}) {
    const std::string file =
        folder_.write(transport + ".yaml",
                      "manager: http://127.0.0.1:1\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\n"
                      "dpdk_device: net_null0\ndpdk_addresses: 10.0.0.1/24\ntransport: " +
                          transport + "\n");
    for (const auto& mode : {std::vector<std::string>{}, {"--check"}}) {
      std::vector<std::string> arguments = {alone, "--config", file};
      arguments.insert(arguments.end(), mode.begin(), mode.end());
      Process process(arguments, folder_.file("alone.log"));
      EXPECT_EQ(process.wait(std::chrono::seconds(20)), 78) << transport;
      EXPECT_THAT(process.output(), HasSubstr("Install the package tributary-aggregator-" + transport));
    }
  }
}

TEST_F(DaemonStart, AWrongConfigurationEndsWith78AndTellsFileAndLine) {
  const std::string file = folder_.write("a.yaml", "manager: http://m:7470\nmemory: 4 gigs\nport: 7\n");
  for (const auto& mode : {std::vector<std::string>{}, {"--check"}, {"--print-config"}}) {
    std::vector<std::string> arguments = {"--config", file};
    arguments.insert(arguments.end(), mode.begin(), mode.end());
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 78);
    EXPECT_THAT(ended.output, AllOf(HasSubstr(file + ":2: memory: '4 gigs': 'gigs' is no unit"),
                                    HasSubstr(file + ":3: port: there is no such setting")));
  }
}

TEST_F(DaemonStart, AMissingFileEndsWith78) {
  const Ended ended = run({"--config", folder_.file("none.yaml")});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.output, HasSubstr("none.yaml': it cannot be read: No such file or directory (allowed: the path"));
}

TEST_F(DaemonStart, NoManagerEndsWith78) {
  const Ended ended = run({});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.output, HasSubstr("manager: '': no manager is set"));
}

TEST_F(DaemonStart, ATokenFileThatIsMissingEmptyOrOpenToOthersEndsWith78) {
  const auto with = [&](const std::string& path) { return run({"--manager", "http://m", "--token-file", path}); };
  for (const std::string& path :
       {folder_.file("none"), folder_.write("empty", ""), folder_.write("open", "secret\n", 0644)}) {
    EXPECT_EQ(with(path).code, 78) << path;
    EXPECT_EQ(run({"--check", "--manager", "http://m", "--token-file", path}).code, 78) << path;
  }
  EXPECT_THAT(with(folder_.file("open")).output, HasSubstr("run: chmod 600 " + folder_.file("open")));
}

TEST_F(DaemonStart, ADamagedStateFileEndsWith78) {
  const Ended ended = run({"--manager", "http://m", "--state-file", folder_.write("key", "garbage")});
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.output, HasSubstr("is damaged; remove it"));
}

TEST_F(DaemonStart, CheckEndsWith0OnAGoodConfigurationAndStartsNothing) {
  const std::string file =
      folder_.write("a.yaml", "manager: http://127.0.0.1:1\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\n");
  const Ended ended = run({"--config", file, "--check"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.output, HasSubstr("the configuration is good"));
}

TEST_F(DaemonStart, SettingsThatDoNotFitTogetherEnd78AlsoWithCheck) {
  const std::string good = "manager: http://127.0.0.1:1\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"transport: dpdk\n", "dpdk_device and dpdk_addresses must name the device"},
      {"ready_file: " + folder_.file("none") + "/ready\n", "ready"},
  };
  for (const auto& [line, message] : cases) {
    const std::string file = folder_.write("a.yaml", good + line);
    for (const auto& mode : {std::vector<std::string>{}, {"--check"}}) {
      std::vector<std::string> arguments = {"--config", file};
      arguments.insert(arguments.end(), mode.begin(), mode.end());
      const Ended ended = run(arguments);
      EXPECT_EQ(ended.code, 78) << line << ended.output;
      EXPECT_THAT(ended.output, HasSubstr(message));
    }
  }
}

TEST_F(DaemonStart, APrintedConfigurationPassesTheCheck) {
  const Ended printed = run({"--print-config", "--manager", "http://m:7470", "--workers", "3", "--listen",
                             "127.0.0.1:0", "--http", "127.0.0.1:0"});
  EXPECT_EQ(printed.code, 0);
  EXPECT_THAT(printed.output,
              AllOf(HasSubstr("workers: 3\n"), HasSubstr("# Threads that serve lanes"), HasSubstr("Default: 4GiB")));
  EXPECT_EQ(run({"--config", folder_.write("printed.yaml", printed.output), "--check"}).code, 0);
}

TEST_F(DaemonStart, APortInUseEndsWith1AndSaysWhatToDo) {
  const DaemonProcess& first = aggregator("first");
  for (const auto& [flag, port] : {std::pair{"--listen", first.data_port}, {"--http", first.http_port}}) {
    std::vector<std::string> arguments = arguments_of("second");
    arguments.insert(arguments.end(), {flag, "127.0.0.1:" + std::to_string(port)});
    // A repeated flag is an error, so remove the flag that arguments_of() has added.
    const auto at = std::find(arguments.begin(), arguments.end(), flag);
    arguments.erase(at, at + 2);
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 1) << flag;
    EXPECT_THAT(ended.output, AllOf(HasSubstr("127.0.0.1:" + std::to_string(port)), HasSubstr("in use"),
                                    HasSubstr("port 0 chooses a free one")));
    arguments.emplace_back("--check");
    const Ended checked = run(arguments);
    EXPECT_EQ(checked.code, 1) << flag << ": the configuration itself is right";
    EXPECT_THAT(checked.output, HasSubstr("127.0.0.1:" + std::to_string(port) + "': another process listens there"));
  }
}

TEST_F(DaemonStart, AReadyFileThatCannotBeWrittenEndsWith78) {
  std::vector<std::string> arguments = arguments_of("a");
  arguments.insert(arguments.end(), {"--ready-file", folder_.file("none/ready")});
  const Ended ended = run(arguments);
  EXPECT_EQ(ended.code, 78);
  EXPECT_THAT(ended.output, HasSubstr("the ready file"));
}

TEST_F(DaemonStart, ReadsItsConfigurationFromAFile) {
  const std::string token = folder_.write("token", "s3cret\n");
  manager_.want_token("s3cret");
  const std::string file = folder_.write(
      "a.yaml", "manager: " + manager_.url() +
                    "\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\nhost_id: node-1\nmemory: 8MiB\nchildren_max: 16\n"
                    "line_rate: 100Gbit/s\nadvertise: 10.1.2.3\ntoken_file: " +
                    token + "\n");
  DaemonProcess daemon(folder_, "from-file", {"--config", file});
  ASSERT_TRUE(eventually([&] { return daemon.takes_joins(); })) << daemon.process.output();
  const auto seen = manager_.registration_of("from-file");
  EXPECT_EQ(seen.at("host"), "node-1");
  EXPECT_EQ(seen.at("memory_bytes"), 8U << 20);
  EXPECT_EQ(seen.at("children_max"), 16);
  EXPECT_EQ(seen.at("line_rate_bits_per_second"), 100'000'000'000U);
  EXPECT_EQ(seen.at("data"), "10.1.2.3:" + std::to_string(daemon.data_port));
  EXPECT_EQ(seen.at("http"), "10.1.2.3:" + std::to_string(daemon.http_port));
  EXPECT_EQ(daemon.terminate(), 0);
}

TEST_F(DaemonStart, TellsTheServiceManagerThatItIsReadyAliveAndStopping) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_.file("notify");
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  DaemonProcess daemon(folder_, "notifies", arguments_of("notifies"),
                       {"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=300000"});
  std::string told;
  const auto hears = [&](const std::string& what) {
    return eventually([&] {
      std::array<char, 256> text{};
      const ssize_t bytes = ::recv(socket, text.data(), text.size(), MSG_DONTWAIT);
      if (bytes > 0) told.append(text.data(), static_cast<std::size_t>(bytes)).append("\n");
      return told.contains(what);
    });
  };
  EXPECT_TRUE(hears("READY=1"));
  EXPECT_TRUE(hears("WATCHDOG=1"));
  daemon.process.signal(SIGTERM);
  EXPECT_TRUE(hears("STOPPING=1"));
  EXPECT_EQ(daemon.process.wait(std::chrono::seconds(20)), 0);
  ::close(socket);
}

TEST_F(DaemonStart, SighupReadsTheLogLevelAgainAndKeepsItWhenTheFileIsWrong) {
  const std::string common = "manager: " + manager_.url() + "\nlisten: 127.0.0.1:0\nhttp_listen: 127.0.0.1:0\n";
  const std::string file = folder_.write("a.yaml", common);
  DaemonProcess daemon(folder_, "reloads", {"--config", file});
  folder_.write("a.yaml", common + "log_level: debug\n");
  daemon.process.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return daemon.process.output().contains("SIGHUP: log_level is debug"); }));
  folder_.write("a.yaml", common + "log_level: loud\n");
  daemon.process.signal(SIGHUP);
  EXPECT_TRUE(eventually([&] { return daemon.process.output().contains("nothing was changed"); }));
  EXPECT_TRUE(daemon.process.running());
}

}  // namespace
}  // namespace tributary::aggregator::test
