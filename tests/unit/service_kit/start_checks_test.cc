#include "service-kit/start_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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

TEST_F(StartChecks, TakeAddressesOfThisHostAlone) {
  EXPECT_EQ(error_of(check_listen("listen", {"127.0.0.1", 7470})), "good");
  EXPECT_EQ(error_of(check_listen("listen", {"0.0.0.0", 7470})), "good");
  EXPECT_THAT(error_of(check_listen("listen", {"192.0.2.1", 7470})),
              AllOf(HasSubstr("listen: '192.0.2.1:7470'"), HasSubstr("no process can listen there")));
  EXPECT_THAT(error_of(check_listen("listen", {"no such host", 7470})), HasSubstr("the host is not known"));
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
