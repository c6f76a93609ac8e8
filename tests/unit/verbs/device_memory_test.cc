// Registration of memory that the processor does not reach: the order in which the code tries the ways, the explanation
// of the ways that failed, and the cache's use of the result. This program defines the calls of libibverbs itself.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "transport/verbs/device_registration.h"
#include "transport/verbs/registrations.h"

#undef ibv_reg_mr

namespace {

struct Call {
  std::string name;
  std::uint64_t address = 0, offset = 0;
  std::size_t bytes = 0;
  unsigned rights = 0;
};
std::vector<Call> calls;
int dma_buf_answer = 0, plain_answer = 0, on_demand_answer = 0;  // errno; 0: success
std::set<ibv_mr*> living;

ibv_mr* answer(ibv_pd* domain, const Call& call, int error) {
  calls.push_back(call);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  auto* const region = new ibv_mr{};
  region->pd = domain;
  region->context = domain->context;
  region->addr = reinterpret_cast<void*>(call.offset);  // libibverbs does the same for a dma-buf
  region->length = call.bytes;
  region->lkey = static_cast<std::uint32_t>(calls.size());
  living.insert(region);
  return region;
}

}  // namespace

extern "C" {
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t bytes, int rights) {
  return answer(domain,
                {"plain", reinterpret_cast<std::uint64_t>(address), reinterpret_cast<std::uint64_t>(address), bytes,
                 static_cast<unsigned>(rights)},
                (rights & IBV_ACCESS_ON_DEMAND) != 0 ? on_demand_answer : plain_answer);
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t, unsigned rights) {
  return ibv_reg_mr(domain, address, bytes, static_cast<int>(rights));
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t iova, int descriptor,
                          int rights) {
  EXPECT_NE(fcntl(descriptor, F_GETFD), -1);
  return answer(domain, {"dma-buf", iova, offset, bytes, static_cast<unsigned>(rights)}, dma_buf_answer);
}
int ibv_dereg_mr(ibv_mr* region) {
  EXPECT_EQ(living.erase(region), 1U);
  delete region;
  return 0;
}
const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}
}

namespace tributary::transport::verbs {
namespace {

using testing::ElementsAre;

/// Returns a range of addresses, which must not be read.
std::span<const std::byte> memory_at(std::uint64_t address, std::size_t bytes) {
  return {reinterpret_cast<const std::byte*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
}
constexpr std::uint64_t kBase = 0x7000'0000'0000;

class Gpu final : public DeviceMemory {
 public:
  std::vector<DeviceWay> ways() const override { return allowed; }
  Result<DmaBuf> dma_buf(std::span<const std::byte> memory) override {
    if (no_dma_buf) return fail(Errc::unsupported, "the driver gives none");
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return DmaBuf{.descriptor = descriptor, .offset = reinterpret_cast<std::uint64_t>(memory.data()) % 4096};
  }
  Status copy(std::byte*, const std::byte*, std::size_t) override { return {}; }
  bool holds(std::span<const std::byte>) const override { return in_use; }
  void reached(const std::string& device, std::optional<DeviceWay> way, const std::string& others) override {
    said.push_back(device + ": " + (way ? to_string(*way) : "none") + (others.empty() ? "" : "; ") + others);
  }
  std::vector<DeviceWay> allowed{DeviceWay::dma_buf, DeviceWay::peer_memory};
  bool no_dma_buf = false, in_use = true;
  int descriptor = -1;
  std::vector<std::string> said;
};

class DeviceRegistrations : public testing::Test {
 protected:
  DeviceRegistrations() {
    calls.clear();
    dma_buf_answer = plain_answer = on_demand_answer = 0;
    std::strncpy(device.name, "mlx5_3", sizeof device.name - 1);
    context.device = &device;
    domain.context = &context;
  }
  ~DeviceRegistrations() override { EXPECT_TRUE(living.empty()); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Call& call : calls) all.push_back(call.name);
    return all;
  }

  ibv_device device{};
  ibv_context context{};
  ibv_pd domain{};
  std::shared_ptr<Gpu> gpu = std::make_shared<Gpu>();
};

TEST_F(DeviceRegistrations, UseADmaBufFirst) {
  const auto made = register_device_memory(domain, memory_at(kBase + 100, 5000), IBV_ACCESS_LOCAL_WRITE, *gpu);
  ASSERT_TRUE(made);
  ASSERT_THAT(names(), ElementsAre("dma-buf"));
  EXPECT_EQ(calls[0].address, kBase + 100);  // work requests use these addresses
  EXPECT_EQ(calls[0].offset, 100U);
  EXPECT_EQ(calls[0].bytes, 5000U);
  EXPECT_EQ(calls[0].rights, static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(fcntl(gpu->descriptor, F_GETFD), -1);  // the registration no longer needs the descriptor
  EXPECT_THAT(gpu->said, ElementsAre("mlx5_3: as a dma-buf"));
}

TEST_F(DeviceRegistrations, UseTheModuleIfTheDeviceRefusesDmaBufs) {
  dma_buf_answer = EOPNOTSUPP;
  ASSERT_TRUE(register_device_memory(domain, memory_at(kBase, 5000), 0, *gpu));
  EXPECT_THAT(names(), ElementsAre("dma-buf", "plain"));
  EXPECT_EQ(fcntl(gpu->descriptor, F_GETFD), -1);
  EXPECT_THAT(gpu->said, ElementsAre("mlx5_3: by nvidia_peermem; not as a dma-buf: ibv_reg_dmabuf_mr says: Operation "
                                     "not supported"));
}

TEST_F(DeviceRegistrations, UseTheModuleIfTheDriverGivesNoDmaBuf) {
  gpu->no_dma_buf = true;
  ASSERT_TRUE(register_device_memory(domain, memory_at(kBase, 5000), 0, *gpu));
  EXPECT_THAT(names(), ElementsAre("plain"));
  EXPECT_THAT(gpu->said, ElementsAre("mlx5_3: by nvidia_peermem; not as a dma-buf: the driver gives none"));
}

TEST_F(DeviceRegistrations, FailWithTheReasonOfEveryWay) {
  dma_buf_answer = EOPNOTSUPP;
  plain_answer = EFAULT;
  const auto made = register_device_memory(domain, memory_at(kBase, 5000), 0, *gpu);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::unsupported);
  EXPECT_EQ(made.error().message,
            "RDMA device mlx5_3 does not reach it: not as a dma-buf: ibv_reg_dmabuf_mr says: Operation not supported; "
            "not by nvidia_peermem: ibv_reg_mr says: Bad address");
  EXPECT_EQ(gpu->said.size(), 1U);
}

TEST_F(DeviceRegistrations, TryNoWayThatIsNotAllowed) {
  for (const DeviceWay only : {DeviceWay::dma_buf, DeviceWay::peer_memory}) {
    calls.clear();
    gpu->allowed = {only};
    ASSERT_TRUE(register_device_memory(domain, memory_at(kBase, 5000), 0, *gpu));
    EXPECT_THAT(names(), ElementsAre(only == DeviceWay::dma_buf ? "dma-buf" : "plain"));
  }
}

// ---- In the cache of a domain

class CachedRegistrations : public DeviceRegistrations {
 protected:
  void keep(std::uint64_t number, std::span<const std::byte> memory) { kept[number] = {memory, gpu}; }
  Registrations cache(Exposed exposed = {}) { return {domain, exposed, settings, kept, statistics}; }

  VerbsSettings settings;
  KeptRanges kept;
  VerbsStatistics statistics;
};

TEST_F(CachedRegistrations, AreMadeOnceForEveryAccessAndFoundByParts) {
  keep(1, memory_at(kBase, 1 << 20));
  auto registrations = cache();
  ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  EXPECT_EQ(calls.size(), 2U);  // a region to bind windows to, and a local region
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  const auto part = registrations.acquire(memory_at(kBase + 4096, 100), Access::target);
  ASSERT_TRUE(part);
  EXPECT_EQ((*part)->memory().data(), memory_at(kBase, 1).data());
  EXPECT_TRUE((*part)->covers(memory_at(kBase + 4096, 1).data(), 100));
  EXPECT_EQ(calls.size(), 2U);
  EXPECT_EQ(statistics.memory_regions, 2U);
  EXPECT_EQ(statistics.bytes_registered, std::size_t{2} << 20);
}

TEST_F(CachedRegistrations, GoWithTheMemory) {
  keep(1, memory_at(kBase, 1 << 20));
  auto registrations = cache();
  ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  kept.clear();
  registrations.forget(memory_at(kBase, 1 << 20));
  EXPECT_EQ(statistics.memory_regions, 0U);
  EXPECT_EQ(statistics.registrations, 2U);
}

// The old registration ends only after the new one exists.
TEST_F(CachedRegistrations, AreMadeAgainForOtherMemoryAtTheSameAddress) {
  keep(1, memory_at(kBase, 1 << 20));
  auto registrations = cache();
  ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  registrations.forget(memory_at(kBase, 1 << 20), Registrations::Kept::is_new);
  keep(2, memory_at(kBase, 1 << 20));
  EXPECT_EQ(statistics.memory_regions, 0U);
  ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  kept.erase(1);
  registrations.forget(memory_at(kBase, 1 << 20));
  EXPECT_EQ(statistics.memory_regions, 2U);
  ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  EXPECT_EQ(statistics.registrations, 4U);
}

// Memory that no operation uses may have been freed, and its addresses may now belong to the processor's memory.
TEST_F(CachedRegistrations, AreUnusedWhileNoOperationUsesTheirMemory) {
  for (const bool exact : {false, true}) {
    calls.clear();
    keep(1, memory_at(kBase, 1 << 20));
    auto registrations = cache({.peers = false, .locals = false, .windows_unbounded = exact});
    ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
    const auto part = memory_at(kBase + 4096, 8192);
    for (const Access access : {Access::source, Access::local}) ASSERT_TRUE(registrations.acquire(part, access));
    gpu->in_use = false;
    for (const Access access : {Access::messages, Access::source, Access::target, Access::local}) {
      calls.clear();
      const auto made = registrations.acquire(part, access);
      ASSERT_TRUE(made);
      ASSERT_THAT(names(), ElementsAre("plain"));
      EXPECT_EQ((*made)->memory().data(), part.data());
      EXPECT_EQ((*made)->bytes(), part.size());
    }
    gpu->in_use = true;  // the memory was idle, but not freed
    calls.clear();
    for (const Access access : {Access::source, Access::local}) ASSERT_TRUE(registrations.acquire(part, access));
    EXPECT_TRUE(calls.empty());
  }
}

TEST_F(CachedRegistrations, AreTriedWhereEachPayloadIsRegisteredByItself) {
  keep(1, memory_at(kBase, 1 << 20));
  auto registrations = cache({.peers = false, .locals = false, .windows_unbounded = true});
  ASSERT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
  EXPECT_EQ(statistics.memory_regions, 1U);  // only the regions that the device itself reads and writes
  EXPECT_EQ(statistics.registrations, 3U);
  const auto part = registrations.acquire(memory_at(kBase + 4096, 100), Access::target);
  ASSERT_TRUE(part);
  EXPECT_EQ((*part)->bytes(), 100U);
}

TEST_F(CachedRegistrations, FailWithoutATraceAndAreTriedAgainWhenAsked) {
  keep(1, memory_at(kBase, 1 << 20));
  auto registrations = cache();
  dma_buf_answer = EOPNOTSUPP;
  plain_answer = EFAULT;
  ASSERT_FALSE(registrations.reach(memory_at(kBase, 1 << 20)));
  EXPECT_EQ(statistics.memory_regions, 0U);
  plain_answer = 0;
  EXPECT_TRUE(registrations.reach(memory_at(kBase, 1 << 20)));
}

TEST_F(CachedRegistrations, AreNotForDevicesWithoutRightsOfTheirOwn) {
  keep(1, memory_at(kBase, 1 << 20));
  auto registrations = cache({.peers = true, .locals = true, .windows_unbounded = false});
  EXPECT_FALSE(registrations.reach(memory_at(kBase, 1 << 20)));
  EXPECT_TRUE(calls.empty());
}

// ---- Registrations on demand

class RegistrationsOnDemand : public CachedRegistrations {
 protected:
  static constexpr std::size_t kBlock = std::size_t{64} << 20;
  Registrations on_demand(Exposed exposed = {}) { return {domain, exposed, settings, kept, statistics, true}; }
  static bool was_on_demand(const Call& call) { return (call.rights & IBV_ACCESS_ON_DEMAND) != 0; }
};

TEST_F(RegistrationsOnDemand, AreOfWholeBlocksMadeOnceAndKept) {
  auto registrations = on_demand();
  for (int i = 0; i < 3; ++i) {
    for (const std::uint64_t offset : {std::uint64_t{100}, std::uint64_t{kBlock - 5000}}) {
      const auto made = registrations.acquire(memory_at(kBase + offset, 5000), Access::local);
      ASSERT_TRUE(made);
      EXPECT_TRUE((*made)->is_on_demand());
      EXPECT_TRUE((*made)->covers(memory_at(kBase + offset, 1).data(), 5000));
    }
  }
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_TRUE(was_on_demand(calls[0]));
  EXPECT_EQ(calls[0].address, kBase);
  EXPECT_EQ(calls[0].bytes, kBlock);
  EXPECT_EQ(statistics.registrations_on_demand, 1U);
  EXPECT_EQ(statistics.registration_hits, 5U);
  // Windows are bound to a separate region, which has the right to bind windows.
  ASSERT_TRUE(registrations.acquire(memory_at(kBase + 100, 5000), Access::source));
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_TRUE(was_on_demand(calls[1]));
  EXPECT_NE(calls[1].rights & IBV_ACCESS_MW_BIND, 0U);
}

TEST_F(RegistrationsOnDemand, CoverMemoryThatCrossesTheEndOfABlock) {
  auto registrations = on_demand();
  const auto made = registrations.acquire(memory_at(kBase + kBlock - 10, 20), Access::local);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->bytes(), 2 * kBlock);
  EXPECT_TRUE((*made)->covers(memory_at(kBase + kBlock - 10, 1).data(), 20));
}

TEST_F(RegistrationsOnDemand, AreGivenUpWhereTheDeviceRefuses) {
  on_demand_answer = EINVAL;
  auto registrations = on_demand();
  for (int i = 0; i < 2; ++i) {
    const auto made = registrations.acquire(memory_at(kBase, 5000), Access::local);
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->bytes(), 5000U);
  }
  ASSERT_EQ(calls.size(), 3U);  // the cache asked once; after that it pins each registration
  EXPECT_TRUE(was_on_demand(calls[0]));
  EXPECT_FALSE(was_on_demand(calls[1]) || was_on_demand(calls[2]));
}

TEST_F(RegistrationsOnDemand, AreNotUsedForLastingMemoryMessagesOrMemoryWhoseKeyAPeerHas) {
  // Memory of the processor that the caller promises to keep: it is pinned once, without page faults.
  kept[1] = {memory_at(kBase, 1 << 20), nullptr};
  auto registrations = on_demand();
  ASSERT_TRUE(registrations.acquire(memory_at(kBase + 100, 5000), Access::local));
  ASSERT_TRUE(registrations.acquire(memory_at(kBase + kBlock, 5000), Access::messages));
  auto exposed = on_demand({.peers = true, .locals = true, .windows_unbounded = false});
  ASSERT_TRUE(exposed.acquire(memory_at(kBase + kBlock, 5000), Access::source));
  ASSERT_EQ(calls.size(), 3U);
  for (const Call& call : calls) EXPECT_FALSE(was_on_demand(call));
}

// A GPU's memory may lie in the middle of a block of addresses.
TEST_F(RegistrationsOnDemand, AreNotTakenForADevicesMemory) {
  auto registrations = on_demand();
  ASSERT_TRUE(registrations.acquire(memory_at(kBase, 5000), Access::local));
  keep(1, memory_at(kBase + (1 << 20), 1 << 20));
  const auto of_device = registrations.acquire(memory_at(kBase + (1 << 20) + 64, 100), Access::local);
  ASSERT_TRUE(of_device);
  EXPECT_FALSE((*of_device)->is_on_demand());
  EXPECT_THAT(names(), ElementsAre("plain", "dma-buf"));
  const auto of_host = registrations.acquire(memory_at(kBase + (3 << 20), 100), Access::local);
  ASSERT_TRUE(of_host);
  EXPECT_TRUE((*of_host)->is_on_demand());
  EXPECT_EQ(calls.size(), 2U);
}

}  // namespace
}  // namespace tributary::transport::verbs
