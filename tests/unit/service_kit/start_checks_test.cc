#include "service-kit/start_checks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tributary::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const Status& status) {
  return status ? "good" : status.error().message;
}

class StartChecks : public ::testing::Test {
 protected:
  StartChecks() : folder_(::testing::TempDir() + "/start-checks-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~StartChecks() override { std::filesystem::remove_all(folder_); }
  StartChecks(const StartChecks&) = delete;
  StartChecks& operator=(const StartChecks&) = delete;
  const std::string folder_;
};

TEST_F(StartChecks, TakeOnlyAddressesOfThisHost) {
  EXPECT_EQ(error_of(check_listen("listen", {"127.0.0.1", 7470})), "good");
  EXPECT_EQ(error_of(check_listen("listen", {"0.0.0.0", 7470})), "good");
  EXPECT_THAT(error_of(check_listen("listen", {"192.0.2.1", 7470})),
              AllOf(HasSubstr("listen: '192.0.2.1:7470'"), HasSubstr("no process can listen there")));
  EXPECT_THAT(error_of(check_listen("listen", {"no such host", 7470})), HasSubstr("the host is not known"));
}

/// A socket that is bound to a free port of the loopback, and listens.
class Listening {
 public:
  explicit Listening(int type) : socket_(socket(AF_INET, type, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof at;
    EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&at), bytes), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(listen(socket_, 1), 0);
    }
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
    at_ = {"127.0.0.1", ntohs(at.sin_port)};
  }
  ~Listening() { close(socket_); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  [[nodiscard]] const Endpoint& at() const { return at_; }

 private:
  int socket_;
  Endpoint at_;
};

TEST_F(StartChecks, RefuseAPortThatAProcessHolds) {
  const Listening stream(SOCK_STREAM), datagrams(SOCK_DGRAM);
  const Status held = check_port("listen", stream.at());
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Errc::io) << "the configuration is right";
  EXPECT_THAT(error_of(held),
              AllOf(HasSubstr("listen: '" + to_string(stream.at()) + "'"), HasSubstr("another process")));
  EXPECT_EQ(error_of(check_port("listen", {stream.at().host, 0})), "good");
  EXPECT_NE(error_of(check_port("listen", datagrams.at(), PortKind::datagram)), "good");
  EXPECT_EQ(error_of(check_listen("listen", stream.at())), "good") << "this check is only about the address";
}

TEST_F(StartChecks, RefuseALockThatAProcessHolds) {
  const std::string path = folder_ + "/lock";
  EXPECT_EQ(error_of(check_lock("state_directory", path)), "good") << "no file, no lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(error_of(check_lock("state_directory", path)), "good");
  ASSERT_EQ(flock(file, LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(error_of(check_lock("state_directory", path)), HasSubstr("another process holds its lock"));
  close(file);
}

TEST_F(StartChecks, TakeFilesThatCanBeWritten) {
  EXPECT_EQ(error_of(check_writable_file("ready_file", "")), "good") << "no file is wanted";
  EXPECT_EQ(error_of(check_writable_file("ready_file", folder_ + "/ready")), "good");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ready")) << "nothing is made";
  EXPECT_THAT(error_of(check_writable_file("ready_file", folder_ + "/nowhere/ready")), HasSubstr("its folder"));
  EXPECT_THAT(error_of(check_writable_file("ready_file", folder_)), HasSubstr("it is no file"));
}

TEST_F(StartChecks, TakeFoldersThatAreThereOrCanBeMade) {
  EXPECT_EQ(error_of(check_folder("state_directory", folder_)), "good");
  EXPECT_EQ(error_of(check_folder("state_directory", folder_ + "/a/b")), "good");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a")) << "nothing is made";
  std::ofstream(folder_ + "/file") << "x";
  EXPECT_THAT(error_of(check_folder("state_directory", folder_ + "/file")), HasSubstr("it is no folder"));
  EXPECT_THAT(error_of(check_folder("state_directory", folder_ + "/file/below")), HasSubstr("cannot make it"));
}

}  // namespace
}  // namespace tributary::service
