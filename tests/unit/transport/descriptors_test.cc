// The limit of descriptors: the library raises it where it needs more, and names it in the error where it does not
// suffice.
#include "tributary/transport/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace tributary::transport {
namespace {

/// Sets a soft limit during its own lifetime.
class SoftLimit {
 public:
  explicit SoftLimit(rlim_t soft) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit lower{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  ~SoftLimit() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Descriptors, CountsTheOpenDescriptors) {
  const auto before = descriptor_limit().open;
  const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(one, 0);
  EXPECT_EQ(descriptor_limit().open, before + 1);
  ::close(one);
}

TEST(Descriptors, RaisesTheSoftLimitOnlyWhereMoreAreNeeded) {
  const SoftLimit low(200);
  raise_descriptor_limit(20);
  EXPECT_EQ(descriptor_limit().soft, 200U) << "the soft limit is enough";
  raise_descriptor_limit(200);
  const auto limit = descriptor_limit();
  EXPECT_EQ(limit.soft, limit.hard);
  raise_descriptor_limit(1);
  EXPECT_EQ(descriptor_limit().soft, limit.hard) << "the function never lowers the limit";
}

TEST(Descriptors, NamesTheLimitThatARankCannotKeep) {
  EXPECT_TRUE(check_descriptors({.soft = 1024, .hard = 4096, .open = 96}, 4000, "rank 0"));
  const Status status = check_descriptors({.soft = 1024, .hard = 4096, .open = 97}, 4000, "rank 0 of 3937 ranks");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::exhausted);
  for (const char* words : {"rank 0 of 3937 ranks", "4000", "97", "4096", "RLIMIT_NOFILE", "ulimit"})
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
}

TEST(Descriptors, SaysWhatToDoWhereNoneIsLeft) {
  const SoftLimit low(200);
  EXPECT_NE(descriptor_advice(EMFILE).find("may have 200 file descriptors"), std::string::npos);
  EXPECT_NE(descriptor_advice(ENFILE).find("fs.file-max"), std::string::npos);
  EXPECT_EQ(descriptor_advice(ECONNREFUSED), "");
}

}  // namespace
}  // namespace tributary::transport
