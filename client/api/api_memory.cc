// The functions of tributary.h for registered memory.
#include <algorithm>
#include <cstring>
#include <optional>

#include "client/api/guard.h"
#include "client/api/log.h"
#include "client/gpu/context.h"
#include "client/gpu/memory_kind.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file defines C names for it
using namespace tributary::client;  // NOLINT(google-build-using-namespace)

namespace {

Status check_range(const void* ptr, std::size_t bytes) {
  if (ptr == nullptr) return fail(Errc::bad_argument, "ptr is NULL");
  if (bytes == 0) return fail(Errc::bad_argument, "bytes is 0: there is nothing to register");
  if (bytes > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(ptr)) {
    return fail(Errc::bad_argument,
                "bytes is " + std::to_string(bytes) + ", which goes beyond the end of the address space");
  }
  return {};
}

/// Checks that the memory is of the kind that the caller names, and that a range of a GPU lies in one allocation.
Status check_kind(tributary_mem_kind kind, const void* ptr, std::size_t bytes, std::optional<int>& device) {
  if (kind != TRIBUTARY_MEM_HOST && kind != TRIBUTARY_MEM_CUDA) {
    return fail(Errc::bad_argument, "kind is " + std::to_string(static_cast<int>(kind)) +
                                        "; allowed is TRIBUTARY_MEM_HOST (0) and TRIBUTARY_MEM_CUDA (1)");
  }
  auto found = gpu::device_of(ptr);
  if (!found) return std::unexpected(found.error());
  device = *found;
  if (kind == TRIBUTARY_MEM_HOST) {
    return device ? fail(Errc::bad_argument,
                         "ptr is memory of GPU " + std::to_string(*device) + "; pass kind TRIBUTARY_MEM_CUDA (1)")
                  : Status{};
  }
  const auto driver = kernels::cuda::cuda_driver_of_process();
  if (!driver) return std::unexpected(driver.error());
  if (*driver == nullptr)
    return fail(Errc::unsupported, "this process has no CUDA driver (libcuda.so.1) loaded, so it has no GPU memory");
  if (!device) return fail(Errc::bad_argument, "ptr is not GPU memory; pass kind TRIBUTARY_MEM_HOST (0)");
  // The driver knows allocations only by a context that is current on this thread.
  const auto context = gpu::Context::retain(**driver, *device);
  if (!context) return std::unexpected(context.error());
  const gpu::Context::Current current(**context);
  kernels::cuda::DeviceAddress begin = 0;
  std::size_t length = 0;
  const auto address = reinterpret_cast<kernels::cuda::DeviceAddress>(ptr);
  auto result = current.result();
  if (result == kernels::cuda::CudaResult::success) result = (*driver)->address_range(begin, length, address);
  if (result != kernels::cuda::CudaResult::success)
    return std::unexpected(cuda_error(**driver, result, "asking for the allocation that ptr lies in"));
  if (bytes <= begin + length - address) return {};
  return fail(Errc::bad_argument, "bytes is " + std::to_string(bytes) + ", but the allocation ends " +
                                      std::to_string(begin + length - address) + " bytes after ptr");
}

template <class Body>
tributary_status with_comm(const char* function, tributary_comm* handle, Body body) {
  return guarded(function, [&]() -> tributary_status {
    const auto comm = live(function, handle);
    if (!comm) return TRIBUTARY_ERROR_BAD_ARGUMENT;
    const Status status = body(*comm);
    if (status) return TRIBUTARY_OK;
    return report(status.error().code, std::string(function) + ": " + status.error().message, &comm->errors());
  });
}

}  // namespace

tributary_status tributary_mem_register(tributary_comm* comm, void* ptr, size_t bytes, tributary_mem_kind kind,
                                        tributary_mem** mem) {
  return with_comm("tributary_mem_register", comm, [&](Comm& c) -> Status {
    if (mem == nullptr) return fail(Errc::bad_argument, "mem is NULL");
    *mem = nullptr;
    if (auto ok = check_range(ptr, bytes); !ok) return ok;
    std::optional<int> device;
    if (auto ok = check_kind(kind, ptr, bytes, device); !ok) return ok;
    auto memory = std::make_shared<RegisteredMemory>(c.errors().id(), ptr, bytes);
    if (device) {
      if (auto ok = c.prepare_gpu(*device); !ok) return ok;
      memory->kept = c.keep_gpu_memory({static_cast<std::byte*>(ptr), bytes});
      memory->not_shared = "it is memory of a GPU";
    } else {
      memory->kept = c.keep_registered({static_cast<const std::byte*>(ptr), bytes});
      memory->not_shared = c.announce(*memory);
      if (!memory->not_shared.empty()) {
        memory->announced.clear();
        if (logs(LogLevel::debug)) {
          log(LogLevel::debug, "tributary: rank " + std::to_string(c.rank()) + " of " + std::to_string(c.size()) +
                                   ": the ranks of this host do not map the registered memory: " + memory->not_shared);
        }
      }
    }
    *mem = memories().insert(std::move(memory));
    if (*mem == nullptr) return fail(Errc::exhausted, "too many ranges are registered at once");
    return {};
  });
}

tributary_status tributary_mem_alloc(size_t bytes, void** ptr) {
  constexpr const char* function = "tributary_mem_alloc";
  return guarded(function, [&]() -> tributary_status {
    if (ptr == nullptr) return report(Errc::bad_argument, std::string(function) + ": ptr is NULL");
    *ptr = nullptr;
    const auto made = transport::allocate_shared(bytes);
    if (!made) return report(made.error().code, std::string(function) + ": " + made.error().message);
    *ptr = *made;
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_mem_free(void* ptr) {
  constexpr const char* function = "tributary_mem_free";
  return guarded(function, [&]() -> tributary_status {
    if (ptr == nullptr) return TRIBUTARY_OK;
    const Status status = transport::free_shared(static_cast<std::byte*>(ptr));
    return status ? TRIBUTARY_OK : report(status.error().code, std::string(function) + ": " + status.error().message);
  });
}

tributary_status tributary_mem_info(const tributary_mem* mem, tributary_mem_details* details) {
  constexpr const char* function = "tributary_mem_info";
  return guarded(function, [&]() -> tributary_status {
    if (details == nullptr || details->struct_bytes < sizeof(std::size_t)) {
      return report(Errc::bad_argument,
                    std::string(function) + ": details->struct_bytes must be set to sizeof(tributary_mem_details)");
    }
    const auto memory = memories().find(mem);
    if (!memory)
      return report(Errc::bad_argument,
                    std::string(function) + ": mem is not live: it was deregistered, or never was a registration");
    tributary_mem_details ours{};
    ours.struct_bytes = details->struct_bytes;
    ours.shared = memory->not_shared.empty() ? 1 : 0;
    memory->not_shared.copy(ours.reason, sizeof ours.reason - 1);
    std::memcpy(details, &ours, std::min(details->struct_bytes, sizeof ours));
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_mem_register_dmabuf(tributary_comm* comm, void*, size_t, uint64_t, int,
                                               tributary_mem** mem) {
  return with_comm("tributary_mem_register_dmabuf", comm, [&](const Comm&) -> Status {
    if (mem == nullptr) return fail(Errc::bad_argument, "mem is NULL");
    *mem = nullptr;
    return fail(
        Errc::unsupported,
        "no transport of this libtributary takes a dma-buf from the caller: register GPU memory by its address, "
        "as TRIBUTARY_MEM_CUDA; the library then passes RDMA devices a dma-buf, if the driver makes one");
  });
}

tributary_status tributary_mem_deregister(tributary_comm* comm, tributary_mem* mem) {
  return with_comm("tributary_mem_deregister", comm, [&](const Comm& c) -> Status {
    const auto memory = memories().find(mem);
    if (!memory || memory->comm_id != c.errors().id()) {
      return fail(Errc::bad_argument, mem == nullptr
                                          ? "mem is NULL"
                                          : "mem is not live: it was deregistered, or belongs to another communicator");
    }
    memories().remove(mem);
    return {};
  });
}
