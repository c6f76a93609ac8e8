#include "service-kit/one_setting.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tributary::service {
namespace {

class OneSetting : public ::testing::Test {
 protected:
  OneSetting() : file_(std::filesystem::temp_directory_path() / ("one-setting-" + std::to_string(getpid()))) {
    unsetenv("TEST_REQUIRE");
    unsetenv("TEST_CONFIG");
  }
  ~OneSetting() override {
    std::filesystem::remove(file_);
    unsetenv("TEST_REQUIRE");
    unsetenv("TEST_CONFIG");
  }
  void write(const std::string& text) {
    std::ofstream(file_) << text;
    setenv("TEST_CONFIG", file_.c_str(), 1);
  }
  [[nodiscard]] static std::string required() { return one_setting("TEST_REQUIRE", "TEST_CONFIG", "require"); }

  const std::string file_;
};

TEST_F(OneSetting, ComesFromTheFileAmongOtherSettings) {
  EXPECT_EQ(required(), "") << "neither variable is set";
  write("lanes: 2\nrequire: in-network\npath: [auto]\n");
  EXPECT_EQ(required(), "in-network");
  write("lanes: 2\n");
  EXPECT_EQ(required(), "");
  write("require: [one, other]\n");
  EXPECT_EQ(required(), "one,other");
}

TEST_F(OneSetting, TheVariableStandsBeforeTheFile) {
  write("require: in-network\n");
  setenv("TEST_REQUIRE", "none", 1);
  EXPECT_EQ(required(), "none");
  setenv("TEST_REQUIRE", "", 1);
  EXPECT_EQ(required(), "in-network") << "an empty variable counts as not set";
}

TEST_F(OneSetting, ReportsNoMistakesOfOtherSettings) {
  write("[");
  EXPECT_EQ(required(), "");
  setenv("TEST_CONFIG", "/nowhere", 1);
  EXPECT_EQ(required(), "");
}

}  // namespace
}  // namespace tributary::service
