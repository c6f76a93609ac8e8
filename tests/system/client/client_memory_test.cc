// Memory of the library's own allocator, and registered memory, give the same results as other memory, without copies
// between ranks of one host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/client/group.h"

namespace tributary::test {
namespace {

using testing::HasSubstr;

tributary_info info_of(tributary_comm* comm) {
  tributary_info info{};
  info.struct_bytes = sizeof info;
  EXPECT_EQ(tributary_comm_info(comm, &info), TRIBUTARY_OK) << last_error();
  return info;
}

tributary_mem_details details_of(const tributary_mem* mem) {
  tributary_mem_details details{};
  details.struct_bytes = sizeof details;
  EXPECT_EQ(tributary_mem_info(mem, &details), TRIBUTARY_OK) << last_error();
  return details;
}

/// Owns floats from tributary_mem_alloc, registered or not.
class Buffer {
 public:
  Buffer(tributary_comm* comm, std::size_t count, bool registered) : comm_(comm), count_(count) {
    EXPECT_EQ(tributary_mem_alloc(count * sizeof(float), &memory_), TRIBUTARY_OK) << last_error();
    if (!registered) return;
    EXPECT_EQ(tributary_mem_register(comm, memory_, count * sizeof(float), TRIBUTARY_MEM_HOST, &mem_), TRIBUTARY_OK)
        << last_error();
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (mem_ != nullptr) {
      EXPECT_EQ(tributary_mem_deregister(comm_, mem_), TRIBUTARY_OK) << last_error();
    }
    EXPECT_EQ(tributary_mem_free(memory_), TRIBUTARY_OK) << last_error();
  }
  [[nodiscard]] float* data() { return static_cast<float*>(memory_); }
  [[nodiscard]] tributary_mem* mem() const { return mem_; }
  void fill(int rank) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = static_cast<float>(i % 1000) + static_cast<float>(rank);
  }
  void expect_sum(int ranks) {
    const auto n = static_cast<float>(ranks);
    for (std::size_t i = 0; i < count_; ++i)
      ASSERT_EQ(data()[i], n * static_cast<float>(i % 1000) + n * (n - 1) / 2) << "element " << i;
  }

 private:
  tributary_comm* comm_;
  std::size_t count_;
  void* memory_ = nullptr;
  tributary_mem* mem_ = nullptr;
};

TEST(Memory, RegisteredBuffersGiveTheSameSumsWithoutCopies) {
  constexpr int kRanks = 4;
  run_ranks(kRanks, [](tributary_comm* comm, int rank) {
    constexpr std::size_t kCount = 300'001;
    Buffer buffer(comm, kCount, true), again(comm, kCount, false);
    const bool shared = shares_memory() || info_of(comm).hosts != 0;
    const auto details = details_of(buffer.mem());
    if (shared) {
      EXPECT_EQ(details.shared, 1) << details.reason;
    } else {
      // The library lends the memory only to shared-memory connections that exist already, and it makes a connection
      // when a rank first needs it.
      EXPECT_NE(details.shared == 1, details.reason[0] != '\0') << details.reason;
    }
    for (int round = 0; round < 20; ++round) {
      Buffer& used = round % 3 == 2 ? again : buffer;
      used.fill(rank);
      ASSERT_EQ(tributary_all_reduce(used.data(), used.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
                TRIBUTARY_OK)
          << last_error();
      used.expect_sum(kRanks);
    }
    // The ranks now have connections, so the library lends them memory on every path.
    Buffer later(comm, kCount, true);
    EXPECT_EQ(details_of(later.mem()).shared, 1) << details_of(later.mem()).reason;
    later.fill(rank);
    ASSERT_EQ(tributary_all_reduce(later.data(), later.data(), kCount, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
              TRIBUTARY_OK)
        << last_error();
    later.expect_sum(kRanks);
    if (shares_memory()) {
      EXPECT_EQ(info_of(comm).path, TRIBUTARY_PATH_LOCAL);
    }
    if (shared) {
      EXPECT_GT(info_of(comm).direct, 5U);
    } else {
      EXPECT_EQ(info_of(comm).direct, 0U);
      EXPECT_STREQ(info_of(comm).transport, "tcp");
    }
  });
}

TEST(Memory, RangesAreRegisteredAndDeregistered) {
  constexpr int kRanks = 3;
  run_ranks(kRanks, [](tributary_comm* comm, int rank) {
    for (int round = 0; round < 40; ++round) {
      Buffer buffer(comm, 20'000 + static_cast<std::size_t>(round), true);
      for (int i = 0; i < 3; ++i) {
        buffer.fill(rank);
        ASSERT_EQ(tributary_all_reduce(buffer.data(), buffer.data(), 20'000 + static_cast<std::size_t>(round),
                                       TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm, nullptr),
                  TRIBUTARY_OK)
            << last_error();
        buffer.expect_sum(kRanks);
      }
      // no rank frees memory that another rank still uses: when the call ends, all ranks have finished
    }
  });
}

TEST(Memory, ErrorsSayWhatIsWrong) {
  run_ranks(2, [](tributary_comm* comm, int) {
    std::vector<float> heap(100'000);
    tributary_mem* mem = nullptr;
    ASSERT_EQ(tributary_mem_register(comm, heap.data(), heap.size() * 4, TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_OK);
    EXPECT_EQ(details_of(mem).shared, 0);
    EXPECT_NE(std::string(details_of(mem).reason), "");
    if (shares_memory()) {
      EXPECT_THAT(details_of(mem).reason, HasSubstr("tributary_mem_alloc"));
    }
    EXPECT_EQ(tributary_mem_deregister(comm, mem), TRIBUTARY_OK);
    EXPECT_EQ(tributary_mem_info(mem, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    tributary_mem_details details{};
    EXPECT_EQ(tributary_mem_info(mem, &details), TRIBUTARY_ERROR_BAD_ARGUMENT) << "struct_bytes is not set";
    details.struct_bytes = sizeof details;
    EXPECT_EQ(tributary_mem_info(mem, &details), TRIBUTARY_ERROR_BAD_ARGUMENT)
        << "the handle is no registration any more";
  });
  void* memory = nullptr;
  EXPECT_EQ(tributary_mem_alloc(0, &memory), TRIBUTARY_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(tributary_mem_alloc(SIZE_MAX, &memory), TRIBUTARY_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(tributary_mem_alloc(1, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(tributary_mem_free(nullptr), TRIBUTARY_OK);
  EXPECT_EQ(tributary_mem_free(static_cast<void*>(&memory)), TRIBUTARY_ERROR_BAD_ARGUMENT);
}

TEST(Memory, RegisteredMemoryIsNotFreedAndTheEndOfTheCommunicatorDeregistersIt) {
  if (!shares_memory()) GTEST_SKIP() << "the ranks of this run share no memory";
  std::vector<void*> left(2);
  run_ranks(2, [&](tributary_comm* comm, int rank) {
    void* memory = nullptr;
    ASSERT_EQ(tributary_mem_alloc(100'000, &memory), TRIBUTARY_OK);
    tributary_mem* mem = nullptr;
    ASSERT_EQ(tributary_mem_register(comm, memory, 100'000, TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_OK);
    EXPECT_EQ(tributary_mem_free(memory), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_THAT(last_error(), HasSubstr("still registered"));
    left[static_cast<std::size_t>(rank)] = memory;
  });
  for (void* memory : left) EXPECT_EQ(tributary_mem_free(memory), TRIBUTARY_OK) << last_error();
}

}  // namespace
}  // namespace tributary::test
