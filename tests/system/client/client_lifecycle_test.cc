// The beginning and the end of communicators, with success and with errors.
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "tests/system/client/group.h"

namespace tributary::test {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  DIR* open = opendir(folder);
  while (open != nullptr && readdir(open) != nullptr) ++count;
  if (open != nullptr) closedir(open);
  return count;
}
std::size_t threads_now() {
  return entries("/proc/self/task");
}
std::size_t descriptors_now() {
  return entries("/proc/self/fd");
}

tributary_status init(tributary_comm** comm, int nranks, const tributary_unique_id& id, int rank,
                      Milliseconds timeout) {
  const tributary_config config = config_with(timeout);
  return tributary_comm_init_rank_config(comm, nranks, &id, rank, &config);
}

bool says(const std::string& text) {
  return last_error().contains(text);
}

TEST(Lifecycle, RankAndSizeAreTold) {
  run_ranks(3, [](tributary_comm* comm, int rank) {
    int value = -1;
    EXPECT_EQ(tributary_comm_rank(comm, &value), TRIBUTARY_OK);
    EXPECT_EQ(value, rank);
    EXPECT_EQ(tributary_comm_size(comm, &value), TRIBUTARY_OK);
    EXPECT_EQ(value, 3);
    EXPECT_EQ(tributary_comm_size(comm, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
  });
}

TEST(Lifecycle, NothingLeaks) {
  const auto once = [] {
    run_ranks(3, [](tributary_comm* comm, int) {
      std::vector<float> data(100'000, 1.0F);
      tributary_request* forgotten = nullptr;  // never waited for: the communicator's end frees it
      EXPECT_EQ(tributary_all_reduce(data.data(), data.data(), data.size(), TRIBUTARY_FLOAT32, TRIBUTARY_SUM, comm,
                                     &forgotten),
                TRIBUTARY_OK);
      EXPECT_EQ(tributary_comm_finalize(comm), TRIBUTARY_OK) << last_error();
    });
  };
  once();  // the first call makes the objects that exist once per process
  const std::size_t threads = threads_now(), descriptors = descriptors_now();
  for (int i = 0; i < 10; ++i) once();
  EXPECT_EQ(threads_now(), threads);
  EXPECT_EQ(descriptors_now(), descriptors);
}

TEST(Lifecycle, AnIdWithAnotherSecretIsDenied) {
  const auto timeout = patience(Milliseconds(1500));
  const tributary_unique_id id = make_id();
  tributary_unique_id other = id;
  other.bytes[20] = static_cast<unsigned char>(other.bytes[20] ^ 1U);  // changes one bit of the secret
  in_threads(2, [&](int rank) {
    tributary_comm* comm = nullptr;
    const auto status = init(&comm, 2, rank == 0 ? id : other, rank, timeout);
    EXPECT_EQ(comm, nullptr);
    if (rank == 1) {
      EXPECT_EQ(status, TRIBUTARY_ERROR_DENIED) << last_error();
      EXPECT_TRUE(says("wrong unique id")) << last_error();
    } else {
      EXPECT_EQ(status, TRIBUTARY_ERROR_TIMED_OUT) << last_error();
      EXPECT_TRUE(says("did not come: rank 1")) << last_error();
    }
  });
}

TEST(Lifecycle, BytesThatAreNoIdAreABadArgument) {
  tributary_unique_id id{};
  tributary_comm* comm = nullptr;
  EXPECT_EQ(tributary_comm_init_rank(&comm, 2, &id, 1), TRIBUTARY_ERROR_BAD_ARGUMENT);
  EXPECT_TRUE(says("no unique id")) << last_error();
}

TEST(Lifecycle, AnIdServesOneCommunicator) {
  const tributary_unique_id id = make_id();
  tributary_comm *first = nullptr, *second = nullptr;
  ASSERT_EQ(init(&first, 1, id, 0, Milliseconds(2000)), TRIBUTARY_OK) << last_error();
  EXPECT_EQ(init(&second, 1, id, 0, Milliseconds(2000)), TRIBUTARY_ERROR_BAD_ARGUMENT);
  EXPECT_TRUE(says("used already")) << last_error();
  EXPECT_EQ(tributary_comm_destroy(first), TRIBUTARY_OK);
}

TEST(Lifecycle, TheOldestOfManyUnusedIdsIsGivenUp) {
  const std::size_t before = descriptors_now();
  const tributary_unique_id first = make_id();
  tributary_unique_id last{};
  for (int i = 0; i < 64; ++i) last = make_id();
  const std::size_t full = descriptors_now();
  for (int i = 0; i < 64; ++i) last = make_id();
  EXPECT_EQ(descriptors_now(), full) << "ids that nobody takes must not pile up";
  EXPECT_GT(full, before);
  tributary_comm* comm = nullptr;
  EXPECT_EQ(init(&comm, 1, first, 0, Milliseconds(1000)), TRIBUTARY_ERROR_BAD_ARGUMENT);
  ASSERT_EQ(init(&comm, 1, last, 0, Milliseconds(1000)), TRIBUTARY_OK) << last_error();
  EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK);
}

TEST(Lifecycle, TwoProcessesWithOneRankAreToldApart) {
  const tributary_unique_id id = make_id();
  std::atomic<int> joined{0}, denied{0};
  std::promise<void> over;
  const auto both_answered = over.get_future().share();
  in_threads(4, [&](int index) {
    // Two processes claim to be rank 2; rank 1 waits until rank 0 has refused one of them.
    const int rank = std::min(index, 2);
    if (rank == 1) both_answered.wait();
    tributary_comm* comm = nullptr;
    const auto status = init(&comm, 3, id, rank, patience(Milliseconds(5000)));
    if (status == TRIBUTARY_ERROR_DENIED) {
      EXPECT_TRUE(says("same rank")) << last_error();
      ++denied;
      over.set_value();
      return;
    }
    ASSERT_EQ(status, TRIBUTARY_OK) << last_error();
    ++joined;
    EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK);
  });
  EXPECT_EQ(joined, 3);
  EXPECT_EQ(denied, 1);
}

TEST(Lifecycle, RanksThatDisagreeOnTheirNumberAreDenied) {
  const tributary_unique_id id = make_id();
  in_threads(2, [&](int rank) {
    tributary_comm* comm = nullptr;
    const auto status = init(&comm, rank == 0 ? 3 : 2, id, rank, patience(Milliseconds(1000)));
    EXPECT_EQ(status, rank == 0 ? TRIBUTARY_ERROR_TIMED_OUT : TRIBUTARY_ERROR_DENIED) << last_error();
    if (rank == 1) {
      EXPECT_TRUE(says("of 3 ranks, rank 1 makes one of 2")) << last_error();
    } else {
      EXPECT_TRUE(says("rank 1, rank 2")) << last_error();
    }
  });
}

TEST(Lifecycle, ARankWithoutRank0TimesOut) {
  // This process listens at the id's address, but no communicator uses the id.
  const tributary_unique_id id = make_id();
  tributary_comm* comm = nullptr;
  const auto begin = Clock::now();
  EXPECT_EQ(init(&comm, 2, id, 1, Milliseconds(500)), TRIBUTARY_ERROR_TIMED_OUT);
  EXPECT_LT(Clock::now() - begin, patience(Milliseconds(2000)));
  EXPECT_TRUE(says("rank 0")) << last_error();
}

TEST(Lifecycle, StrangersOnTheListenerDoNoHarm) {
  const tributary_unique_id id = make_id();
  in_threads(2, [&](int rank) {
    tributary_comm* comm = nullptr;
    ASSERT_EQ(init(&comm, 2, id, rank, Milliseconds(10'000)), TRIBUTARY_OK) << last_error();
    EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK);
    if (rank == 1) {  // this third process knows the secret, but comes too late
      tributary_comm* late = nullptr;
      EXPECT_EQ(init(&late, 2, id, 1, Milliseconds(2000)), TRIBUTARY_ERROR_DENIED) << last_error();
    }
    EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK) << last_error();
    EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK);
  });
}

TEST(Lifecycle, FinalizeWaitsForEveryRanksOperationsAndThenNothingStarts) {
  std::atomic<bool> sent{false};
  run_ranks(2, [&](tributary_comm* comm, int rank) {
    float value = 1;
    tributary_request* request = nullptr;
    if (rank == 0) {
      ASSERT_EQ(tributary_recv(&value, 1, TRIBUTARY_FLOAT32, 1, comm, &request), TRIBUTARY_OK);
      ASSERT_EQ(tributary_comm_finalize(comm), TRIBUTARY_OK) << last_error();
      EXPECT_TRUE(sent);
      EXPECT_EQ(tributary_wait(request, 0), TRIBUTARY_OK);
    } else {
      sent = true;
      ASSERT_EQ(tributary_send(&value, 1, TRIBUTARY_FLOAT32, 0, comm, nullptr), TRIBUTARY_OK);
      ASSERT_EQ(tributary_comm_finalize(comm), TRIBUTARY_OK) << last_error();
    }
    EXPECT_EQ(tributary_comm_finalize(comm), TRIBUTARY_OK) << "a second call is no error";
    EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_TRUE(says("finalized")) << last_error();
  });
}

TEST(Lifecycle, ARankThatDoesNotFinalizeIsNamedWithinTheTimeOut) {
  const auto timeout = patience(Milliseconds(1000));
  std::promise<void> over;
  const auto others_are_done = over.get_future().share();
  std::atomic<int> left{2};
  run_ranks_without_end(3,
                        [&](tributary_comm* comm, int rank) {
                          if (rank == 1) {
                            others_are_done.wait();
                            EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK)
                                << "it had failed before, and there is nothing to wait for: " << last_error();
                            return;
                          }
                          const auto begin = Clock::now();
                          EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_ERROR_TIMED_OUT);
                          EXPECT_LT(Clock::now() - begin, timeout + patience(Milliseconds(500)));
                          EXPECT_TRUE(says("rank 1")) << last_error();
                          if (--left == 0) over.set_value();
                        },
                        {.timeout = timeout});
}

TEST(Lifecycle, AbortEndsOutstandingOperationsOnAllRanks) {
  std::atomic<int> waiting{0};
  run_ranks_without_end(3, [&](tributary_comm* comm, int rank) {
    if (rank == 1) {
      std::vector<float> data(1000);
      tributary_request* request = nullptr;
      ASSERT_EQ(tributary_recv(data.data(), data.size(), TRIBUTARY_FLOAT32, 0, comm, &request), TRIBUTARY_OK);
      std::thread waiter([request, &waiting] {
        ++waiting;
        EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_ERROR_ABORTED) << last_error();
      });
      while (waiting < 3) std::this_thread::yield();
      std::this_thread::sleep_for(patience(Milliseconds(20)));  // after this sleep the waiting thread has found its
                                                                // request
      EXPECT_EQ(tributary_comm_abort(comm), TRIBUTARY_OK) << last_error();
      waiter.join();
      EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
      EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_ERROR_BAD_ARGUMENT);
      EXPECT_TRUE(says("not a live communicator")) << last_error();
      return;
    }
    ++waiting;
    EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_ERROR_ABORTED) << last_error();
    EXPECT_TRUE(says("rank 1 aborted")) << last_error();
    EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK) << last_error();
  });
}

TEST(Lifecycle, AbortByAnotherThreadFreesABlockingCall) {
  std::promise<void> other_has_met;  // an abort also ends a barrier that one of the two ranks has already left
  run_ranks_without_end(2, [&other_has_met](tributary_comm* comm, int rank) {
    const auto met = tributary_barrier(comm, nullptr);
    if (rank == 1) other_has_met.set_value();
    ASSERT_EQ(met, TRIBUTARY_OK) << last_error();
    if (rank == 0) {
      other_has_met.get_future().wait();
      std::promise<void> about_to_block;
      std::thread blocked([&] {
        about_to_block.set_value();
        const auto status = tributary_barrier(comm, nullptr);
        EXPECT_TRUE(status == TRIBUTARY_ERROR_ABORTED || status == TRIBUTARY_ERROR_BAD_ARGUMENT)
            << status << last_error();
      });
      about_to_block.get_future().wait();
      EXPECT_EQ(tributary_comm_abort(comm), TRIBUTARY_OK);
      blocked.join();
    } else {
      float value = 0;
      EXPECT_EQ(tributary_recv(&value, 1, TRIBUTARY_FLOAT32, 0, comm, nullptr), TRIBUTARY_ERROR_ABORTED)
          << last_error();
      tributary_comm_destroy(comm);
    }
  });
}

TEST(Lifecycle, HandlesThatAreNotLiveAreBadArguments) {
  const auto garbage = [](std::uintptr_t bits) { return reinterpret_cast<tributary_comm*>(bits); };
  int rank = 0;
  for (const std::uintptr_t bits : {0UL, 1UL, 0x7fff'dead'beefUL, ~0UL}) {
    EXPECT_EQ(tributary_comm_rank(garbage(bits), &rank), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_comm_destroy(garbage(bits)), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_wait(reinterpret_cast<tributary_request*>(bits), 0), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_NE(tributary_last_error(garbage(bits)), nullptr);
  }
  run_ranks_without_end(1, [](tributary_comm* comm, int) {
    tributary_request* request = nullptr;
    EXPECT_EQ(tributary_barrier(comm, &request), TRIBUTARY_OK);
    EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_OK);
    EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_ERROR_BAD_ARGUMENT) << "requests end with their communicator";
    EXPECT_EQ(tributary_comm_destroy(comm), TRIBUTARY_ERROR_BAD_ARGUMENT);
  });
}

TEST(Lifecycle, AForkedChildMayNotUseItsParentsCommunicatorButCanMakeItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a forked child of a process with threads cannot start threads under ThreadSanitizer";
#endif
  run_ranks(1, [](tributary_comm* comm, int) {
    tributary_request* request = nullptr;
    ASSERT_EQ(tributary_barrier(comm, &request), TRIBUTARY_OK);
    const pid_t child = fork();
    if (child == 0) {
      int done = 0;
      if (tributary_test(request, &done) != TRIBUTARY_ERROR_BAD_ARGUMENT || !says("fork")) _exit(8);
      if (tributary_wait(request, -1) != TRIBUTARY_ERROR_BAD_ARGUMENT || !says("fork")) _exit(9);
      if (tributary_barrier(comm, nullptr) != TRIBUTARY_ERROR_BAD_ARGUMENT) _exit(1);
      if (!says("fork")) _exit(2);
      if (tributary_comm_destroy(comm) != TRIBUTARY_ERROR_BAD_ARGUMENT) _exit(3);
      tributary_unique_id id{};
      tributary_comm* own = nullptr;
      if (tributary_get_unique_id(&id) != TRIBUTARY_OK) _exit(4);
      if (tributary_comm_init_rank(&own, 1, &id, 0) != TRIBUTARY_OK) _exit(5);
      if (tributary_barrier(own, nullptr) != TRIBUTARY_OK) _exit(6);
      _exit(tributary_comm_destroy(own) == TRIBUTARY_OK ? 0 : 7);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(tributary_wait(request, -1), TRIBUTARY_OK);
    EXPECT_EQ(tributary_barrier(comm, nullptr), TRIBUTARY_OK) << "the child did the parent no harm";
  });
}

TEST(Lifecycle, RegisteredMemoryIsCountedAndEndsWithItsCommunicator) {
  run_ranks(1, [](tributary_comm* comm, int) {
    std::vector<std::byte> memory(4096);
    tributary_mem* mem = nullptr;
    ASSERT_EQ(tributary_mem_register(comm, memory.data(), memory.size(), TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_OK)
        << last_error();
    EXPECT_EQ(tributary_mem_deregister(comm, mem), TRIBUTARY_OK);
    EXPECT_EQ(tributary_mem_deregister(comm, mem), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_mem_register(comm, memory.data(), memory.size(), TRIBUTARY_MEM_CUDA, &mem),
              TRIBUTARY_ERROR_UNSUPPORTED);
    EXPECT_EQ(tributary_mem_register(comm, nullptr, 1, TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_mem_register(comm, memory.data(), 0, TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_mem_register(comm, memory.data(), SIZE_MAX, TRIBUTARY_MEM_HOST, &mem),
              TRIBUTARY_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(tributary_mem_register_dmabuf(comm, memory.data(), 1, 0, 0, &mem), TRIBUTARY_ERROR_UNSUPPORTED);
    EXPECT_EQ(tributary_mem_register(comm, memory.data(), memory.size(), TRIBUTARY_MEM_HOST, &mem), TRIBUTARY_OK);
  });
}

TEST(Lifecycle, AReturnedIdClosesItsListenerAndMakesNoCommunicator) {
  const std::size_t before = descriptors_now();
  tributary_unique_id id{};
  ASSERT_EQ(tributary_get_unique_id_config(&id, nullptr), TRIBUTARY_OK);
  EXPECT_GT(descriptors_now(), before);
  EXPECT_EQ(tributary_release_unique_id(&id), TRIBUTARY_OK);
  EXPECT_EQ(descriptors_now(), before);
  EXPECT_EQ(tributary_release_unique_id(&id), TRIBUTARY_OK) << "nothing happens";
  tributary_comm* comm = nullptr;
  EXPECT_EQ(init(&comm, 1, id, 0, Milliseconds(1000)), TRIBUTARY_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(tributary_release_unique_id(nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
}

TEST(Lifecycle, AManagerThatAcceptsAndDoesNotAnswerCostsTwoSeconds) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t bytes = sizeof at;
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&at), bytes), 0);
  ASSERT_EQ(::listen(listener, 8), 0);
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  const std::string url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  config.manager = url.c_str();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(tributary_service_check(&config), TRIBUTARY_ERROR_UNREACHABLE);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(2000) + patience(Milliseconds(1500)));
  ::close(listener);
}

/// Notes the calls of while_waiting.
struct OtherWork {
  std::thread::id thread{};
  std::vector<std::int64_t> waited{};

  static std::int64_t turn(void* self, std::int64_t waited_ns) {
    auto& work = *static_cast<OtherWork*>(self);
    EXPECT_EQ(std::this_thread::get_id(), work.thread);
    work.waited.push_back(waited_ns);
    return 2'000'000;
  }
};

TEST(Lifecycle, AWaitingThreadDoesOtherWork) {
  OtherWork other_work;
  GroupOptions options;
  options.configure = [&](int rank, tributary_config& config) {
    if (rank != 0) return;
    config.while_waiting = &OtherWork::turn;
    config.while_waiting_context = &other_work;
    other_work.thread = std::this_thread::get_id();
  };
  run_ranks(
      2,
      [&](tributary_comm* comm, int rank) {
        for (const bool blocking : {true, false}) {
          if (rank == 0) other_work.waited.clear();
          if (rank == 1) std::this_thread::sleep_for(Milliseconds(40));  // the other rank waits
          int value = rank, sum = 0;
          tributary_request* request = nullptr;
          ASSERT_EQ(tributary_all_reduce(&value, &sum, 1, TRIBUTARY_INT32, TRIBUTARY_SUM, comm,
                                         blocking ? nullptr : &request),
                    TRIBUTARY_OK)
              << last_error();
          if (!blocking) {
            ASSERT_EQ(tributary_wait(request, -1), TRIBUTARY_OK) << last_error();
          }
          EXPECT_EQ(sum, 1);
          if (rank != 0) continue;
          const auto& waited = other_work.waited;
          ASSERT_GE(waited.size(), 3U);
          EXPECT_EQ(waited[0], 0);
          for (std::size_t i = 1; i < waited.size(); ++i) EXPECT_GE(waited[i], waited[i - 1] + 2'000'000);
        }
      },
      options);
}

TEST(Lifecycle, AManagerThatDoesNotAnswerIsUnreachable) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  EXPECT_EQ(tributary_service_check(&config), TRIBUTARY_ERROR_UNSUPPORTED);
  EXPECT_TRUE(says("no manager is configured")) << last_error();
  config.manager = "http://127.0.0.1:1";
  EXPECT_EQ(tributary_service_check(&config), TRIBUTARY_ERROR_UNREACHABLE) << last_error();
  config.path = "fallback";
  EXPECT_EQ(tributary_service_check(&config), TRIBUTARY_ERROR_UNSUPPORTED) << last_error();
  config.path = "sideways";
  EXPECT_EQ(tributary_service_check(&config), TRIBUTARY_ERROR_BAD_CONFIG) << last_error();
}

TEST(Lifecycle, NoTreeCarriesProductsOfFloatsWithExactNumerics) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  const auto supports = [&](int dtype, int op) {
    int supported = -1;
    EXPECT_EQ(
        tributary_op_supported(&config, static_cast<tributary_dtype>(dtype), static_cast<tributary_op>(op), &supported),
        TRIBUTARY_OK)
        << last_error();
    return supported;
  };
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_PROD), 1);
  config.path = "in-network";
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_PROD), 1);
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_PROD | TRIBUTARY_OP_EXACT), 0);
  config.numerics = "exact";
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_PROD), 0);
  EXPECT_EQ(supports(TRIBUTARY_BFLOAT16, TRIBUTARY_PROD), 0);
  EXPECT_EQ(supports(TRIBUTARY_BFLOAT16, TRIBUTARY_PROD | TRIBUTARY_OP_FAST), 1);
  EXPECT_EQ(supports(TRIBUTARY_INT32, TRIBUTARY_PROD), 1);
  config.path = "auto";
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_PROD), 1);
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_SUM), 1);
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, TRIBUTARY_BAND), 0);
  EXPECT_EQ(supports(TRIBUTARY_INT16, TRIBUTARY_LXOR), 1);
  EXPECT_EQ(supports(TRIBUTARY_INT16, TRIBUTARY_LXOR + 1), 0);
  EXPECT_EQ(supports(TRIBUTARY_FLOAT32, 1000), 0);
  EXPECT_EQ(supports(-1, TRIBUTARY_SUM), 0);
  EXPECT_EQ(tributary_op_supported(&config, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
  config.numerics = "rough";
  int supported = 1;
  EXPECT_EQ(tributary_op_supported(&config, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, &supported), TRIBUTARY_ERROR_BAD_CONFIG);
  EXPECT_EQ(supported, 0);
}

TEST(Lifecycle, TheTransportIsTheFirstOfTheListThatWorksHere) {
  tributary_config config = TRIBUTARY_CONFIG_INITIALIZER;
  const char* name = nullptr;
  EXPECT_EQ(tributary_transport_name(&config, &name), TRIBUTARY_OK) << last_error();
  EXPECT_STREQ(name, "tcp");
  config.transport = "dpdk,udp,tcp";
  EXPECT_EQ(tributary_transport_name(&config, &name), TRIBUTARY_OK) << last_error();
  EXPECT_STREQ(name, "udp") << "a communicator cannot use dpdk here";
  config.transport = "verbs,tcp";
  EXPECT_EQ(tributary_transport_name(&config, &name), TRIBUTARY_OK) << last_error();
  EXPECT_TRUE(std::string_view(name) == "verbs" || std::string_view(name) == "tcp") << name;
  config.transport = "dpdk";
  EXPECT_EQ(tributary_transport_name(&config, &name), TRIBUTARY_ERROR_UNSUPPORTED);
  EXPECT_EQ(name, nullptr);
  EXPECT_TRUE(
      says("none of the transports in TRIBUTARY_TRANSPORT (dpdk) can be used here; tcp and udp always can; dpdk "
           "cannot be used: "))
      << last_error();
  config.transport = "shm";
  EXPECT_EQ(tributary_transport_name(&config, &name), TRIBUTARY_ERROR_BAD_CONFIG) << "shm is a setting of its own";
  config.transport = "pigeons";
  EXPECT_EQ(tributary_transport_name(&config, &name), TRIBUTARY_ERROR_BAD_CONFIG) << last_error();
  EXPECT_EQ(tributary_transport_name(&config, nullptr), TRIBUTARY_ERROR_BAD_ARGUMENT);
}

}  // namespace
}  // namespace tributary::test
