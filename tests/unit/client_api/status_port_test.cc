// The status port: it answers its own user with the records that are served, and nobody else.
#include "client/api/status_port.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/api/flight_report.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client {
namespace {

constexpr uid_t kNobody = 65534;

class StatusPort : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/status-port-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    above_ = name;
    folder_ = name + "/ports";
  }
  void TearDown() override { std::filesystem::remove_all(above_); }

  static std::shared_ptr<FlightRecord> record(const std::string& group) {
    return std::make_shared<FlightRecord>(
        FlightOrigin{.job = "training", .host = "node-1", .group = group, .rank = 2, .nranks = 4});
  }
  [[nodiscard]] std::vector<std::string> ports() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) all.push_back(entry.path().string());
    return all;
  }
  static std::string ask(const std::string& port, const std::string& line) {
    const transport::OwnedDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return tell(socket, port, line) ? answer_of(socket) : "no connection";
  }
  static bool tell(const transport::OwnedDescriptor& socket, const std::string& port, const std::string& line) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, port.data(), port.size());
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
    static_cast<void>(::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL));  // the port may have closed it
    return true;
  }
  static std::string answer_of(const transport::OwnedDescriptor& socket) {
    std::string answer;
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0; (got = ::recv(socket.get(), bytes.data(), bytes.size(), 0)) > 0;)
      answer.append(bytes.data(), static_cast<std::size_t>(got));
    return answer;
  }

  std::string above_, folder_;
};

TEST_F(StatusPort, AllCommunicatorsOfAProcessShareItAndTheLastOneClosesIt) {
  auto first = ServedRecord::serve(folder_, record("first"));
  ASSERT_TRUE(first) << first.error().message;
  auto second = ServedRecord::serve(folder_, record("second"));
  ASSERT_TRUE(second) << second.error().message;
  ASSERT_EQ(ports().size(), 1U);
  const std::string port = ports()[0];
  EXPECT_EQ(ask(port, "status\n"),
            "job training, group first, rank 2 of 4: 0 calls; no operation is open\n"
            "job training, group second, rank 2 of 4: 0 calls; no operation is open\n");
  first->reset();
  EXPECT_EQ(ask(port, "dump\n"), "job training, group second, rank 2 of 4: 0 calls; no operation is open\n");
  EXPECT_EQ(ask(port, "reboot\n"),
            "unknown line; known lines: status, dump, dump json, calls json, metrics json, late GROUP NUMBER, "
            "trace begin MILLISECONDS, trace json\n");
  second->reset();
  EXPECT_TRUE(ports().empty());
}

TEST_F(StatusPort, DoesNotSpinWhileTheProcessHasNoDescriptorLeft) {
  const auto served = ServedRecord::serve(folder_, record("first"));
  ASSERT_TRUE(served) << served.error().message;
  const std::string port = ports()[0];
  const transport::OwnedDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = usual.rlim_max};  // descriptors 0 to 2 are open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool told = tell(socket, port, "status\n");
  const std::clock_t before = std::clock();  // the processor time of the whole process
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const std::clock_t used = std::clock() - before;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_TRUE(told);
  EXPECT_LT(used, CLOCKS_PER_SEC / 100);
  EXPECT_EQ(answer_of(socket).substr(0, 12), "job training");
}

TEST_F(StatusPort, NamesTheRanksThatHaveNotCalledAnOperation) {
  const auto first = record("first");
  first->called(0, {.collective = Collective::barrier}, transport::Clock::now());
  const auto served = ServedRecord::serve(folder_, first);
  ASSERT_TRUE(served) << served.error().message;
  const auto second = ServedRecord::serve(folder_, record("second"));
  ASSERT_TRUE(second) << second.error().message;
  const std::string port = ports()[0];
  EXPECT_EQ(ask(port, "late first 0\n"), "");
  const std::string late = ask(port, "late first 1\n");
  EXPECT_TRUE(
      late.starts_with("job training, group first, rank 2 of 4 has not called operation 1; its last call: "
                       "operation 0 (barrier), path undecided, open, queued 0."))
      << late;
  EXPECT_EQ(ask(port, "late second 0\n"),
            "job training, group second, rank 2 of 4 has not called operation 0; it has made no call\n");
  for (const char* wrong : {"late", "late first", "late first x", "late first 1 2", "late first -1"})
    EXPECT_TRUE(ask(port, std::string(wrong) + "\n").starts_with("unknown line")) << wrong;
}

TEST_F(StatusPort, CallsHaveTheOldestOperationThatHasNotSucceededAndTheLastOne) {
  const auto kept = record("first");
  const auto now = transport::Clock::now();
  for (std::uint64_t number = 0; number < 6; ++number) {
    kept->called(number, {.collective = Collective::barrier}, now);
    if (number != 2) kept->ended(number, FlightPath::in_network, FlightOutcome::success, now);
  }
  const auto served = ServedRecord::serve(folder_, kept);
  ASSERT_TRUE(served) << served.error().message;
  const auto numbers = [&] {
    std::vector<int> all;
    const auto document = nlohmann::json::parse(ask(ports()[0], "calls json\n"));
    for (const auto& operation : document.at("communicators").at(0).at("operations"))
      all.push_back(operation.at("number"));
    return all;
  };
  EXPECT_EQ(numbers(), (std::vector{2, 5}));
  kept->ended(2, FlightPath::in_network, FlightOutcome::success, now);
  EXPECT_EQ(numbers(), (std::vector{5}));
  kept->called(6, {.collective = Collective::barrier}, now);
  kept->fail_open(now);
  kept->called(7, {.collective = Collective::barrier}, now);
  EXPECT_EQ(numbers(), (std::vector{6, 7}));
}

TEST_F(StatusPort, RecordsATraceOfItsCommunicators) {
  const auto kept = record("first");
  const auto served = ServedRecord::serve(folder_, kept);
  ASSERT_TRUE(served) << served.error().message;
  const std::string port = ports()[0];
  EXPECT_EQ(ask(port, "trace begin 50000\n"), "recording\n");
  EXPECT_TRUE(ask(port, "trace begin 50000\n").starts_with("refused: another trace is recorded for "));
  kept->called(0, {.collective = Collective::barrier}, transport::Clock::now());
  kept->ended(0, FlightPath::in_network, FlightOutcome::success, transport::Clock::now());
  kept->segments().add({.at_ns = 7, .group = 9, .sequence = 5, .moment = SegmentMoment::came_down}, {});
  const auto trace = nlohmann::json::parse(ask(port, "trace json\n"));
  EXPECT_GT(trace.at("steady_ns").get<std::int64_t>(), 0);
  const auto& communicator = trace.at("communicators").at(0);
  EXPECT_EQ(communicator.at("rank"), 2);
  EXPECT_EQ(communicator.at("operations").at(0).at("call"), "barrier");
  EXPECT_EQ(communicator.at("segments"), nlohmann::json::parse("[[3, 7, 9, 0, 0, 5, 0, 0, 0]]"));
  EXPECT_TRUE(nlohmann::json::parse(ask(port, "trace json\n")).at("communicators").empty());
  for (const char* wrong : {"trace begin 0", "trace begin 60001", "trace begin x", "trace begin 1 "})
    EXPECT_TRUE(ask(port, std::string(wrong) + "\n").starts_with("refused: the time must be 1 to ")) << wrong;
}

TEST_F(StatusPort, TheFolderAndThePortBelongToTheUserOnly) {
  const auto served = ServedRecord::serve(folder_, record("first"));
  ASSERT_TRUE(served) << served.error().message;
  struct stat found{};
  ASSERT_EQ(::stat(folder_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700U);
  ASSERT_EQ(::stat(ports()[0].c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U);
}

TEST_F(StatusPort, RefusesAFolderThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(folder_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder_.c_str(), 0770), 0);
  const auto served = ServedRecord::serve(folder_, record("first"));
  ASSERT_FALSE(served);
  EXPECT_NE(served.error().message.find("other users can write to " + folder_), std::string::npos)
      << served.error().message;
}

TEST_F(StatusPort, GivesAnotherUserNoAnswer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  const auto served = ServedRecord::serve(folder_, record("first"));
  ASSERT_TRUE(served) << served.error().message;
  const std::string port = ports()[0];
  ASSERT_EQ(::chmod(above_.c_str(), 0711) + ::chmod(folder_.c_str(), 0711) + ::chmod(port.c_str(), 0666), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(2);
    ::_exit(ask(port, "status\n").empty() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(StatusPort, AFileOfARecordHasItsOperations) {
  const auto failed = record("first");
  failed->called(0, {.collective = Collective::barrier}, transport::Clock::now());
  failed->failed("rank 3 is gone");
  const auto path = write_flight_file(above_, failed);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, above_ + "/training-first-rank-2.json");
  EXPECT_FALSE(write_flight_file(above_ + "/nowhere", failed));
}

}  // namespace
}  // namespace tributary::client
