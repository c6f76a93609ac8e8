// The plugin takes libtributary's settings from where libtributary takes them: the variable, else the file.
#include "client/plugins/nccl/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tributary::nccl {
namespace {

using namespace std::chrono_literals;

class PluginSettingsTest : public ::testing::Test {
 protected:
  PluginSettingsTest() { clear(); }
  ~PluginSettingsTest() override {
    std::filesystem::remove(file_);
    clear();
  }
  void write(const std::string& text) {
    std::ofstream(file_) << text;
    setenv("TRIBUTARY_CONFIG", file_.c_str(), 1);
  }

 private:
  static void clear() {
    for (const char* name : {"TRIBUTARY_CONFIG", "TRIBUTARY_SECURITY", "TRIBUTARY_PACKET_SECURITY", "TRIBUTARY_IFNAME",
                             "TRIBUTARY_TIMEOUT", "TRIBUTARY_LINK_RATE"})
      unsetenv(name);
  }
  const std::string file_ =
      std::filesystem::temp_directory_path() / ("nccl-settings-" + std::to_string(::getpid()) + ".yaml");
};

TEST_F(PluginSettingsTest, ComeFromTheFileOfTheLibrary) {
  write("security: encrypt\ntimeout: 20\nlink_rate: 25Gbit/s\nifname: [eth0, eth1]\nlanes: 2\n");
  const PluginSettings settings = read_settings();
  EXPECT_EQ(settings.security, PacketSecurity::encrypt);
  EXPECT_EQ(settings.timeout, 20s);
  EXPECT_EQ(settings.link_rate, 25'000'000'000U);
  EXPECT_EQ(settings.interfaces, (std::vector<std::string>{"eth0", "eth1"}));
  write("packet_security: authenticate\n");
  EXPECT_EQ(read_settings().security, PacketSecurity::authenticate) << "its old name";
  for (const char* text :
       {"packet_security: authenticate\nsecurity: encrypt\n", "security: encrypt\npacket_security: authenticate\n"}) {
    write(text);
    EXPECT_EQ(read_settings().security, PacketSecurity::encrypt) << text;
  }
}

TEST_F(PluginSettingsTest, VariablesStandBeforeTheFile) {
  write("security: encrypt\ntimeout: 20\n");
  setenv("TRIBUTARY_TIMEOUT", "7", 1);
  setenv("TRIBUTARY_PACKET_SECURITY", "off", 1);
  EXPECT_EQ(read_settings().timeout, 7s);
  EXPECT_EQ(read_settings().security, PacketSecurity::off);
  setenv("TRIBUTARY_SECURITY", "authenticate", 1);
  EXPECT_EQ(read_settings().security, PacketSecurity::authenticate);
}

TEST_F(PluginSettingsTest, AWrongSecurityIsNoReasonToSendInClear) {
  write("security: encrpyt\n");
  EXPECT_EQ(read_settings().security, PacketSecurity::encrypt) << "libtributary says what is wrong";
}

}  // namespace
}  // namespace tributary::nccl
