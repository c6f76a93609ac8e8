#include "client/plugins/nccl/collective/collnet.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "client/plugins/nccl/collective/group_comm.h"
#include "client/plugins/nccl/collective/meeting_handle.h"
#include "client/plugins/nccl/collective/service.h"
#include "client/plugins/nccl/collective/types.h"
#include "client/plugins/nccl/collective/window.h"
#include "client/plugins/nccl/guard.h"
#include "client/plugins/nccl/loader.h"
#include "client/plugins/nccl/settings.h"
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/reason.h"

namespace tributary::nccl::collnet {
namespace {

using enum abi::Result;

// The longest wait for the manager within listen(). NCCL's start waits for listen().
constexpr std::chrono::milliseconds kServiceLimit{2000};

/// `id` is an id for a group. Only rank 0's id is used; the other ranks release their ids.
struct ListenComm {
  int device = 0;
  bool has_id = false;
  tributary_unique_id id{};
  ~ListenComm() { release(); }
  void release() {
    if (std::exchange(has_id, false)) tributary_release_unique_id(&id);
  }
};

/// Owns every listenComm until NCCL closes it. After a failed connect, NCCL never closes the listenComm. This object
/// then keeps it, a few bytes, until the process ends.
class ListenComms {
 public:
  static ListenComms& process() {
    static auto* const one = new ListenComms;  // never destroyed: NCCL may call the plugin while the process ends
    return *one;
  }
  ListenComm* add(std::unique_ptr<ListenComm> comm) {
    const std::lock_guard lock(mutex_);
    return all_.emplace_back(std::move(comm)).get();
  }
  void close(const void* comm) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&](const auto& it) { return it.get() == comm; });
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<ListenComm>> all_;
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

bool service_is_there() {
  const std::string reason = Service::process().why_not(kServiceLimit);
  if (reason.empty()) return true;
  const std::string line = "CollNet has no service here: " + coded(Reason::collnet_off, reason);
  is_configured() ? warn(line) : info(line);
  return false;
}

Offer offer(ListenComm& comm) {
  if (!service_is_there()) return Offer::no_service;
  if (GroupComm::make_id(comm.device, comm.id) != success) return Offer::no_id;
  comm.has_id = true;
  return Offer::group;
}

/// Decides whether the ranks can meet. All ranks read the same handles, so all ranks decide in the same way.
bool all_can_meet(std::span<void* const> handles) {
  const int rank = MeetingHandle::first_refusal(handles);
  if (rank < 0) return true;
  const bool no_service = MeetingHandle::read(handles[static_cast<std::size_t>(rank)]) == Offer::no_service;
  const std::string line = coded(
      Reason::collnet_off, "CollNet stays off on all " + std::to_string(handles.size()) +
                               " ranks, and NCCL goes on with its own rings and trees: rank " + std::to_string(rank) +
                               (no_service ? " found no manager that answers" : " cannot take part in any group") +
                               "; its own log has the reason");
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
    note_loader(logger);
    if (const std::string word = collective_choice().unknown; !word.empty())
      warn("TRIBUTARY_NCCL_COLLECTIVES has the word " + word + ", which is not allreduce, allgather or reducescatter");
    info("CollNet v" + std::to_string(version) +
         " is ready: sums go through the network if rank 0 finds a manager; libtributary " +
         std::to_string(TRIBUTARY_VERSION_MAJOR) + "." + std::to_string(TRIBUTARY_VERSION_MINOR) + "." +
         std::to_string(TRIBUTARY_VERSION_PATCH));
    return success;
  });
}

abi::Result devices(int* count) {
  return guarded("CollNet devices", [&] {
    *count = kCollectiveDevices;
    return success;
  });
}

abi::Result listen(int device, void* handle, void** listen_comm) {
  return guarded("CollNet listen", [&] {
    *listen_comm = nullptr;
    auto comm = std::make_unique<ListenComm>();
    comm->device = device;
    // Never report an error here. Only this rank would know of the error: NCCL would give up on this rank, while the
    // other ranks wait for it.
    const Offer offered = offer(*comm);
    offered == Offer::group ? MeetingHandle::write(handle, comm->id) : MeetingHandle::write(handle, offered);
    *listen_comm = ListenComms::process().add(std::move(comm));
    return success;
  });
}

abi::Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** collective_comm) {
  return guarded("CollNet connect", [&] {
    *collective_comm = nullptr;
    // After a failed connect, NCCL does not close the listenComm, and may pass NULL in the next call.
    auto* const listening = static_cast<ListenComm*>(listen_comm);
    if (listening == nullptr || ranks < 1) return system_error;
    if (!all_can_meet({handles, static_cast<std::size_t>(ranks)})) {
      listening->release();
      return system_error;
    }
    tributary_unique_id id;
    std::memcpy(&id, handles[0], sizeof id);
    auto comm = GroupComm::connect(listening->device, id, ranks, rank);
    if (!comm) {
      listening->release();
      return system_error;
    }
    *collective_comm = comm.release();
    return success;
  });
}

// With exact numerics no tree carries products of floats. NCCL asks before each operation, so the plugin asks the
// library only once. If the settings are wrong, the library refuses them with its own error when it makes a group.
abi::Result reduce_support(abi::DataType type, abi::RedOp op, int* supported) {
  const auto dtype = to_dtype(type);
  const auto operation = to_op(op);
  *supported = dtype && operation ? 1 : 0;
  if (*supported == 0 || *operation != TRIBUTARY_PROD) return success;
  static const bool has_products_of_floats = [] {
    int has = 0;
    return tributary_op_supported(nullptr, TRIBUTARY_FLOAT32, TRIBUTARY_PROD, &has) != TRIBUTARY_OK || has == 1;
  }();
  if (is_float(static_cast<DType>(*dtype)) && !has_products_of_floats) *supported = 0;
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

// When a request has ended, its results are in host memory. So this call has nothing to flush.
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
    ListenComms::process().close(listen_comm);
    return success;
  });
}

abi::Result finalize(void*) {
  return success;
}

}  // namespace tributary::nccl::collnet
