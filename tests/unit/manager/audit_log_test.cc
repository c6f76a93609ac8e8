// The file of the audit log: full disks, lines that were cut, and names that are hard to write.
#include "tree-manager/api/audit_log.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/manager/temporary_folder.h"

namespace tributary::manager {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Bounds the length of this process's files, as a full disk does.
class FilesUpTo {
 public:
  explicit FilesUpTo(std::uint64_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FilesUpTo() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, signal_);
  }
  FilesUpTo(const FilesUpTo&) = delete;
  FilesUpTo& operator=(const FilesUpTo&) = delete;

 private:
  void (*const signal_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before_{};
};

/// Keeps the process's log.
class KeptLog {
 public:
  KeptLog() {
    auto logger = std::make_shared<spdlog::logger>("kept", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_level(spdlog::level::err);
    spdlog::set_default_logger(std::move(logger));
  }
  ~KeptLog() { spdlog::set_default_logger(before_); }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;
  [[nodiscard]] std::size_t lines() const { return static_cast<std::size_t>(std::ranges::count(text_.str(), '\n')); }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::unique_ptr<AuditLog> open(const std::string& path) {
  auto log = AuditLog::open(path);
  EXPECT_TRUE(log.has_value()) << log.error().message;
  return std::move(*log);
}

class AuditLogTest : public ::testing::Test {
 protected:
  void delete_group(AuditLog& log, const std::string& group) const {
    log.write({.who = &who_, .from = "10.0.0.1", .method = "DELETE", .path = group, .status = 200, .why = {}}, 1000);
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("audit.json");
  Identity who_{.name = "alice", .tenant = "physics"};
};

TEST_F(AuditLogTest, CountsTheLinesThatAFullDiskDoesNotTakeAndSaysSoOnce) {
  const auto log = open(path_);
  delete_group(*log, "one");
  KeptLog said;
  {
    const FilesUpTo full(std::filesystem::file_size(path_));
    for (int i = 0; i < 3; ++i) delete_group(*log, "two");
  }
  EXPECT_THAT(said.text(), AllOf(HasSubstr("takes no line"), HasSubstr(path_)));
  EXPECT_EQ(said.lines(), 1U);
  delete_group(*log, "three");
  delete_group(*log, "four");
  const auto lines = lines_of(path_);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(json::parse(lines[1])["path"], "three");
  EXPECT_EQ(json::parse(lines[1])["lost"], 3);
  EXPECT_FALSE(json::parse(lines[2]).contains("lost"));
}

TEST_F(AuditLogTest, ALineAfterACutLineBeginsANewLine) {
  const auto log = open(path_);
  delete_group(*log, "one");
  {
    const FilesUpTo almost_full(std::filesystem::file_size(path_) + 10);
    delete_group(*log, "two");
    delete_group(*log, "three");
  }
  delete_group(*log, "four");
  const auto lines = lines_of(path_);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[1].size(), 10U);
  EXPECT_EQ(json::parse(lines[2])["path"], "four");
  EXPECT_EQ(json::parse(lines[2])["lost"], 2);
}

TEST_F(AuditLogTest, AFileWhoseLastLineIsCutGetsANewLineAfterARestart) {
  std::ofstream(path_) << R"({"time": 999, "wh)";
  delete_group(*open(path_), "one");
  delete_group(*open(path_), "two");
  const auto lines = lines_of(path_);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(json::parse(lines[1])["path"], "one");
  EXPECT_EQ(json::parse(lines[2])["path"], "two");
}

TEST_F(AuditLogTest, AnOpenFileIsNeverShortened) {
  std::ofstream(path_) << "{}\n";
  const auto log = open(path_);
  delete_group(*log, "one");
  ASSERT_TRUE(log->reopen().has_value());
  delete_group(*log, "two");
  EXPECT_THAT(lines_of(path_), ElementsAre("{}", HasSubstr("one"), HasSubstr("two")));
}

TEST_F(AuditLogTest, NoTextMakesALineTooLongOrBreaksIt) {
  const std::string odd(1000, '\xff');
  who_ = {.name = odd.substr(0, 63), .tenant = odd.substr(0, 63), .token_id = odd.substr(0, 63)};
  open(path_)->write(
      {.who = &who_, .from = odd, .method = odd, .path = odd, .object = odd, .status = 400, .why = odd, .code = "c"},
      1000);
  open(path_)->write({.from = "a\nb", .method = "PUT", .path = "\"\n{}", .status = 400, .why = "\n"}, 1000);
  const auto lines = lines_of(path_);
  ASSERT_THAT(lines, SizeIs(2));
  for (const std::string& line : lines) {
    EXPECT_LT(line.size(), AuditLog::kLineBytesMax);
    EXPECT_TRUE(json::accept(line)) << line;
  }
  EXPECT_EQ(json::parse(lines[1])["path"], "\"\n{}");
  EXPECT_EQ(json::parse(lines[1])["who"], "");
}

}  // namespace
}  // namespace tributary::manager
