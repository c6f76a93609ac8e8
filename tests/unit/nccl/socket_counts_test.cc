#include "client/plugins/nccl/socket_counts.h"

#include <gtest/gtest.h>

namespace tributary::nccl {
namespace {

struct Case {
  const char* threads;
  const char* per_thread;
  const char* vendor;
  SocketCounts counts;
  bool complains = false;
};

TEST(SocketCounts, AreThoseOfNcclsOwnSockets) {
  for (const Case& one : {
           Case{nullptr, nullptr, "", {0, 0}},
           Case{nullptr, nullptr, "0x8086", {0, 0}},
           Case{nullptr, nullptr, "0x1d0f", {2, 16}},
           Case{nullptr, nullptr, "0x1ae0", {4, 4}},
           Case{"4", nullptr, "", {4, 4}},
           Case{"4", nullptr, "0x1d0f", {4, 32}},
           Case{nullptr, "4", "0x1d0f", {2, 8}},
           Case{nullptr, "4", "", {0, 0}},
           Case{"0", "8", "0x1d0f", {0, 0}},
           Case{"2", "0", "", {0, 0}},
           Case{"-2", "-2", "0x1ae0", {4, 4}},
           Case{"", "", "0x1ae0", {4, 4}},
           Case{"16", "4", "", {16, 64}},
           Case{"17", "1", "", {16, 16}, true},
           Case{"16", "5", "", {16, 64}, true},
           Case{"3", "64", "", {3, 63}, true},
           Case{"99999999999", "99999999999", "", {16, 64}, true},
           Case{"two", nullptr, "", {0, 0}, true},
           Case{"2x", "-1", "0x1ae0", {4, 4}, true},
       }) {
    std::string complaint;
    EXPECT_EQ(socket_counts(one.threads, one.per_thread, one.vendor, complaint), one.counts)
        << (one.threads ? one.threads : "none") << ", " << (one.per_thread ? one.per_thread : "none");
    EXPECT_EQ(!complaint.empty(), one.complains) << complaint;
    EXPECT_TRUE(is_possible(one.counts));
  }
}

TEST(SocketCounts, TheCountsOfAHandleAreBounded) {
  for (const SocketCounts& bad :
       {SocketCounts{0, 1}, SocketCounts{17, 17}, SocketCounts{1, 65}, SocketCounts{4, 2}, SocketCounts{3, 4}})
    EXPECT_FALSE(is_possible(bad)) << bad.threads << " threads, " << bad.sockets << " sockets";
}

}  // namespace
}  // namespace tributary::nccl
