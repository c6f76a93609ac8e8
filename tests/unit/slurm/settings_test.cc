// The administrator's file for Slurm: defaults, values, and mistakes with file and line.
#include "packaging/slurm/settings.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "packaging/slurm/options.h"

namespace {

using ::testing::HasSubstr;

class SlurmSettings : public ::testing::Test {
 protected:
  std::string read(const std::string& text) {
    const std::string path = testing::TempDir() + "slurm-settings-" + std::to_string(getpid());
    std::ofstream(path) << text;
    char sentence[kSentenceBytesMax] = "";
    const int result = tributary_read_settings(path.c_str(), &settings_, sentence);
    std::filesystem::remove(path);
    EXPECT_EQ(result == 0, sentence[0] == '\0');
    return sentence;
  }

  TributarySettings settings_{};
};

TEST_F(SlurmSettings, HaveDefaultsWithoutAFile) {
  char sentence[kSentenceBytesMax] = "";
  EXPECT_EQ(tributary_read_settings("/nonexistent/slurm.conf", &settings_, sentence), 0);
  EXPECT_STREQ(settings_.manager, "");
  EXPECT_STREQ(settings_.token_file, "/etc/tributary/job.token");
  EXPECT_STREQ(settings_.job_directory, "/run/tributary-jobs");
  EXPECT_STREQ(settings_.job_token_life, "");
  EXPECT_STREQ(settings_.command, "/usr/bin/tributary");
  EXPECT_STREQ(settings_.reservation_max, "");
}

TEST_F(SlurmSettings, TakeValuesAmongCommentsAndSpaces) {
  EXPECT_EQ(read("manager = https://m\ntls_ca = /ca.pem\n"), "");
  EXPECT_STREQ(settings_.manager, "https://m");
  EXPECT_STREQ(settings_.tls_ca, "/ca.pem");
  EXPECT_EQ(read("# a comment\n\n  manager =http://m:7470  # here\ntoken_file=/a b\r\n"), "");
  EXPECT_STREQ(settings_.manager, "http://m:7470");
  EXPECT_STREQ(settings_.token_file, "/a b");
}

TEST_F(SlurmSettings, NameFileAndLineOfAMistake) {
  EXPECT_THAT(read("\nmanagers = http://m:7470\n"),
              HasSubstr(":2: managers: there is no such setting; is 'manager' meant? (allowed: manager, tls_ca, "));
  EXPECT_THAT(read("manager\n"), HasSubstr(":1: 'manager': it has another form (allowed: lines `key = value`)"));
  EXPECT_THAT(read("manager = m:7470\n"), HasSubstr(":1: manager: 'm:7470': it is no URL (allowed: such as "));
  EXPECT_THAT(read("token_file = job.token\n"), HasSubstr("it is no whole path (allowed: a path that begins with /)"));
  EXPECT_THAT(read("command = tributary\n"), HasSubstr("it is no whole path (allowed: a path that begins with /)"));
  for (const char* life : {"7", "d", "0d", "7 d", "7days", "-1d"})
    EXPECT_THAT(read("job_token_life = " + std::string(life) + "\n"), HasSubstr("it is no time (allowed: such as 7d,"))
        << life;
  for (const char* life : {"7d", "12h", "90min", "300s", ""})
    EXPECT_EQ(read("job_token_life = " + std::string(life) + "\n"), "") << life;
  for (const char* most : {"0", "2", "9999", ""})
    EXPECT_EQ(read("reservation_max = " + std::string(most) + "\n"), "") << most;
  for (const char* most : {"-1", "two", "10000"})
    EXPECT_THAT(read("reservation_max = " + std::string(most) + "\n"), HasSubstr("it is no number of aggregators"))
        << most;
  EXPECT_THAT(read("token_file = /" + std::string(300, 'x') + "\n"),
              HasSubstr("token_file: the value is too long (allowed: at most 255 bytes)"));
  EXPECT_THAT(read("#" + std::string(3000, 'x') + "\n"),
              HasSubstr("the line is too long (allowed: at most 1022 bytes)"));
}

}  // namespace
