// tributary.h: registered memory.
#include "client/api/guard.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file is the C names' side of it
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

Status check_kind(tributary_mem_kind kind) {
  switch (kind) {
    case TRIBUTARY_MEM_HOST:
      return {};
    case TRIBUTARY_MEM_CUDA:
      return fail(Errc::unsupported, "this libtributary is built without CUDA: copy to host memory first");
  }
  return fail(Errc::bad_argument, "kind is " + std::to_string(static_cast<int>(kind)) +
                                      "; allowed is TRIBUTARY_MEM_HOST (0) and TRIBUTARY_MEM_CUDA (1)");
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
  return with_comm("tributary_mem_register", comm, [&](const Comm& c) -> Status {
    if (mem == nullptr) return fail(Errc::bad_argument, "mem is NULL");
    *mem = nullptr;
    if (auto ok = check_range(ptr, bytes); !ok) return ok;
    if (auto ok = check_kind(kind); !ok) return ok;
    auto memory = std::make_shared<RegisteredMemory>(c.errors().id(), ptr, bytes);
    memory->kept = c.keep_registered({static_cast<const std::byte*>(ptr), bytes});
    *mem = memories().insert(std::move(memory));
    if (*mem == nullptr) return fail(Errc::exhausted, "too many ranges are registered at once");
    return {};
  });
}

tributary_status tributary_mem_register_dmabuf(tributary_comm* comm, void*, size_t, uint64_t, int,
                                               tributary_mem** mem) {
  return with_comm("tributary_mem_register_dmabuf", comm, [&](const Comm&) -> Status {
    if (mem == nullptr) return fail(Errc::bad_argument, "mem is NULL");
    *mem = nullptr;
    return fail(Errc::unsupported, "no transport of this libtributary takes a dma-buf: copy to host memory first");
  });
}

tributary_status tributary_mem_deregister(tributary_comm* comm, tributary_mem* mem) {
  return with_comm("tributary_mem_deregister", comm, [&](const Comm& c) -> Status {
    const auto memory = memories().find(mem);
    if (!memory || memory->comm_id != c.errors().id()) {
      return fail(Errc::bad_argument,
                  mem == nullptr ? "mem is NULL" : "mem is no live registration of this communicator");
    }
    memories().remove(mem);
    return {};
  });
}
