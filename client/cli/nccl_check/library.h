#pragma once
// The plugin, as NCCL sees it: a shared object with tables of several versions. All versions have one interface here:
// the interface of the newest version.
#include <memory>
#include <string>
#include <vector>

#include "client/plugins/nccl/abi/collnet.h"
#include "client/plugins/nccl/abi/net.h"

namespace tributary::cli::nccl_check {

namespace abi = nccl::abi;

using abi::Result;

struct Properties {
  std::string name;
  std::string pci_path;
  int speed_mbps = 0;
  int pointer_support = 0;
  int receives_max = 0;
  std::size_t collective_bytes_max = 0;
};

class NetTable {
 public:
  virtual ~NetTable() = default;
  virtual Result init(void** context, abi::Logger logger) = 0;
  virtual Result devices(int* count) = 0;
  virtual Result properties(int device, Properties& properties) = 0;
  virtual Result listen(void* context, int device, void* handle, void** comm) = 0;
  virtual Result connect(void* context, int device, void* handle, void** comm) = 0;
  virtual Result accept(void* listen_comm, void** comm) = 0;
  virtual Result register_memory(void* comm, void* data, std::size_t bytes, void** memory) = 0;
  virtual Result deregister_memory(void* comm, void* memory) = 0;
  virtual Result send(void* comm, void* data, std::size_t bytes, int tag, void* memory, void** request) = 0;
  virtual Result receive(void* comm, void* data, std::size_t bytes, int tag, void* memory, void** request) = 0;
  virtual Result flush(void* comm, void* data, int bytes, void* memory, void** request) = 0;
  virtual Result test(void* request, int* done, int* sizes) = 0;
  virtual Result close_send(void* comm) = 0;
  virtual Result close_receive(void* comm) = 0;
  virtual Result close_listen(void* comm) = 0;
  virtual Result finalize(void* context) = 0;
};

class CollNetTable {
 public:
  virtual ~CollNetTable() = default;
  virtual Result init(void** context, abi::Logger logger) = 0;
  virtual Result devices(int* count) = 0;
  virtual Result properties(int device, Properties& properties) = 0;
  virtual Result listen(void* context, int device, void* handle, void** comm) = 0;
  virtual Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** comm) = 0;
  virtual Result reduce_support(abi::DataType type, abi::RedOp op, int* supported) = 0;
  virtual Result register_memory(void* comm, void* data, std::size_t bytes, int kind, void** memory) = 0;
  virtual Result deregister_memory(void* comm, void* memory) = 0;
  virtual Result all_reduce(void* comm, void* send, void* receive, std::size_t count, abi::DataType type, abi::RedOp op,
                            void* send_memory, void* receive_memory, void** request) = 0;
  /// True for versions with all_gather and reduce_scatter (from v8 on).
  [[nodiscard]] virtual bool has_all_gather() const = 0;
  [[nodiscard]] virtual bool has_reduce_scatter() const = 0;
  virtual Result all_gather(void* comm, void* send, abi::Part part, std::size_t bytes_per_rank, std::size_t offset,
                            std::size_t bytes, void* memory, void** request) = 0;
  virtual Result reduce_scatter(void* comm, abi::Part part, void* receive, std::size_t bytes_per_rank,
                                std::size_t offset, std::size_t bytes, abi::DataType type, abi::RedOp op, void* memory,
                                void** request) = 0;
  virtual Result flush(void* comm, void* data, int bytes, void* memory, void** request) = 0;
  virtual Result test(void* request, int* done, int* size) = 0;
  virtual Result close_collective(void* comm) = 0;
  virtual Result close_listen(void* comm) = 0;
  virtual Result finalize(void* context) = 0;
};

inline constexpr int kNewestVersion = 12;
inline constexpr int kOldestVersion = 6;

class Library {
 public:
  /// Loads the library. `name` is a value of NCCL_NET_PLUGIN: a path, or X for libnccl-net-X.so. Throws Failure.
  explicit Library(const std::string& name);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Returns the newest table that is at most `newest`, as NCCL finds it; throws Failure if there is none.
  [[nodiscard]] std::unique_ptr<NetTable> net(int newest, int* version) const;
  [[nodiscard]] std::unique_ptr<CollNetTable> collnet(int newest, int* version) const;
  /// Returns a symbol's address; nullptr: the library does not have it.
  [[nodiscard]] const void* symbol(const std::string& name) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace tributary::cli::nccl_check
