// Every version of the net table. All versions call one implementation; they differ in their arguments. If another
// plugin is wrapped, the tables get its calls once this library is loaded.
#include "client/plugins/nccl/p2p/net.h"
#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/wrapped/wrap.h"

namespace tributary::nccl {
namespace {

using abi::Result;

constexpr const char* kName = "tributary";

template <class Properties>
Result get_properties(int device, Properties* properties) {
  return guarded("net getProperties", [&] {
    const NetDevice* known = device_at(device);
    if (known == nullptr) return Result::invalid_argument;
    describe(*known, device, *properties);
    return Result::success;
  });
}

template <int kVersion>
Result init_old(abi::Logger logger) {
  return net::init(kVersion, nullptr, logger);
}
Result init_v10(abi::Logger logger, abi::ProfilerCallback profiler) {
  return net::init(10, nullptr, logger, nullptr, profiler);
}
template <int kVersion>
Result init(void** context, std::uint64_t, abi::CommConfig* config, abi::Logger logger,
            abi::ProfilerCallback profiler) {
  return net::init(kVersion, context, logger, config, profiler);
}

Result listen_old(int device, void* handle, void** comm) {
  return net::listen(nullptr, device, handle, comm);
}

Result connect_v6(int device, void* handle, void** comm) {
  return net::connect(nullptr, device, handle, comm);
}
Result connect_v7(int device, void* handle, void** comm, abi::DeviceHandle**) {
  return net::connect(nullptr, device, handle, comm);
}
Result connect_v10(int device, abi::CommConfig* config, void* handle, void** comm, abi::DeviceHandle**) {
  return net::connect(nullptr, device, handle, comm, config);
}
Result connect(void* context, int device, void* handle, void** comm, abi::DeviceHandle**) {
  return net::connect(context, device, handle, comm);
}

Result accept(void* listen_comm, void** comm, abi::DeviceHandle**) {
  return net::accept(listen_comm, comm);
}

template <class Size>
Result register_memory(void* comm, void* data, Size bytes, int pointer_kind, void** memory) {
  return net::register_memory(comm, data, static_cast<std::size_t>(bytes), pointer_kind, memory);
}

template <class Size>
Result send_old(void* comm, void* data, Size bytes, int tag, void*, void** request) {
  return net::send(comm, data, static_cast<std::size_t>(bytes), tag, request);
}
Result send(void* comm, void* data, std::size_t bytes, int tag, void*, void* parent, void** request) {
  return net::send(comm, data, bytes, tag, request, parent);
}

template <class Size>
Result receive_old(void* comm, int n, void** data, Size* bytes, int* tags, void**, void** request) {
  const auto first = static_cast<std::size_t>(bytes[0]);
  return net::receive(comm, n, data, &first, tags, request);
}
Result receive(void* comm, int n, void** data, std::size_t* bytes, int* tags, void**, void** parents, void** request) {
  return net::receive(comm, n, data, bytes, tags, request, parents == nullptr ? nullptr : parents[0]);
}

Result flush(void*, int, void**, int*, void**, void** request) {
  return net::flush(request);
}

// Ignores the expected number of peers: sockets have no use for this number.
Result set_attributes(void*, abi::NetAttributes*) {
  return Result::success;
}

template <int kVersion, class Properties, class RegisterSize>
constexpr abi::NetV7AndV8<Properties, RegisterSize> make_v7_and_v8() noexcept {
  return {.name = kName,
          .init = init_old<kVersion>,
          .devices = net::devices,
          .get_properties = get_properties<Properties>,
          .listen = listen_old,
          .connect = connect_v7,
          .accept = accept,
          .register_memory = register_memory<RegisterSize>,
          .register_dma_buf = nullptr,
          .deregister_memory = net::deregister_memory,
          .send = send_old<int>,
          .receive = receive_old<int>,
          .flush = flush,
          .test = net::test,
          .close_send = net::close_send,
          .close_receive = net::close_receive,
          .close_listen = net::close_listen,
          .device_memory = nullptr,
          .receive_consumed = nullptr};
}

template <int kVersion, class Properties, std::size_t kDevices>
constexpr abi::NetV11AndV12<Properties, kDevices> make_v11_and_v12() noexcept {
  return {.name = kName,
          .init = init<kVersion>,
          .devices = net::devices,
          .get_properties = get_properties<Properties>,
          .listen = net::listen,
          .connect = connect,
          .accept = accept,
          .register_memory = register_memory<std::size_t>,
          .register_dma_buf = nullptr,
          .deregister_memory = net::deregister_memory,
          .send = send,
          .receive = receive,
          .flush = flush,
          .test = net::test,
          .close_send = net::close_send,
          .close_receive = net::close_receive,
          .close_listen = net::close_listen,
          .device_memory = nullptr,
          .receive_consumed = nullptr,
          .make_virtual_device = nullptr,
          .finalize = net::finalize,
          .set_attributes = set_attributes};
}

}  // namespace
}  // namespace tributary::nccl

namespace nccl = tributary::nccl;
namespace abi = tributary::nccl::abi;

#define TRIBUTARY_NCCL_TABLE __attribute__((visibility("default"))) constinit

extern "C" {
TRIBUTARY_NCCL_TABLE abi::NetV12 ncclNetPlugin_v12 = nccl::make_v11_and_v12<12, abi::PropertiesV12, 8>();
TRIBUTARY_NCCL_TABLE abi::NetV11 ncclNetPlugin_v11 = nccl::make_v11_and_v12<11, abi::PropertiesV11, 4>();
TRIBUTARY_NCCL_TABLE abi::NetV10 ncclNetPlugin_v10 = {.name = nccl::kName,
                                                      .init = nccl::init_v10,
                                                      .devices = nccl::net::devices,
                                                      .get_properties = nccl::get_properties<abi::PropertiesV10>,
                                                      .listen = nccl::listen_old,
                                                      .connect = nccl::connect_v10,
                                                      .accept = nccl::accept,
                                                      .register_memory = nccl::register_memory<std::size_t>,
                                                      .register_dma_buf = nullptr,
                                                      .deregister_memory = nccl::net::deregister_memory,
                                                      .send = nccl::send,
                                                      .receive = nccl::receive,
                                                      .flush = nccl::flush,
                                                      .test = nccl::net::test,
                                                      .close_send = nccl::net::close_send,
                                                      .close_receive = nccl::net::close_receive,
                                                      .close_listen = nccl::net::close_listen,
                                                      .device_memory = nullptr,
                                                      .receive_consumed = nullptr,
                                                      .make_virtual_device = nullptr};
TRIBUTARY_NCCL_TABLE abi::NetV9 ncclNetPlugin_v9 = {.name = nccl::kName,
                                                    .init = nccl::init_old<9>,
                                                    .devices = nccl::net::devices,
                                                    .get_properties = nccl::get_properties<abi::PropertiesV9>,
                                                    .listen = nccl::listen_old,
                                                    .connect = nccl::connect_v7,
                                                    .accept = nccl::accept,
                                                    .register_memory = nccl::register_memory<std::size_t>,
                                                    .register_dma_buf = nullptr,
                                                    .deregister_memory = nccl::net::deregister_memory,
                                                    .send = nccl::send_old<std::size_t>,
                                                    .receive = nccl::receive_old<std::size_t>,
                                                    .flush = nccl::flush,
                                                    .test = nccl::net::test,
                                                    .close_send = nccl::net::close_send,
                                                    .close_receive = nccl::net::close_receive,
                                                    .close_listen = nccl::net::close_listen,
                                                    .device_memory = nullptr,
                                                    .receive_consumed = nullptr,
                                                    .make_virtual_device = nullptr};
TRIBUTARY_NCCL_TABLE abi::NetV8 ncclNetPlugin_v8 = nccl::make_v7_and_v8<8, abi::PropertiesV8, std::size_t>();
TRIBUTARY_NCCL_TABLE abi::NetV7 ncclNetPlugin_v7 = nccl::make_v7_and_v8<7, abi::PropertiesV7, int>();
TRIBUTARY_NCCL_TABLE abi::NetV6 ncclNetPlugin_v6 = {.name = nccl::kName,
                                                    .init = nccl::init_old<6>,
                                                    .devices = nccl::net::devices,
                                                    .get_properties = nccl::get_properties<abi::PropertiesV6>,
                                                    .listen = nccl::listen_old,
                                                    .connect = nccl::connect_v6,
                                                    .accept = nccl::net::accept,
                                                    .register_memory = nccl::register_memory<int>,
                                                    .register_dma_buf = nullptr,
                                                    .deregister_memory = nccl::net::deregister_memory,
                                                    .send = nccl::send_old<int>,
                                                    .receive = nccl::receive_old<int>,
                                                    .flush = nccl::flush,
                                                    .test = nccl::net::test,
                                                    .close_send = nccl::net::close_send,
                                                    .close_receive = nccl::net::close_receive,
                                                    .close_listen = nccl::net::close_listen};
}  // extern "C"

namespace tributary::nccl {
namespace {

// NCCL finds a table by its name, so it has no call that could choose the table's contents: they must be there as soon
// as the library is loaded.
__attribute__((constructor)) void wrap_other_plugin() noexcept {
  const OtherPlugin* const other = OtherPlugin::process();
  if (other == nullptr || !other->failure().empty()) return;
  wrap<12>(ncclNetPlugin_v12, *other);
  wrap<11>(ncclNetPlugin_v11, *other);
  wrap<10>(ncclNetPlugin_v10, *other);
  wrap<9>(ncclNetPlugin_v9, *other);
  wrap<8>(ncclNetPlugin_v8, *other);
  wrap<7>(ncclNetPlugin_v7, *other);
  wrap<6>(ncclNetPlugin_v6, *other);
}

}  // namespace
}  // namespace tributary::nccl
