#include "client/plugins/nccl/collective/collnet.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "client/plugins/nccl/collective/group_comm.h"
#include "client/plugins/nccl/collective/types.h"
#include "client/plugins/nccl/collective/window.h"
#include "client/plugins/nccl/guard.h"

namespace tributary::nccl::collnet {
namespace {

using enum abi::Result;

constexpr int kChecksMax = 3;
constexpr std::chrono::seconds kSlow{1};

static_assert(sizeof(tributary_unique_id) <= abi::kHandleBytes);

/// An id that rank 0's group will be made of; the other ranks' are given back.
struct ListenComm {
  int device = 0;
  tributary_unique_id id{};
  ~ListenComm() { tributary_release_unique_id(&id); }
};

GroupComm& group(void* comm) {
  return *static_cast<GroupComm*>(comm);
}

bool is_configured() {
  for (const char* name : {"TRIBUTARY_MANAGER", "TRIBUTARY_CONFIG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

/// Once there was a service, later communicators count on it: they wait on the fallback should it be away for a while.
bool service_is_there() {
  static std::atomic<bool> found{false};
  if (found.load(std::memory_order_relaxed)) return true;
  // A manager that is slow, because all of a large job's nodes ask at once, is asked again: without it the job would
  // have to do without CollNet to its end. One that is not there is not waited for.
  for (int attempt = 0; attempt < kChecksMax; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    if (tributary_service_check(nullptr) == TRIBUTARY_OK) {
      found.store(true, std::memory_order_relaxed);
      return true;
    }
    if (std::chrono::steady_clock::now() - begin < kSlow) break;
  }
  const std::string line =
      std::string("CollNet stays off, NCCL goes on with its own rings and trees: ") + tributary_last_error(nullptr);
  is_configured() ? warn(line) : info(line);
  return false;
}

bool covers_all(const GroupComm& comm, std::size_t bytes_per_rank, std::size_t offset, std::size_t bytes) {
  return offset == 0 && bytes == bytes_per_rank * static_cast<std::size_t>(comm.ranks());
}

}  // namespace

abi::Result init(int version, void** context, abi::Logger logger) {
  return guarded("CollNet init", [&] {
    set_logger(logger);
    if (context != nullptr) *context = nullptr;
    if (!service_is_there()) return system_error;
    info("CollNet v" + std::to_string(version) + " is on: sums go through the network; libtributary " +
         std::to_string(TRIBUTARY_VERSION_MAJOR) + "." + std::to_string(TRIBUTARY_VERSION_MINOR) + "." +
         std::to_string(TRIBUTARY_VERSION_PATCH));
    return success;
  });
}

abi::Result devices(int* count) {
  return guarded("CollNet devices", [&] {
    *count = static_cast<int>(tributary::nccl::devices().size());
    return success;
  });
}

abi::Result listen(int device, void* handle, void** listen_comm) {
  return guarded("CollNet listen", [&] {
    *listen_comm = nullptr;
    auto comm = std::make_unique<ListenComm>();
    comm->device = device;
    if (const auto result = GroupComm::make_id(device, comm->id); result != success) return result;
    std::memset(handle, 0, abi::kHandleBytes);
    std::memcpy(handle, &comm->id, sizeof comm->id);
    *listen_comm = comm.release();
    return success;
  });
}

abi::Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** collective_comm) {
  return guarded("CollNet connect", [&] {
    *collective_comm = nullptr;
    tributary_unique_id id;
    std::memcpy(&id, handles[0], sizeof id);
    auto comm = GroupComm::connect(static_cast<ListenComm*>(listen_comm)->device, id, ranks, rank);
    if (!comm) return system_error;
    *collective_comm = comm.release();
    return success;
  });
}

abi::Result reduce_support(abi::DataType type, abi::RedOp op, int* supported) {
  *supported = to_dtype(type) && to_op(op) ? 1 : 0;
  return success;
}

abi::Result register_memory(void* comm, void* data, std::size_t bytes, int pointer_kind, void** memory) {
  return guarded("CollNet regMr", [&] { return group(comm).registrations().add(data, bytes, pointer_kind, memory); });
}

abi::Result register_dma_buf(void* comm, void* data, std::size_t bytes, int, std::uint64_t offset, int descriptor,
                             void** memory) {
  return guarded("CollNet regMrDmaBuf",
                 [&] { return group(comm).registrations().add_dma_buf(data, bytes, offset, descriptor, memory); });
}

abi::Result deregister_memory(void* comm, void* memory) {
  return guarded("CollNet deregMr", [&] { return group(comm).registrations().remove(memory); });
}

abi::Result all_reduce(void* comm, void* send, void* receive, std::size_t count, abi::DataType type, abi::RedOp op,
                       void** request) {
  return guarded("iallreduce", [&] {
    const auto dtype = to_dtype(type);
    const auto operation = to_op(op);
    if (!dtype || !operation) return invalid_argument;
    return group(comm).start({{.kind = GroupCall::Kind::all_reduce,
                               .send = send,
                               .receive = receive,
                               .count = count,
                               .dtype = *dtype,
                               .op = *operation}},
                             count * size_of(*dtype), request);
  });
}

abi::Result all_gather(void* comm, void* send, int parts, void* receive, std::size_t bytes_per_rank,
                       std::size_t window_offset, std::size_t window_bytes, void** request) {
  return guarded("iallgather", [&] {
    if (parts != 1) return invalid_argument;
    GroupComm& ours = group(comm);
    std::vector<GroupCall> calls;
    if (covers_all(ours, bytes_per_rank, window_offset, window_bytes)) {
      calls.push_back({.kind = GroupCall::Kind::all_gather, .send = send, .receive = receive, .count = bytes_per_rank});
    } else {
      for (const Share& share : shares_of_window(bytes_per_rank, ours.ranks(), window_offset, window_bytes)) {
        calls.push_back({.kind = GroupCall::Kind::broadcast,
                         .send = send,
                         .receive = static_cast<std::byte*>(receive) + share.offset,
                         .count = share.bytes,
                         .root = share.rank});
      }
    }
    return ours.start(std::move(calls), window_bytes, request);
  });
}

abi::Result reduce_scatter(void* comm, int parts, void* send, void* receive, std::size_t bytes_per_rank,
                           std::size_t window_offset, std::size_t window_bytes, abi::DataType type, abi::RedOp op,
                           void** request) {
  return guarded("ireducescatter", [&] {
    const auto dtype = to_dtype(type);
    const auto operation = to_op(op);
    if (parts != 1 || !dtype || !operation) return invalid_argument;
    GroupComm& ours = group(comm);
    const std::size_t element = size_of(*dtype);
    std::vector<GroupCall> calls;
    std::size_t own_bytes = 0;
    if (covers_all(ours, bytes_per_rank, window_offset, window_bytes)) {
      own_bytes = bytes_per_rank;
      calls.push_back({.kind = GroupCall::Kind::reduce_scatter,
                       .send = send,
                       .receive = receive,
                       .count = bytes_per_rank / element,
                       .dtype = *dtype,
                       .op = *operation});
    } else {
      for (const Share& share : shares_of_window(bytes_per_rank, ours.ranks(), window_offset, window_bytes)) {
        if (share.bytes % element != 0) return invalid_argument;
        if (share.rank == ours.rank()) own_bytes = share.bytes;
        calls.push_back({.kind = GroupCall::Kind::reduce,
                         .send = static_cast<std::byte*>(send) + share.offset,
                         .receive = receive,
                         .count = share.bytes / element,
                         .dtype = *dtype,
                         .op = *operation,
                         .root = share.rank});
      }
    }
    return ours.start(std::move(calls), own_bytes, request);
  });
}

// Results are in host memory when a request has ended: there is nothing that could still be on its way.
abi::Result flush(void** request) {
  *request = finished_request();
  return success;
}

abi::Result test(void* request, int* done, int* sizes) {
  *done = 0;
  return guarded("CollNet test", [&] { return static_cast<Request*>(request)->test(done, sizes); });
}

abi::Result close_collective(void* comm) {
  return guarded("closeColl", [&] {
    const std::unique_ptr<GroupComm> gone(static_cast<GroupComm*>(comm));
    return success;
  });
}

abi::Result close_listen(void* listen_comm) {
  return guarded("CollNet closeListen", [&] {
    const std::unique_ptr<ListenComm> gone(static_cast<ListenComm*>(listen_comm));
    return success;
  });
}

abi::Result finalize(void*) {
  return success;
}

}  // namespace tributary::nccl::collnet
