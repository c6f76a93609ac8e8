// TRIBUTARY_NCCL_NET: another plugin (parcel.cc) moves the messages, and this plugin's CollNet sums.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "client/plugins/nccl/abi/collnet.h"
#include "client/plugins/nccl/abi/net_versions.h"
#include "tests/system/chaos/workshop.h"
#include "tests/system/nccl/check_ranks.h"

namespace tributary::nccl_test {
namespace {

namespace abi = nccl::abi;
using chaos::Workshop;
using std::chrono::seconds;
using enum abi::Result;

constexpr seconds kLimit{120};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// Two ranks send messages of all sizes through the tables of one version.
void expect_messages(const std::string& plugin, int version, int from) {
  Workshop workshop;
  CheckRanks ranks(2, {"--newest", std::to_string(version), "--without-collnet", "--connections", "2"},
                   workshop.folder(), nullptr, {{"TRIBUTARY_NCCL_NET", plugin}, {"NCCL_DEBUG", "INFO"}});
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  const std::string output = ranks.output();
  EXPECT_EQ(count(output, "net v" + std::to_string(version) + ": point-to-point by " + plugin + " (Parcel, v" +
                              std::to_string(from) + ")"),
            2U)
      << output;
  EXPECT_EQ(count(output, "device 0: parcel0, 200000 Mb/s"), 2U) << output;
  EXPECT_EQ(count(output, "parcel: sent 0 messages"), 0U) << output;
  EXPECT_EQ(count(output, "parcel: sent "), 2U) << output;
}

TEST(WrappedNet, MovesTheMessagesByTheOtherPluginsTableOfTheSameVersion) {
  for (int version = 6; version <= 12; ++version) expect_messages(PARCEL_ALL, version, version);
}

TEST(WrappedNet, MovesTheMessagesByAnOlderTableWhereTheOtherPluginHasNoNewOne) {
  for (int version = 7; version <= 12; ++version) expect_messages(PARCEL_V6, version, 6);
  for (int version = 9; version <= 12; ++version) expect_messages(PARCEL_V8, version, 8);
  for (int version = 11; version <= 12; ++version) expect_messages(PARCEL_V10, version, 10);
}

TEST(WrappedNet, SumsInTheNetworkOverTheOtherPluginsDevices) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  CheckRanks ranks(2, {"--communicators", "1", "--connections", "1"}, workshop.folder(), cluster.get(),
                   {{"TRIBUTARY_NCCL_NET", PARCEL_ALL}, {"TRIBUTARY_REQUIRE", "in-network"}});
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "sums in the network"), 2U) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "parcel: sent 0 messages"), 0U) << ranks.output();
}

TEST(WrappedNet, FailsAtOnceIfTheNamedPluginCannotBeUsed) {
  for (const auto& [name, reason] :
       {std::pair<std::string, std::string>{"/nowhere/libnccl-net-ofi.so", "cannot be loaded: /nowhere"},
        {TRIBUTARY_NCCL_PLUGIN, "names this plugin itself"},
        {"libc.so.6", "has none of the tables"}}) {
    Workshop workshop;
    CheckRanks ranks(1, {"--without-collnet"}, workshop.folder(), nullptr, {{"TRIBUTARY_NCCL_NET", name}});
    const auto end = ranks.end_of(0, kLimit);
    ASSERT_TRUE(end) << ranks.output();
    EXPECT_EQ(end->code, 1) << ranks.output();
    EXPECT_EQ(count(ranks.output(), "FAILED: net init"), 1U) << ranks.output();
    EXPECT_EQ(count(ranks.output(), reason), 1U) << ranks.output();
  }
}

TEST(WrappedNet, FailsIfNcclIsOlderThanAllTablesOfTheOtherPlugin) {
  Workshop workshop;
  CheckRanks ranks(1, {"--newest", "8", "--without-collnet"}, workshop.folder(), nullptr,
                   {{"TRIBUTARY_NCCL_NET", PARCEL_V10}});
  const auto end = ranks.end_of(0, kLimit);
  ASSERT_TRUE(end) << ranks.output();
  EXPECT_EQ(end->code, 1) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "has no table of version 8"), 1U) << ranks.output();
}

TEST(CollectiveChoice, LeavesTheNamedCollectivesInTheTables) {
  Workshop workshop;
  const auto cluster = workshop.start_cluster({.ranks = 2, .aggregators = 1, .levels = 1}, 1);
  for (const auto& [choice, text] : {std::pair{"allreduce", "all exact, no allgather, no reducescatter"},
                                     {"allreduce,allgather", "all exact, no reducescatter"},
                                     {"reducescatter", "all exact, no allgather\n"}}) {
    CheckRanks ranks(2, {"--communicators", "1", "--connections", "1"}, workshop.folder(), cluster.get(),
                     {{"TRIBUTARY_NCCL_COLLECTIVES", choice}});
    ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
    EXPECT_EQ(count(ranks.output(), text), 2U) << ranks.output();
  }
}

TEST(CollectiveChoice, WarnsOfAWordThatNamesNoCollective) {
  Workshop workshop;
  CheckRanks ranks(2, {"--without-collnet", "--connections", "1"}, workshop.folder(), nullptr,
                   {{"TRIBUTARY_NCCL_COLLECTIVES", "allreduce,broadcast"}});
  ASSERT_TRUE(ranks.all_good(kLimit)) << ranks.output();
  EXPECT_EQ(count(ranks.output(), "has the word broadcast"), 2U) << ranks.output();
}

/// The plugin in this process, with another plugin in it. The plugin wraps the other one when it is loaded, and stays
/// loaded, so each test looks at it in a process of its own.
struct Loaded {
  explicit Loaded(const char* other_path) {
    ::setenv("TRIBUTARY_NCCL_NET", other_path, 1);
    plugin = dlopen(TRIBUTARY_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    other = dlopen(other_path, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(plugin, nullptr) << dlerror();
    EXPECT_NE(other, nullptr) << dlerror();
  }
  template <class Table>
  [[nodiscard]] Table& table(void* library, const char* name) const {
    auto* const found = static_cast<Table*>(dlsym(library, name));
    EXPECT_NE(found, nullptr) << name;
    return *found;
  }
  [[nodiscard]] int call(const char* name) const { return reinterpret_cast<int (*)()>(dlsym(other, name))(); }
  void* plugin = nullptr;
  void* other = nullptr;
};

void no_log(abi::LogLevel, unsigned long, const char*, int, const char*, ...) {}

template <class Body>
void in_a_process_of_its_own(Body body) {
  EXPECT_EXIT(
      {
        body();
        std::fflush(nullptr);
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(WrappedTables, HaveTheOtherPluginsOwnCallsOfTheSameVersion) {
  in_a_process_of_its_own([] {
    const Loaded loaded(PARCEL_ALL);
    auto& ours = loaded.table<abi::NetV12>(loaded.plugin, "ncclNetPlugin_v12");
    const auto& theirs = loaded.table<abi::NetV12>(loaded.other, "ncclNetPlugin_v12");
    EXPECT_STREQ(ours.name, "tributary");
    EXPECT_EQ(ours.send, theirs.send);
    EXPECT_EQ(ours.receive, theirs.receive);
    EXPECT_EQ(ours.get_properties, theirs.get_properties);
    EXPECT_EQ(ours.register_dma_buf, theirs.register_dma_buf) << "NCCL takes a function here as a promise of dma-buf";
    EXPECT_EQ(ours.make_virtual_device, theirs.make_virtual_device) << "NCCL fuses NICs only by this call";
    EXPECT_EQ(ours.device_memory, nullptr);
    EXPECT_EQ(ours.flush, nullptr) << "the other plugin fills this member in init()";
    void* context = nullptr;
    abi::CommConfig config{104};
    ASSERT_EQ(ours.init(&context, 1, &config, no_log, nullptr), success);
    EXPECT_NE(ours.flush, nullptr);
    EXPECT_EQ(ours.flush, theirs.flush);
    EXPECT_EQ(loaded.call("parcel_traffic_class"), 104);
  });
}

// NCCL asks CollNet for the properties of a device first, and keeps its answers for the messages.
TEST(WrappedTables, ShowCollNetsDevicesAsTheOtherPluginsWithGpuMemory) {
  in_a_process_of_its_own([] {
    const Loaded loaded(PARCEL_V8);
    auto& net = loaded.table<abi::NetV12>(loaded.plugin, "ncclNetPlugin_v12");
    auto& collnet = loaded.table<abi::CollNetV12>(loaded.plugin, "ncclCollNetPlugin_v12");
    void* context = nullptr;
    abi::CommConfig config{-1};
    ASSERT_EQ(net.init(&context, 1, &config, no_log, nullptr), success);
    int devices = 0;
    ASSERT_EQ(collnet.devices(&devices), success);
    EXPECT_EQ(devices, 8);
    for (const auto& [device, name] : {std::pair{0, "parcel0"}, {1, "parcel1"}, {2, "parcel0"}, {7, "parcel0"}}) {
      abi::PropertiesV12 properties{};
      ASSERT_EQ(collnet.get_properties(device, &properties), success);
      EXPECT_STREQ(properties.name, name);
      EXPECT_EQ(properties.pointer_support, abi::kPointerHost | abi::kPointerCuda);
      EXPECT_EQ(properties.speed_mbps, 200'000);
      EXPECT_EQ(properties.latency_us, 1.5F);
    }
    abi::PropertiesV12 properties{};
    ASSERT_EQ(net.get_properties(1, &properties), success);
    EXPECT_EQ(properties.pointer_support, abi::kPointerHost | abi::kPointerDmaBuf);
    EXPECT_EQ(properties.p2p_bytes_max, std::size_t{1} << 30) << "an int cannot hold the bytes of a longer message";
    EXPECT_EQ(properties.virtual_device.device[0], 1);
    EXPECT_EQ(properties.rail, -1);
    EXPECT_EQ(net.get_properties(2, &properties), invalid_argument);
    EXPECT_EQ(net.make_virtual_device, nullptr) << "version 8 cannot fuse NICs";
  });
}

TEST(WrappedTables, PassTheTrafficClassToAnOlderPluginsConnect) {
  in_a_process_of_its_own([] {
    const Loaded loaded(PARCEL_V10);
    auto& net = loaded.table<abi::NetV12>(loaded.plugin, "ncclNetPlugin_v12");
    std::array<void*, 2> contexts{};
    abi::CommConfig first{104}, second{8};
    ASSERT_EQ(net.init(&contexts[0], 1, &first, no_log, nullptr), success);
    ASSERT_EQ(net.init(&contexts[1], 2, &second, no_log, nullptr), success);
    EXPECT_EQ(loaded.call("parcel_inits"), 1) << "NCCL initialised such a plugin once";
    std::array<std::byte, abi::kHandleBytes> handle{};
    void *listening = nullptr, *sending = nullptr;
    ASSERT_EQ(net.listen(contexts[0], 0, handle.data(), &listening), success);
    for (const auto& [context, expected] : {std::pair{contexts[0], 104}, {contexts[1], 8}}) {
      ASSERT_EQ(net.connect(context, 0, handle.data(), &sending, nullptr), success);
      EXPECT_EQ(loaded.call("parcel_traffic_class"), expected);
      EXPECT_EQ(net.close_send(sending), success);
    }
    EXPECT_EQ(net.close_listen(listening), success);
    for (void* const context : contexts) EXPECT_EQ(net.finalize(context), success);
    abi::VirtualDevice<8> five{5, {0, 1, 2, 3, 4}};
    int device = 0;
    EXPECT_EQ(net.make_virtual_device(&device, &five), invalid_usage) << "version 10 fuses at most four devices";
  });
}

}  // namespace
}  // namespace tributary::nccl_test
