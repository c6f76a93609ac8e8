#include "service-kit/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tributary::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Modules : public ::testing::Test {
 protected:
  Modules() : folder_(::testing::TempDir() + "/modules-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~Modules() override { std::filesystem::remove_all(folder_); }
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  [[nodiscard]] ModuleName name(const std::string& file) const {
    return {.file = file, .table = "module_for_test", .folders = {folder_}, .remedy = "Install the package p"};
  }
  static std::string error_of(const ModuleName& name, std::string_view version = "1") {
    const auto loaded = load_module(name, version);
    return loaded ? "loaded" : loaded.error().message;
  }
  const std::string folder_;
};

TEST_F(Modules, LoadTheTableOfTheFirstFolderThatHasTheFile) {
  ModuleName wanted = name(MODULE_FILE);
  wanted.folders = {folder_, MODULE_FOLDER, "/nowhere"};
  const auto loaded = load_module(wanted, "1");
  ASSERT_TRUE(loaded) << loaded.error().message;
  struct Table : ModuleTable {
    int number;
  };
  EXPECT_EQ(static_cast<const Table*>(*loaded)->number, 42);
}

TEST_F(Modules, AMissingFileNamesTheFoldersAndWhatToInstall) {
  ModuleName wanted = name("missing.so");
  wanted.folders.emplace_back();
  EXPECT_EQ(error_of(wanted), "the module missing.so is not installed (looked in " + folder_ +
                                  ", the system's folders). Install the package p");
}

TEST_F(Modules, AFileThatCannotBeLoadedIsNotCalledMissing) {
  std::ofstream(folder_ + "/broken.so") << "no library";
  ModuleName wanted = name("broken.so");
  wanted.folders.emplace_back("/usr/lib");
  EXPECT_THAT(error_of(wanted), AllOf(HasSubstr("the module " + folder_ + "/broken.so cannot be loaded: "),
                                      Not(HasSubstr("not installed"))));
}

TEST_F(Modules, AnotherVersionIsRefused) {
  ModuleName wanted = name(MODULE_FILE);
  wanted.folders = {MODULE_FOLDER};
  EXPECT_EQ(error_of(wanted, "2"),
            "the module " MODULE_FILE " has version 1, and this program version 2: install both from one build");
}

TEST_F(Modules, AFileWithoutTheTableIsRefused) {
  ModuleName wanted = name(MODULE_FILE);
  wanted.folders = {MODULE_FOLDER};
  wanted.table = "another";
  EXPECT_THAT(error_of(wanted), HasSubstr("it has no table another"));
}

}  // namespace
}  // namespace tributary::service
