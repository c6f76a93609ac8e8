// The job's own copy of the token: only its user can read it, and nobody can put another file in its place.
#include "packaging/slurm/job_token.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "packaging/slurm/options.h"

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SlurmJobToken : public ::testing::Test {
 protected:
  SlurmJobToken() : folder_(testing::TempDir() + "slurm-token-" + std::to_string(getpid())) {
    fs::create_directory(folder_);
    std::ofstream(folder_ + "/source") << "secret\n";
  }
  ~SlurmJobToken() override { fs::remove_all(folder_); }

  std::string make(const std::string& directory, const std::string& source) {
    char sentence[kSentenceBytesMax] = "";
    const std::string from = folder_ + "/" + source;
    return tributary_make_job_token((folder_ + "/" + directory).c_str(), 7, getuid(), from.c_str(), sentence) == 0
               ? ""
               : sentence;
  }
  std::string text_of(const std::string& file) {
    std::ifstream in(folder_ + "/" + file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  mode_t mode_of(const std::string& file) {
    struct stat status{};
    EXPECT_EQ(::stat((folder_ + "/" + file).c_str(), &status), 0);
    return status.st_mode & 07777U;
  }

  std::string folder_;
};

TEST_F(SlurmJobToken, OnlyItsUserCanReadItInADirectoryThatNobodyCanList) {
  EXPECT_EQ(make("jobs", "source"), "");
  EXPECT_EQ(text_of("jobs/7.token"), "secret\n");
  EXPECT_EQ(mode_of("jobs/7.token"), 0400U);
  EXPECT_EQ(mode_of("jobs"), 0711U);
}

TEST_F(SlurmJobToken, IsMadeAgainForAJobThatIsStartedAgain) {
  EXPECT_EQ(make("jobs", "source"), "");
  std::ofstream(folder_ + "/source") << "another\n";
  EXPECT_EQ(make("jobs", "source"), "");
  EXPECT_EQ(text_of("jobs/7.token"), "another\n");
}

TEST_F(SlurmJobToken, IsRemovedAtTheEndOfTheJob) {
  EXPECT_EQ(make("jobs", "source"), "");
  tributary_remove_job_token((folder_ + "/jobs").c_str(), 7);
  tributary_remove_job_token((folder_ + "/jobs").c_str(), 7);
  EXPECT_TRUE(fs::is_empty(folder_ + "/jobs"));
}

TEST_F(SlurmJobToken, IsNotWrittenThroughALinkThatAnotherHasLaid) {
  fs::create_directory(folder_ + "/jobs");
  ::chmod((folder_ + "/jobs").c_str(), 0711);
  std::ofstream(folder_ + "/victim") << "untouched";
  for (const char* name : {"/jobs/7.token", "/jobs/7.token.new"})
    fs::create_symlink(folder_ + "/victim", folder_ + name);
  EXPECT_EQ(make("jobs", "source"), "");
  EXPECT_EQ(text_of("victim"), "untouched");
  EXPECT_FALSE(fs::is_symlink(folder_ + "/jobs/7.token"));
}

TEST_F(SlurmJobToken, IsNotPutIntoADirectoryThatOthersCanChange) {
  fs::create_directory(folder_ + "/jobs");
  ::chmod((folder_ + "/jobs").c_str(), 0777);
  EXPECT_THAT(make("jobs", "source"), HasSubstr("is no directory that this user alone can change"));
  fs::create_directory(folder_ + "/real");
  fs::create_symlink(folder_ + "/real", folder_ + "/link");
  EXPECT_THAT(make("link", "source"), HasSubstr("is no directory that this user alone can change"));
  EXPECT_TRUE(fs::is_empty(folder_ + "/real"));
}

TEST_F(SlurmJobToken, NeedsATokenToCopy) {
  EXPECT_THAT(make("jobs", "missing"), HasSubstr("cannot open the job token"));
  std::ofstream(folder_ + "/empty") << "";
  EXPECT_THAT(make("jobs", "empty"), HasSubstr("is empty"));
  EXPECT_FALSE(fs::exists(folder_ + "/jobs/7.token"));
}

/// A job's token that a command makes: here a script in place of `tributary`.
class SlurmOwnToken : public SlurmJobToken {
 protected:
  void use_command(const std::string& script) {
    const std::string path = folder_ + "/command";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
    std::snprintf(settings_.command, sizeof settings_.command, "%s", path.c_str());
    std::snprintf(settings_.job_directory, sizeof settings_.job_directory, "%s/jobs", folder_.c_str());
    std::snprintf(settings_.manager, sizeof settings_.manager, "http://m:7470");
    std::snprintf(settings_.token_file, sizeof settings_.token_file, "%s/source", folder_.c_str());
    std::snprintf(settings_.job_token_life, sizeof settings_.job_token_life, "7d");
  }
  std::string issue() {
    char sentence[kSentenceBytesMax] = "";
    return tributary_issue_job_token(&settings_, 7, getuid(), sentence) == 0 ? "" : sentence;
  }
  std::string revoke() {
    char sentence[kSentenceBytesMax] = "";
    return tributary_revoke_job_token(&settings_, 7, sentence) == 0 ? "" : sentence;
  }

  TributarySettings settings_{};
};

TEST_F(SlurmOwnToken, IsMadeForTheJobAndItsUserAndReadByThatUserAlone) {
  use_command("for word; do last=$word; done; echo \"$@\" >\"$last\"");
  EXPECT_EQ(issue(), "");
  EXPECT_EQ(mode_of("jobs/7.token"), 0400U);
  EXPECT_THAT(text_of("jobs/7.token"),
              testing::AllOf(HasSubstr("token make --manager http://m:7470"), HasSubstr("--job slurm-7 --life 7d"),
                             HasSubstr("--tenant " + std::string(getuid() == 0 ? "root" : ""))));
}

TEST_F(SlurmOwnToken, IsMissingIfTheManagerRefusesAndTheReasonIsReported) {
  use_command("echo 'tributary: 401: no' >&2; exit 1");
  EXPECT_EQ(issue(), "tributary: 401: no");
  EXPECT_FALSE(fs::exists(folder_ + "/jobs/7.token"));
  EXPECT_FALSE(fs::exists(folder_ + "/jobs/7.token.new"));
}

TEST_F(SlurmOwnToken, AMissingOrSilentCommandIsAnError) {
  use_command("exit 3");
  EXPECT_THAT(issue(), HasSubstr("command failed"));
  fs::remove(folder_ + "/command");
  EXPECT_THAT(issue(), HasSubstr("cannot be started: No such file"));
}

TEST_F(SlurmOwnToken, IsRevokedByStandardInputAndNotByAnArgument) {
  use_command("for word; do last=$word; done; echo \"$@\" >\"$last\"");
  EXPECT_EQ(revoke(), "") << "there is no token to revoke";
  EXPECT_EQ(issue(), "");
  use_command("echo \"$@\" >" + folder_ + "/words; cat >" + folder_ + "/said");
  EXPECT_EQ(revoke(), "");
  EXPECT_EQ(text_of("said"), text_of("jobs/7.token"));
  EXPECT_THAT(text_of("words"), testing::AllOf(HasSubstr("token revoke"), testing::EndsWith(" -\n")));
}

}  // namespace
