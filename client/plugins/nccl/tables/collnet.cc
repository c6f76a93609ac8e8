// Every version of the CollNet table. All versions call one implementation; they differ in their arguments.
#include "client/plugins/nccl/collective/collnet.h"
#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/settings.h"

namespace tributary::nccl {
namespace {

using abi::DataType;
using abi::RedOp;
using abi::Result;

constexpr const char* kName = "tributary";  // the net table has the same name, so NCCL takes both for one device

template <class Properties>
Result get_properties(int device, Properties* properties) {
  return guarded("CollNet getProperties", [&] {
    const NetDevice* known = collective_device_at(device);
    if (known == nullptr) return Result::invalid_argument;
    describe(*known, device, *properties);
    return Result::success;
  });
}

template <int kVersion>
Result init_old(abi::Logger logger) {
  return collnet::init(kVersion, nullptr, logger);
}
template <int kVersion>
Result init(void** context, std::uint64_t, abi::Logger logger) {
  return collnet::init(kVersion, context, logger);
}

Result listen_old(int device, void* handle, void** comm) {
  return collnet::listen(device, handle, comm);
}
Result listen(void*, int device, void* handle, void** comm) {
  return collnet::listen(device, handle, comm);
}

template <class Size>
Result register_memory(void* comm, void* data, Size bytes, int pointer_kind, void** memory) {
  return collnet::register_memory(comm, data, static_cast<std::size_t>(bytes), pointer_kind, memory);
}

template <class Count>
Result all_reduce(void* comm, void* send, void* receive, Count count, DataType type, RedOp op, void*, void*,
                  void** request) {
  return collnet::all_reduce(comm, send, receive, static_cast<std::size_t>(count), type, op, request);
}

template <class Piece>
Result all_gather(void* comm, void* send, int n, Piece* parts, std::size_t bytes_per_rank, std::size_t window_offset,
                  std::size_t window_bytes, void*, void** request) {
  return collnet::all_gather(comm, send, n, parts[0].address, bytes_per_rank, window_offset, window_bytes, request);
}

template <class Piece>
Result reduce_scatter(void* comm, int n, Piece* parts, void* receive, std::size_t bytes_per_rank,
                      std::size_t window_offset, std::size_t window_bytes, DataType type, RedOp op, void*,
                      void** request) {
  return collnet::reduce_scatter(comm, n, parts[0].address, receive, bytes_per_rank, window_offset, window_bytes, type,
                                 op, request);
}

Result flush(void*, void*, int, void*, void** request) {
  return collnet::flush(request);
}

template <int kVersion, class Properties>
constexpr abi::CollNetV6AndV7<Properties> make_v6_and_v7() noexcept {
  return {.name = kName,
          .init = init_old<kVersion>,
          .devices = collnet::devices,
          .get_properties = get_properties<Properties>,
          .listen = listen_old,
          .connect = collnet::connect,
          .reduce_support = collnet::reduce_support,
          .register_memory = register_memory<int>,
          .register_dma_buf = collnet::register_dma_buf,
          .deregister_memory = collnet::deregister_memory,
          .all_reduce = all_reduce<int>,
          .flush = flush,
          .test = collnet::test,
          .close_collective = collnet::close_collective,
          .close_listen = collnet::close_listen};
}

template <int kVersion, class Properties, std::size_t kDevices>
constexpr abi::CollNetV11AndV12<Properties, kDevices> make_v11_and_v12() noexcept {
  return {.name = kName,
          .init = init<kVersion>,
          .devices = collnet::devices,
          .get_properties = get_properties<Properties>,
          .listen = listen,
          .connect = collnet::connect,
          .reduce_support = collnet::reduce_support,
          .register_memory = register_memory<std::size_t>,
          .register_dma_buf = collnet::register_dma_buf,
          .deregister_memory = collnet::deregister_memory,
          .all_reduce = all_reduce<std::size_t>,
          .all_gather = all_gather<abi::Part>,
          .reduce_scatter = reduce_scatter<abi::Part>,
          .flush = flush,
          .test = collnet::test,
          .close_collective = collnet::close_collective,
          .close_listen = collnet::close_listen,
          .make_virtual_device = nullptr,
          .finalize = collnet::finalize};
}

template <int kVersion>
constexpr abi::CollNetV9 make_v9_and_v10() noexcept {
  return {.name = kName,
          .init = init_old<kVersion>,
          .devices = collnet::devices,
          .get_properties = get_properties<abi::PropertiesV9>,
          .listen = listen_old,
          .connect = collnet::connect,
          .reduce_support = collnet::reduce_support,
          .register_memory = register_memory<std::size_t>,
          .register_dma_buf = collnet::register_dma_buf,
          .deregister_memory = collnet::deregister_memory,
          .all_reduce = all_reduce<std::size_t>,
          .all_gather = all_gather<abi::Part>,
          .reduce_scatter = reduce_scatter<abi::Part>,
          .flush = flush,
          .test = collnet::test,
          .close_collective = collnet::close_collective,
          .close_listen = collnet::close_listen,
          .make_virtual_device = nullptr};
}

constexpr abi::CollNetV8 make_v8() noexcept {
  return {.name = kName,
          .init = init_old<8>,
          .devices = collnet::devices,
          .get_properties = get_properties<abi::PropertiesV8>,
          .listen = listen_old,
          .connect = collnet::connect,
          .reduce_support = collnet::reduce_support,
          .register_memory = register_memory<std::size_t>,
          .register_dma_buf = collnet::register_dma_buf,
          .deregister_memory = collnet::deregister_memory,
          .all_reduce = all_reduce<int>,
          .all_gather = all_gather<abi::PartV8>,
          .reduce_scatter = reduce_scatter<abi::PartV8>,
          .flush = flush,
          .test = collnet::test,
          .close_collective = collnet::close_collective,
          .close_listen = collnet::close_listen};
}

}  // namespace
}  // namespace tributary::nccl

namespace nccl = tributary::nccl;
namespace abi = tributary::nccl::abi;

#define TRIBUTARY_NCCL_TABLE __attribute__((visibility("default"))) constinit

extern "C" {
TRIBUTARY_NCCL_TABLE abi::CollNetV12 ncclCollNetPlugin_v12 = nccl::make_v11_and_v12<12, abi::PropertiesV12, 8>();
TRIBUTARY_NCCL_TABLE abi::CollNetV11 ncclCollNetPlugin_v11 = nccl::make_v11_and_v12<11, abi::PropertiesV11, 4>();
TRIBUTARY_NCCL_TABLE abi::CollNetV10 ncclCollNetPlugin_v10 = nccl::make_v9_and_v10<10>();
TRIBUTARY_NCCL_TABLE abi::CollNetV9 ncclCollNetPlugin_v9 = nccl::make_v9_and_v10<9>();
TRIBUTARY_NCCL_TABLE abi::CollNetV8 ncclCollNetPlugin_v8 = nccl::make_v8();
TRIBUTARY_NCCL_TABLE abi::CollNetV7 ncclCollNetPlugin_v7 = nccl::make_v6_and_v7<7, abi::PropertiesV7>();
TRIBUTARY_NCCL_TABLE abi::CollNetV6 ncclCollNetPlugin_v6 = nccl::make_v6_and_v7<6, abi::PropertiesV6>();
}  // extern "C"

namespace tributary::nccl {
namespace {

/// Takes the calls out of a table that TRIBUTARY_NCCL_COLLECTIVES does not name. NCCL never chooses CollNet for a
/// collective without a call.
template <class Table>
void keep_named(Table& table, const CollectiveChoice& choice) noexcept {
  if (!choice.all_gather) table.all_gather = nullptr;
  if (!choice.reduce_scatter) table.reduce_scatter = nullptr;
}

// NCCL reads the members when it loads the tables, so they must be right as soon as this library is loaded.
__attribute__((constructor)) void choose_collectives() noexcept {
  const CollectiveChoice choice = collective_choice();
  keep_named(ncclCollNetPlugin_v12, choice);
  keep_named(ncclCollNetPlugin_v11, choice);
  keep_named(ncclCollNetPlugin_v10, choice);
  keep_named(ncclCollNetPlugin_v9, choice);
  keep_named(ncclCollNetPlugin_v8, choice);
}

}  // namespace
}  // namespace tributary::nccl
