// For every combination of facts, the choice is a path with a sentence about it.
#include "client/gpu/path_choice.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "tests/unit/gpu/copies.h"

namespace tributary::client::gpu {
namespace {

using testing::HasSubstr;

PathFacts good() {
  return {.gpu = {.device = 3,
                  .name = "H200",
                  .bus_id = "0000:3b:00.0",
                  .gpudirect = true,
                  .dma_buf = true,
                  .can_flush = true,
                  .write_ordering = 100},
          .host = {.peer_memory_module = true},
          .transport = {.name = "verbs", .rdma = true, .device_memory = true}};
}

TEST(PathChoice, TakesTheFirstWayThatIsOpen) {
  PathFacts facts = good();
  EXPECT_EQ(choose_path(facts).path, CopyRoute::dma_buf);
  facts.gpu.dma_buf = false;
  EXPECT_EQ(choose_path(facts).path, CopyRoute::peer_memory);
  facts.host.peer_memory_module = false;
  EXPECT_EQ(choose_path(facts).path, CopyRoute::staging);
}

// All 2^6 combinations of the yes-or-no facts, with three orderings of writes.
TEST(PathChoice, FollowsFromTheFactsInEveryCombination) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (const int ordering : {0, 100, 200}) {
      PathFacts f = good();
      f.transport.rdma = (bits & 1U) != 0;
      f.transport.device_memory = (bits & 2U) != 0;
      f.gpu.gpudirect = (bits & 4U) != 0;
      f.gpu.dma_buf = (bits & 8U) != 0;
      f.gpu.can_flush = (bits & 16U) != 0;
      f.host.peer_memory_module = (bits & 32U) != 0;
      f.gpu.write_ordering = ordering;
      const PathChoice choice = choose_path(f);
      const bool reached =
          f.transport.rdma && f.transport.device_memory && f.gpu.gpudirect && (f.gpu.can_flush || ordering >= 100);
      const CopyRoute expected = reached && f.gpu.dma_buf               ? CopyRoute::dma_buf
                                 : reached && f.host.peer_memory_module ? CopyRoute::peer_memory
                                                                        : CopyRoute::staging;
      ASSERT_EQ(choice.path, expected) << bits << ", " << ordering << ": " << choice.sentence;
      ASSERT_EQ(choice.flush, expected != CopyRoute::staging && ordering < 100) << bits << ", " << ordering;
      ASSERT_THAT(choice.sentence, HasSubstr("GPU 3 (H200): "));
      // The sentence names every path that the choice refused, and the reason.
      if (expected != CopyRoute::dma_buf) {
        ASSERT_THAT(choice.sentence, HasSubstr("as a dma-buf")) << bits;
      }
      if (expected == CopyRoute::staging) {
        ASSERT_THAT(choice.sentence, HasSubstr("by nvidia_peermem")) << bits;
      }
    }
  }
}

TEST(PathChoice, SaysWhy) {
  PathFacts facts = good();
  facts.transport = {.name = "tcp"};
  EXPECT_EQ(choose_path(facts).sentence,
            "GPU 3 (H200): data go through pinned host memory; neither as a dma-buf nor by nvidia_peermem: the "
            "transport tcp has the processor move payloads");
  facts = good();
  facts.gpu.dma_buf = facts.host.peer_memory_module = false;
  EXPECT_THAT(choose_path(facts).sentence, HasSubstr("not as a dma-buf: the driver gives no dma-buf"));
  EXPECT_THAT(choose_path(facts).sentence, HasSubstr("not by nvidia_peermem: the kernel module nvidia_peermem is not"));
  facts = good();
  facts.gpu.write_ordering = 0;
  EXPECT_THAT(choose_path(facts).sentence, HasSubstr("with a flush after each arrival"));
  facts.gpu.can_flush = false;
  EXPECT_THAT(choose_path(facts).sentence, HasSubstr("the driver cannot wait for them"));
}

TEST(HostFacts, FindTheModuleByEitherName) {
  const std::string root = testing::TempDir() + "tributary-host-facts-" + std::to_string(getpid());
  std::filesystem::create_directories(root + "/sys/module/ib_core");
  EXPECT_FALSE(host_facts(root).peer_memory_module);
  std::filesystem::create_directories(root + "/sys/module/nvidia_peermem");
  EXPECT_TRUE(host_facts(root).peer_memory_module);
  std::filesystem::remove(root + "/sys/module/nvidia_peermem");
  std::filesystem::create_directories(root + "/sys/module/nv_peer_mem");
  EXPECT_TRUE(host_facts(root).peer_memory_module);
  std::filesystem::remove_all(root);
}

class GpuFactsOfTheDriver : public test::WithFakeDriver {};

TEST_F(GpuFactsOfTheDriver, AreTheDriversAnswers) {
  fake_cuda::settings().write_ordering = 200;
  const GpuFacts facts = gpu_facts(*driver, 0);
  EXPECT_EQ(facts.name, "Fake GPU");
  EXPECT_EQ(facts.bus_id, "0000:01:00.0");
  EXPECT_TRUE(facts.gpudirect && facts.dma_buf && facts.can_flush);
  EXPECT_EQ(facts.write_ordering, 200);
}

TEST_F(GpuFactsOfTheDriver, CountAsNotThereWhenItDoesNotAnswer) {
  fake_cuda::fail("cuDeviceGetAttribute", fake_cuda::kNotSupported);
  const GpuFacts facts = gpu_facts(*driver, 0);
  EXPECT_FALSE(facts.gpudirect || facts.dma_buf || facts.can_flush);
}

}  // namespace
}  // namespace tributary::client::gpu
