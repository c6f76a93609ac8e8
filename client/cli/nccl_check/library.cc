#include "client/cli/nccl_check/library.h"

#include <dlfcn.h>

#include "client/cli/nccl_check/failure.h"

namespace tributary::cli::nccl_check {
namespace {

template <class Filled, class Table>
Result read_properties(const Table& table, int device, Properties& to) {
  Filled from{};
  const Result result = table.get_properties(device, &from);
  if (result != Result::success) return result;
  to.name = from.name;
  to.pci_path = from.pci_path == nullptr ? "" : from.pci_path;
  to.speed_mbps = from.speed_mbps;
  to.pointer_support = from.pointer_support;
  to.receives_max = from.receives_max;
  to.collective_bytes_max = 1U << 29;  // NCCL's assumption for a layout without this member
  if constexpr (requires { from.collective_bytes_max; }) to.collective_bytes_max = from.collective_bytes_max;
  return result;
}

template <class Table, class Filled>
class NetOf final : public NetTable {
 public:
  explicit NetOf(const Table& table) : table_(table) {}

  Result init(void** context, abi::Logger logger) override {
    abi::CommConfig config{-1};
    if constexpr (requires { table_.init(context, 1, &config, logger, nullptr); }) {
      return table_.init(context, 1, &config, logger, nullptr);
    } else if constexpr (requires { table_.init(logger, nullptr); }) {
      return table_.init(logger, nullptr);
    } else {
      return table_.init(logger);
    }
  }
  Result devices(int* count) override { return table_.devices(count); }
  Result properties(int device, Properties& to) override { return read_properties<Filled>(table_, device, to); }
  Result listen(void* context, int device, void* handle, void** comm) override {
    if constexpr (requires { table_.listen(context, device, handle, comm); }) {
      return table_.listen(context, device, handle, comm);
    } else {
      return table_.listen(device, handle, comm);
    }
  }
  Result connect(void* context, int device, void* handle, void** comm) override {
    abi::DeviceHandle* offload = nullptr;
    abi::CommConfig config{-1};
    if constexpr (std::is_same_v<Table, abi::NetV10>) {
      return table_.connect(device, &config, handle, comm, &offload);
    } else if constexpr (requires { table_.connect(context, device, handle, comm, &offload); }) {
      return table_.connect(context, device, handle, comm, &offload);
    } else if constexpr (requires { table_.connect(device, handle, comm, &offload); }) {
      return table_.connect(device, handle, comm, &offload);
    } else {
      return table_.connect(device, handle, comm);
    }
  }
  Result accept(void* listen_comm, void** comm) override {
    abi::DeviceHandle* offload = nullptr;
    if constexpr (requires { table_.accept(listen_comm, comm, &offload); }) {
      return table_.accept(listen_comm, comm, &offload);
    } else {
      return table_.accept(listen_comm, comm);
    }
  }
  Result register_memory(void* comm, void* data, std::size_t bytes, void** memory) override {
    return call_register(table_.register_memory, comm, data, bytes, memory);
  }
  Result deregister_memory(void* comm, void* memory) override { return table_.deregister_memory(comm, memory); }
  Result send(void* comm, void* data, std::size_t bytes, int tag, void* memory, void** request) override {
    if constexpr (requires { table_.send(comm, data, bytes, tag, memory, nullptr, request); }) {
      return table_.send(comm, data, bytes, tag, memory, nullptr, request);
    } else {
      return send_old(table_.send, comm, data, bytes, tag, memory, request);
    }
  }
  Result receive(void* comm, void* data, std::size_t bytes, int tag, void* memory, void** request) override {
    if constexpr (requires { table_.receive(comm, 1, &data, &bytes, &tag, &memory, nullptr, request); }) {
      return table_.receive(comm, 1, &data, &bytes, &tag, &memory, nullptr, request);
    } else {
      return receive_old(table_.receive, comm, data, bytes, tag, memory, request);
    }
  }
  Result flush(void* comm, void* data, int bytes, void* memory, void** request) override {
    return table_.flush(comm, 1, &data, &bytes, &memory, request);
  }
  Result test(void* request, int* done, int* sizes) override { return table_.test(request, done, sizes); }
  Result close_send(void* comm) override { return table_.close_send(comm); }
  Result close_receive(void* comm) override { return table_.close_receive(comm); }
  Result close_listen(void* comm) override { return table_.close_listen(comm); }
  Result finalize(void* context) override {
    if constexpr (requires { table_.finalize(context); }) return table_.finalize(context);
    return Result::success;
  }

 private:
  template <class Size>
  static Result call_register(abi::RegisterMemory<Size> call, void* comm, void* data, std::size_t bytes,
                              void** memory) {
    return call(comm, data, static_cast<Size>(bytes), abi::kPointerHost, memory);
  }
  template <class Size>
  static Result send_old(abi::SendOld<Size> call, void* comm, void* data, std::size_t bytes, int tag, void* memory,
                         void** request) {
    return call(comm, data, static_cast<Size>(bytes), tag, memory, request);
  }
  template <class Size>
  static Result receive_old(abi::ReceiveOld<Size> call, void* comm, void* data, std::size_t bytes, int tag,
                            void* memory, void** request) {
    auto room = static_cast<Size>(bytes);
    return call(comm, 1, &data, &room, &tag, &memory, request);
  }

  const Table& table_;
};

template <class Table, class Filled>
class CollNetOf final : public CollNetTable {
 public:
  explicit CollNetOf(const Table& table) : table_(table) {}

  Result init(void** context, abi::Logger logger) override {
    if constexpr (requires { table_.init(context, 1, logger); }) {
      return table_.init(context, 1, logger);
    } else {
      return table_.init(logger);
    }
  }
  Result devices(int* count) override { return table_.devices(count); }
  Result properties(int device, Properties& to) override { return read_properties<Filled>(table_, device, to); }
  Result listen(void* context, int device, void* handle, void** comm) override {
    if constexpr (requires { table_.listen(context, device, handle, comm); }) {
      return table_.listen(context, device, handle, comm);
    } else {
      return table_.listen(device, handle, comm);
    }
  }
  Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** comm) override {
    return table_.connect(handles, ranks, rank, listen_comm, comm);
  }
  Result reduce_support(abi::DataType type, abi::RedOp op, int* supported) override {
    return table_.reduce_support(type, op, supported);
  }
  Result register_memory(void* comm, void* data, std::size_t bytes, int kind, void** memory) override {
    return call_register(table_.register_memory, comm, data, bytes, kind, memory);
  }
  Result deregister_memory(void* comm, void* memory) override { return table_.deregister_memory(comm, memory); }
  Result all_reduce(void* comm, void* send, void* receive, std::size_t count, abi::DataType type, abi::RedOp op,
                    void* send_memory, void* receive_memory, void** request) override {
    return call_reduce(table_.all_reduce, comm, send, receive, count, type, op, send_memory, receive_memory, request);
  }
  [[nodiscard]] bool has_all_gather() const override {
    if constexpr (requires { table_.all_gather; }) return table_.all_gather != nullptr;
    return false;
  }
  [[nodiscard]] bool has_reduce_scatter() const override {
    if constexpr (requires { table_.reduce_scatter; }) return table_.reduce_scatter != nullptr;
    return false;
  }
  Result all_gather(void* comm, void* send, abi::Part part, std::size_t bytes_per_rank, std::size_t offset,
                    std::size_t bytes, void* memory, void** request) override {
    if constexpr (requires { table_.all_gather; }) {
      return call_gather(table_.all_gather, comm, send, part, bytes_per_rank, offset, bytes, memory, request);
    }
    return Result::invalid_usage;
  }
  Result reduce_scatter(void* comm, abi::Part part, void* receive, std::size_t bytes_per_rank, std::size_t offset,
                        std::size_t bytes, abi::DataType type, abi::RedOp op, void* memory, void** request) override {
    if constexpr (requires { table_.reduce_scatter; }) {
      return call_scatter(table_.reduce_scatter, comm, part, receive, bytes_per_rank, offset, bytes, type, op, memory,
                          request);
    }
    return Result::invalid_usage;
  }
  Result flush(void* comm, void* data, int bytes, void* memory, void** request) override {
    return table_.flush(comm, data, bytes, memory, request);
  }
  Result test(void* request, int* done, int* size) override { return table_.test(request, done, size); }
  Result close_collective(void* comm) override { return table_.close_collective(comm); }
  Result close_listen(void* comm) override { return table_.close_listen(comm); }
  Result finalize(void* context) override {
    if constexpr (requires { table_.finalize(context); }) return table_.finalize(context);
    return Result::success;
  }

 private:
  template <class Size>
  static Result call_register(abi::RegisterMemory<Size> call, void* comm, void* data, std::size_t bytes, int kind,
                              void** memory) {
    return call(comm, data, static_cast<Size>(bytes), kind, memory);
  }
  template <class Count>
  static Result call_reduce(abi::AllReduce<Count> call, void* comm, void* send, void* receive, std::size_t count,
                            abi::DataType type, abi::RedOp op, void* send_memory, void* receive_memory,
                            void** request) {
    return call(comm, send, receive, static_cast<Count>(count), type, op, send_memory, receive_memory, request);
  }
  template <class Piece>
  static Piece piece_of(const abi::Part& part) {
    return {part.memory, part.address, static_cast<decltype(Piece::bytes)>(part.bytes)};
  }
  template <class Piece>
  static Result call_gather(abi::AllGather<Piece> call, void* comm, void* send, const abi::Part& part,
                            std::size_t bytes_per_rank, std::size_t offset, std::size_t bytes, void* memory,
                            void** request) {
    Piece piece = piece_of<Piece>(part);
    return call(comm, send, 1, &piece, bytes_per_rank, offset, bytes, memory, request);
  }
  template <class Piece>
  static Result call_scatter(abi::ReduceScatter<Piece> call, void* comm, const abi::Part& part, void* receive,
                             std::size_t bytes_per_rank, std::size_t offset, std::size_t bytes, abi::DataType type,
                             abi::RedOp op, void* memory, void** request) {
    Piece piece = piece_of<Piece>(part);
    return call(comm, 1, &piece, receive, bytes_per_rank, offset, bytes, type, op, memory, request);
  }

  const Table& table_;
};

template <class Interface, template <class, class> class Wrapper, class Table, class Filled>
std::unique_ptr<Interface> wrap(const void* table) {
  return std::make_unique<Wrapper<Table, Filled>>(*static_cast<const Table*>(table));
}

template <class Interface>
struct Version {
  int number;
  std::unique_ptr<Interface> (*wrap)(const void* table);
};

constexpr Version<NetTable> kNet[] = {
    {12, wrap<NetTable, NetOf, abi::NetV12, abi::PropertiesV12>},
    {11, wrap<NetTable, NetOf, abi::NetV11, abi::PropertiesV11>},
    {10, wrap<NetTable, NetOf, abi::NetV10, abi::PropertiesV10>},
    {9, wrap<NetTable, NetOf, abi::NetV9, abi::PropertiesV9>},
    {8, wrap<NetTable, NetOf, abi::NetV8, abi::PropertiesV8>},
    {7, wrap<NetTable, NetOf, abi::NetV7, abi::PropertiesV7>},
    {6, wrap<NetTable, NetOf, abi::NetV6, abi::PropertiesV6>},
};
constexpr Version<CollNetTable> kCollNet[] = {
    {12, wrap<CollNetTable, CollNetOf, abi::CollNetV12, abi::PropertiesV12>},
    {11, wrap<CollNetTable, CollNetOf, abi::CollNetV11, abi::PropertiesV11>},
    {10, wrap<CollNetTable, CollNetOf, abi::CollNetV10, abi::PropertiesV10>},
    {9, wrap<CollNetTable, CollNetOf, abi::CollNetV9, abi::PropertiesV9>},
    {8, wrap<CollNetTable, CollNetOf, abi::CollNetV8, abi::PropertiesV8>},
    {7, wrap<CollNetTable, CollNetOf, abi::CollNetV7, abi::PropertiesV7>},
    {6, wrap<CollNetTable, CollNetOf, abi::CollNetV6, abi::PropertiesV6>},
};

template <class Interface, std::size_t kCount>
std::unique_ptr<Interface> find(const Library& library, const Version<Interface> (&versions)[kCount],
                                const std::string& prefix, int newest, int* number) {
  for (const auto& version : versions) {
    if (version.number > newest) continue;
    const void* table = library.symbol(prefix + std::to_string(version.number));
    if (table == nullptr) continue;
    *number = version.number;
    return version.wrap(table);
  }
  throw Failure("there is no " + prefix + std::to_string(newest) + " or older");
}

}  // namespace

// Finds the library as NCCL does: first by the name itself, then as libnccl-net-NAME.so.
Library::Library(const std::string& name) {
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::string error = handle_ == nullptr ? dlerror() : "";
  if (handle_ == nullptr && !name.contains('/')) {
    handle_ = dlopen(("libnccl-net-" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) error += "; " + std::string(dlerror());
  }
  require(handle_ != nullptr, "NCCL could not load the plugin: " + error);
}

Library::~Library() {
  if (handle_ != nullptr) dlclose(handle_);
}

const void* Library::symbol(const std::string& name) const {
  return dlsym(handle_, name.c_str());
}

std::unique_ptr<NetTable> Library::net(int newest, int* version) const {
  return find(*this, kNet, "ncclNetPlugin_v", newest, version);
}

std::unique_ptr<CollNetTable> Library::collnet(int newest, int* version) const {
  return find(*this, kCollNet, "ncclCollNetPlugin_v", newest, version);
}

}  // namespace tributary::cli::nccl_check
