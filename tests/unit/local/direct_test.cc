// Long calls read directly from the ranks' buffers: their results are right, all ranks agree, and no rank reads a
// buffer after the call.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "client/tuning/attach_speed.h"
#include "tests/unit/local/threads.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::client::local {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<std::pair<FileDescriptor, FileDescriptor>> make_inboxes(std::uint32_t ranks) {
  std::vector<std::pair<FileDescriptor, FileDescriptor>> ends;
  for (std::uint32_t r = 0; r < ranks; ++r) ends.push_back(std::move(*make_inbox()));
  return ends;
}

Inboxes inboxes_of(std::vector<std::pair<FileDescriptor, FileDescriptor>>& ends, std::uint32_t rank) {
  Inboxes inboxes{.own = FileDescriptor(dup(ends[rank].first.number()))};
  for (auto& [read, write] : ends) inboxes.of.emplace_back(dup(write.number()));
  return inboxes;
}

/// Runs ranks as threads that can announce memory.
void run_sharing_ranks(GroupSettings settings, const std::function<void(LocalGroup&)>& body) {
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena) << arena.error().message;
  auto ends = make_inboxes(settings.ranks);
  std::vector<std::unique_ptr<LocalGroup>> groups;
  for (settings.rank = 0; settings.rank < settings.ranks; ++settings.rank) {
    groups.push_back(
        std::make_unique<LocalGroup>(*arena, settings, std::vector<FileDescriptor>{}, inboxes_of(ends, settings.rank)));
  }
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { body(*group); });
  for (auto& thread : threads) thread.join();
}

/// Memory of int32 elements that the ranks of the group may map.
class SharedVector {
 public:
  SharedVector(LocalGroup& group, std::size_t count) : count_(count) {
    const std::size_t bytes = std::max<std::size_t>(count, 1) * sizeof(std::int32_t);
    memory_ = transport::allocate_shared(bytes).value();
    auto range = transport::find_shared({memory_, bytes});
    EXPECT_TRUE(range);
    auto announced = AnnouncedRange::announce(group.regions(), memory_, std::move(*range));
    EXPECT_TRUE(announced);
    if (announced) announced_.emplace_back(std::move(*announced));
  }
  SharedVector(const SharedVector&) = delete;
  SharedVector& operator=(const SharedVector&) = delete;
  ~SharedVector() {
    announced_.clear();
    EXPECT_TRUE(transport::free_shared(memory_));
  }
  [[nodiscard]] std::span<std::int32_t> all() { return {reinterpret_cast<std::int32_t*>(memory_), count_}; }

 private:
  std::size_t count_;
  std::byte* memory_ = nullptr;
  std::vector<AnnouncedRange> announced_;
};

Call call_of(Collective collective, std::span<const std::int32_t> send, std::span<std::int32_t> recv,
             std::uint64_t count, std::uint32_t root = 0, bool in_place = false) {
  return {
      .signature = {.collective = collective, .dtype = DType::int32, .op = ReduceOp::sum, .root = root, .count = count},
      .send = reinterpret_cast<const std::byte*>(send.data()),
      .recv = reinterpret_cast<std::byte*>(recv.data()),
      .in_place = in_place};
}

/// After this call, every rank has mapped the announced memory.
void let_all_map(LocalGroup& group) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(group.run({.signature = {.collective = Collective::barrier}}));
    group.attend();
  }
  ASSERT_TRUE(group.run({.signature = {.collective = Collective::barrier}}));
}

std::int32_t value(std::uint32_t rank, std::size_t i) {
  return static_cast<std::int32_t>(i * 7 + rank * 1'000'003);
}

struct Expectation {
  std::uint32_t ranks, rank, root;
  std::uint64_t count;
  [[nodiscard]] std::int32_t sum(std::size_t i) const {
    std::int32_t s = 0;
    for (std::uint32_t r = 0; r < ranks; ++r) s += value(r, i);
    return s;
  }
  /// Returns an element of recv after the collective of inputs value(rank, i).
  [[nodiscard]] std::int32_t at(Collective collective, std::size_t i) const {
    const auto part = static_cast<std::uint32_t>(i / count);
    switch (collective) {
      case Collective::reduce_scatter:
        return sum(rank * count + i);
      case Collective::broadcast:
        return value(root, i);
      case Collective::all_gather:
      case Collective::gather:
        return value(part, i % count);
      case Collective::scatter:
        return value(root, rank * count + i);
      case Collective::all_to_all:
        return value(part, rank * count + i % count);
      default:
        return sum(i);
    }
  }
};

TEST(LocalDirect, EveryCollectiveOverEveryNumberOfRanks) {
  for (const std::uint32_t ranks : {2U, 3U, 5U}) {
    for (const Collective collective :
         {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::broadcast,
          Collective::all_gather, Collective::gather, Collective::scatter, Collective::all_to_all}) {
      for (const std::uint64_t count : {65ULL, 1000ULL, 50'001ULL}) {
        run_sharing_ranks(settings_of(ranks), [&](LocalGroup& group) {
          const std::uint32_t root = ranks - 1;
          SharedVector send(group, count * ranks), recv(group, count * ranks);
          let_all_map(group);
          for (std::size_t i = 0; i < send.all().size(); ++i) send.all()[i] = value(group.rank(), i);
          for (int round = 0; round < 3; ++round) {
            std::ranges::fill(recv.all(), -1);
            ASSERT_TRUE(group.run(call_of(collective, send.all(), recv.all(), count, root)));
            const bool parts = collective == Collective::all_gather || collective == Collective::gather ||
                               collective == Collective::all_to_all;
            const bool mine =
                group.rank() == root || (collective != Collective::reduce && collective != Collective::gather);
            const Expectation expected{ranks, group.rank(), root, count};
            for (std::size_t i = 0; i < recv.all().size(); ++i) {
              const bool written = mine && i < (parts ? count * ranks : count);
              ASSERT_EQ(recv.all()[i], written ? expected.at(collective, i) : -1)
                  << "collective " << static_cast<int>(collective) << " ranks " << ranks << " count " << count
                  << " rank " << group.rank() << " element " << i;
            }
          }
          const bool in_note = count == 65 && collective != Collective::reduce_scatter &&
                               collective != Collective::scatter && collective != Collective::all_to_all;
          if (!in_note) {
            EXPECT_GE(group.direct_calls(), 3U) << static_cast<int>(collective) << " of " << count;
          }
        });
      }
    }
  }
}

TEST(LocalDirect, InPlaceAndFromTheMiddleOfARange) {
  run_sharing_ranks(settings_of(3), [](LocalGroup& group) {
    constexpr std::uint64_t kCount = 30'011;
    SharedVector memory(group, 3 * kCount + 5);
    let_all_map(group);
    const auto all = memory.all().subspan(5);
    const auto fill = [&] {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = value(group.rank(), i);
    };
    fill();
    ASSERT_TRUE(group.run(call_of(Collective::all_reduce, all.first(kCount), all.first(kCount), kCount, 0, true)));
    const Expectation expected{3, group.rank(), 0, kCount};
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(all[i], expected.sum(i));
    for (std::size_t i = kCount; i < all.size(); ++i)
      ASSERT_EQ(all[i], value(group.rank(), i)) << "this element is not part of the call";
    fill();
    const auto own = all.subspan(group.rank() * kCount, kCount);
    ASSERT_TRUE(group.run(call_of(Collective::reduce_scatter, all, own, kCount, 0, true)));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(own[i], expected.sum(group.rank() * kCount + i));
    EXPECT_EQ(group.direct_calls(), 2U);
  });
}

TEST(LocalDirect, OneRankWithoutMappedMemoryMakesAllRanksCopy) {
  run_sharing_ranks(settings_of(3), [](LocalGroup& group) {
    constexpr std::uint64_t kCount = 20'000;
    SharedVector shared(group, kCount);
    let_all_map(group);
    std::vector<std::int32_t> own(kCount);
    const std::span<std::int32_t> buffer = group.rank() == 1 ? std::span(own) : shared.all();
    for (std::size_t i = 0; i < kCount; ++i) buffer[i] = value(group.rank(), i);
    ASSERT_TRUE(group.run(call_of(Collective::all_reduce, buffer, buffer, kCount, 0, true)));
    const Expectation expected{3, group.rank(), 0, kCount};
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(buffer[i], expected.sum(i));
    EXPECT_EQ(group.direct_calls(), 0U);
  });
}

TEST(LocalDirect, ARangeThatIsTakenBackIsDroppedByAllAndItsPlaceUsedAgain) {
  run_sharing_ranks(settings_of(3), [](LocalGroup& group) {
    for (int round = 0; round < 50; ++round) {  // more rounds than there are places
      SharedVector memory(group, 5000);
      let_all_map(group);
      EXPECT_EQ(group.regions()->mapped(), 2U);
      for (std::size_t i = 0; i < 5000; ++i) memory.all()[i] = value(group.rank(), i);
      ASSERT_TRUE(group.run(call_of(Collective::all_reduce, memory.all(), memory.all(), 5000, 0, true)));
      ASSERT_EQ(memory.all()[77], (Expectation{3, 0, 0, 5000}.sum(77)));
    }
    let_all_map(group);
    EXPECT_EQ(group.regions()->mapped(), 0U);
    EXPECT_EQ(group.direct_calls(), 50U);
  });
}

TEST(LocalDirect, MoreRangesThanPlacesAreRefusedWithTheReason) {
  run_sharing_ranks(settings_of(2), [](LocalGroup& group) {
    std::vector<std::unique_ptr<SharedVector>> all;
    for (std::uint32_t i = 0; i < kRegionsMax; ++i) all.push_back(std::make_unique<SharedVector>(group, 100));
    std::byte* one = *transport::allocate_shared(100);
    auto refused = AnnouncedRange::announce(group.regions(), one, std::move(*transport::find_shared({one, 100})));
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("at most 32 ranges"));
    EXPECT_TRUE(transport::free_shared(one));
    let_all_map(group);
    EXPECT_EQ(group.regions()->mapped(), kRegionsMax);
  });
}

TEST(LocalDirect, ANoteThatIsGarbageEndsTheGroup) {
  auto settings = settings_of(2);
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena);
  auto ends = make_inboxes(2);
  LocalGroup group(*arena, settings, {}, inboxes_of(ends, 0));
  settings.rank = 1;
  LocalGroup other(*arena, settings, {}, inboxes_of(ends, 1));
  SharedVector here(group, 5000), there(other, 5000);
  for (auto* g : {&group, &other, &group}) g->attend();
  group.begin(call_of(Collective::all_reduce, here.all(), here.all(), 5000, 0, true));
  other.begin(call_of(Collective::all_reduce, there.all(), there.all(), 5000, 0, true));
  const Places places((*arena)->bytes().data(), layout_of(settings));
  Reach reach;
  std::memcpy(&reach, places.note(1, 1).few, sizeof reach);
  ASSERT_EQ(reach.send.way, Way::region);
  reach.send.at += 4;  // one element beyond the end
  std::memcpy(places.note(1, 1).few, &reach, sizeof reach);
  EXPECT_FALSE(group.advance());
  ASSERT_TRUE(group.advance());
  ASSERT_FALSE(group.outcome());
  EXPECT_EQ(group.outcome().error().code, Errc::corrupt);
  while (!other.advance()) std::this_thread::yield();
  EXPECT_FALSE(other.outcome());
}

std::size_t descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{}));
}
std::size_t mappings_of(std::string_view name) {
  std::ifstream maps("/proc/self/maps");
  std::size_t n = 0;
  for (std::string line; std::getline(maps, line);) n += line.contains(name) ? 1U : 0U;
  return n;
}

/// Runs ranks as processes: `rank_1` in the child. Returns the child's exit status.
int run_two_processes(const std::function<void(LocalGroup&)>& rank_0, const std::function<void(LocalGroup&)>& rank_1,
                      tuning::AttachUse attach = tuning::AttachUse::always) {
  GroupSettings settings{.ranks = 2, .note_bytes = 256, .timeout = 10s, .host = "here", .attach = attach};
  auto arena = create_arena(settings);
  EXPECT_TRUE(arena);
  auto ends = make_inboxes(2);
  const pid_t parent = getpid();
  std::array<int, 2> started{};
  EXPECT_EQ(pipe(started.data()), 0);
  const pid_t child = fork();
  const auto run = [&](std::uint32_t rank, pid_t first, pid_t second, const std::function<void(LocalGroup&)>& body) {
    std::vector<FileDescriptor> processes;
    for (const pid_t pid : {first, second}) processes.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    settings.rank = rank;
    LocalGroup group(*arena, settings, std::move(processes), inboxes_of(ends, rank));
    body(group);
  };
  if (child == 0) {
    run(1, parent, getpid(), rank_1);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  run(0, parent, child, rank_0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(started[0]);
  close(started[1]);
  return status;
}

TEST(LocalDirect, AttachesToMemoryThatNobodyHasAnnounced) {
  const auto body = [](LocalGroup& group) {
    constexpr std::uint64_t kCount = 300'007;
    std::vector<std::int32_t> send(kCount), recv(kCount);
    for (std::size_t i = 0; i < kCount; ++i) send[i] = value(group.rank(), i);
    ASSERT_TRUE(group.run({.signature = {.collective = Collective::barrier}}));
    for (int round = 0; round < 3; ++round) {
      std::ranges::fill(recv, 0);
      ASSERT_TRUE(group.run(call_of(Collective::all_reduce, send, recv, kCount)));
      const Expectation expected{2, 0, 0, kCount};
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(recv[i], expected.sum(i)) << i;
    }
    if (group.attach_refusal().empty()) {
      EXPECT_EQ(group.direct_calls(), 3U);
    }
  };
  EXPECT_EQ(run_two_processes(body, body), 0);
}

TEST(LocalDirect, AttachesWhereTheKernelTakesAtMostThreeTimesAsLongAsACopy) {
  EXPECT_TRUE(tuning::attach_pays(28, 66)) << "a Sapphire Rapids: 16 MiB take 1.66 ms by attach, and 2.5 ms by chunks";
  EXPECT_FALSE(tuning::attach_pays(13, 71)) << "a virtual EPYC: 2.85 ms by attach, and 1.38 ms by chunks";
}

TEST(LocalDirect, AttachesWhereThisMachinesKernelCopiesQuickly) {
  const bool quick = tuning::attach_is_quick();
  const auto body = [quick](LocalGroup& group) {
    constexpr std::uint64_t kCount = 300'007;
    std::vector<std::int32_t> data(kCount, 1);
    ASSERT_TRUE(group.run({.signature = {.collective = Collective::barrier}}));
    ASSERT_TRUE(group.run(call_of(Collective::all_reduce, data, data, kCount)));
    EXPECT_EQ(group.attach_refusal().empty(), quick) << group.attach_refusal();
    EXPECT_EQ(group.direct_calls(), quick ? 1U : 0U);
    EXPECT_EQ(data.back(), 2);
  };
  EXPECT_EQ(run_two_processes(body, body, tuning::AttachUse::if_quick), 0);
}

TEST(LocalDirect, SomeBuffersMappedAndSomeAttachedTo) {
  for (const std::uint32_t shares : {0U, 1U}) {
    const auto body = [shares](LocalGroup& group) {
      constexpr std::uint64_t kCount = 300'007;
      SharedVector shared(group, kCount);
      std::vector<std::int32_t> own(kCount);
      let_all_map(group);
      const std::span<std::int32_t> buffer = group.rank() == shares ? shared.all() : std::span(own);
      for (std::size_t i = 0; i < kCount; ++i) buffer[i] = value(group.rank(), i);
      ASSERT_TRUE(group.run(call_of(Collective::all_reduce, buffer, buffer, kCount, 0, true)));
      const Expectation expected{2, 0, 0, kCount};
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(buffer[i], expected.sum(i)) << i;
      if (group.attach_refusal().empty()) {
        EXPECT_EQ(group.direct_calls(), 1U);
      }
    };
    EXPECT_EQ(run_two_processes(body, body), 0);
  }
}

TEST(LocalDirect, ARankThatMayNotAttachCopies) {
  const auto body = [](LocalGroup& group) {
    std::vector<std::int32_t> buffer(300'000, static_cast<std::int32_t>(group.rank()) + 1);
    ASSERT_TRUE(group.run(call_of(Collective::all_reduce, buffer, buffer, buffer.size(), 0, true)));
    EXPECT_EQ(buffer[299'999], 3);
    EXPECT_EQ(group.direct_calls(), 0U);
  };
  EXPECT_EQ(run_two_processes(body, body, tuning::AttachUse::never), 0);
}

TEST(LocalDirect, MemoryOfADeviceIsNotAttachedTo) {
  void* none = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(none, MAP_FAILED);
  EXPECT_FALSE(Attachment::can_copy(static_cast<const std::byte*>(none), 8192));
  std::vector<std::byte> plain(8192);
  EXPECT_TRUE(Attachment::can_copy(plain.data(), plain.size()));
  munmap(none, 8192);
}

TEST(LocalDirect, ARankThatIsKilledInMidCallIsNamedAndLeavesNothing) {
  const std::size_t before = descriptors(), mapped = mappings_of("memfd:tributary");
  const auto body = [](LocalGroup& group, bool dies) {
    SharedVector memory(group, 4'000'000);
    let_all_map(group);
    for (int round = 0;; ++round) {
      if (dies && round == 3) {
        group.begin(call_of(Collective::all_reduce, memory.all(), memory.all(), 4'000'000, 0, true));
        kill(getpid(), SIGKILL);
      }
      const Status& status = group.run(call_of(Collective::all_reduce, memory.all(), memory.all(), 4'000'000, 0, true));
      if (!status) {
        EXPECT_EQ(status.error().code, Errc::peer_gone) << status.error().message;
        return;
      }
      // This rank may have done the dead rank's part of the last call.
      ASSERT_LT(round, 5);
    }
  };
  const int status = run_two_processes([&](LocalGroup& g) { body(g, false); }, [&](LocalGroup& g) { body(g, true); });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(mappings_of("memfd:tributary"), mapped);
}

// A rank that fails waits for ranks that are still writing into its buffers.
TEST(LocalDirect, AFailedCallEndsOnlyWhenTheOthersAreOut) {
  auto settings = settings_of(2);
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena);
  auto ends = make_inboxes(2);
  LocalGroup group(*arena, settings, {}, inboxes_of(ends, 0));
  settings.rank = 1;
  LocalGroup other(*arena, settings, {}, inboxes_of(ends, 1));
  SharedVector here(group, 5000), there(other, 5000);
  for (auto* g : {&group, &other, &group}) g->attend();
  group.begin(call_of(Collective::all_reduce, here.all(), here.all(), 5000, 0, true));
  const Places places((*arena)->bytes().data(), layout_of(settings));
  places.progress(1).inside.store(1);
  group.fail({Errc::aborted, "for the test"});
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(group.advance()) << "the other rank may be writing";
  places.progress(1).inside.store(0);
  ASSERT_TRUE(group.advance());
  EXPECT_FALSE(group.outcome());
}

TEST(SharedMemory, SomeKindsCanBeSharedAndOthersNot) {
  const auto reason = [](const void* at, std::size_t bytes) {
    const auto found = transport::find_shared({static_cast<const std::byte*>(at), bytes});
    return found ? std::string("shared") : found.error().message;
  };
  std::byte* own = *transport::allocate_shared(10'000);
  EXPECT_EQ(own[9'999], std::byte{0});
  EXPECT_EQ(reason(own + 5000, 5000), "shared");
  EXPECT_THAT(reason(own, 1 << 20), HasSubstr("beyond the end"));
  {
    const auto held = transport::find_shared({own, 1});
    const auto refused = transport::free_shared(own);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("still registered"));
  }
  EXPECT_FALSE(transport::free_shared(own + 1));
  EXPECT_TRUE(transport::free_shared(own));
  EXPECT_FALSE(transport::free_shared(own));

  std::vector<std::byte> heap(1 << 20);
  EXPECT_THAT(reason(heap.data(), heap.size()), HasSubstr("this process alone"));

  const int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, 3 * 4096), 0);
  void* at = mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(at, MAP_FAILED);
  EXPECT_THAT(reason(at, 3 * 4096), HasSubstr("not sealed against shrinking"));
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(reason(at, 3 * 4096), "shared");
  ASSERT_EQ(mprotect(static_cast<std::byte*>(at) + 4096, 4096, PROT_READ), 0);
  EXPECT_THAT(reason(at, 3 * 4096), HasSubstr("reading and writing"));
  EXPECT_EQ(reason(static_cast<std::byte*>(at) + 2 * 4096, 4096), "shared")
      << "the page behind the read-only one can be shared";
  munmap(at, 3 * 4096);
  close(file);
}

TEST(SharedMemory, AForeignMappingIsCheckedBeforeItIsTouched) {
  using transport::ForeignMapping;
  transport::OwnedDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), 8192), 0);
  EXPECT_FALSE(ForeignMapping::map(file, 0, 8192, ForeignMapping::Access::write, true))
      << "the file could be cut short";
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_TRUE(ForeignMapping::map(file, 0, 8192, ForeignMapping::Access::write, true));
  EXPECT_FALSE(ForeignMapping::map(file, 4096, 8192, ForeignMapping::Access::write, true));
  EXPECT_FALSE(ForeignMapping::map(file, UINT64_MAX, 8192, ForeignMapping::Access::write, true));
  EXPECT_FALSE(ForeignMapping::map(file, 0, 0, ForeignMapping::Access::write, true));
  auto part = ForeignMapping::map(file, 100, 5000, ForeignMapping::Access::write, true);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes().size(), 5000U);
}

}  // namespace
}  // namespace tributary::client::local
