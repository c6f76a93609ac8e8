#include "tests/rdma/gpu/device_registration.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <mutex>

#include "tests/fakes/cuda/fake_cuda.h"

#undef ibv_reg_mr

namespace tributary::test {

DeviceRegistration& device_registration() {
  static DeviceRegistration all;
  return all;
}

namespace {

// Registers one range at a time, because during the call the processor can also access the memory.
std::mutex one_at_a_time;

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

ibv_mr* register_next(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
  static const auto call = next<decltype(&ibv_reg_mr_iova2)>("ibv_reg_mr_iova2");
  return call(domain, address, bytes, iova, access);
}

/// Returns nullptr with errno 0 if the range is not device memory.
ibv_mr* register_device_memory(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
  const std::lock_guard lock(one_at_a_time);
  const fake_cuda::Opened opened(reinterpret_cast<std::uint64_t>(address), bytes);
  errno = 0;
  return opened ? register_next(domain, address, bytes, iova, access) : nullptr;
}

ibv_mr* register_any(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
  DeviceRegistration& all = device_registration();
  if (all.peer_memory) {
    ibv_mr* const region = register_device_memory(domain, address, bytes, iova, access);
    if (region != nullptr) ++all.by_peer_memory;
    if (region != nullptr || errno != 0) return region;
  }
  return register_next(domain, address, bytes, iova, access);
}

}  // namespace
}  // namespace tributary::test

using namespace tributary::test;  // NOLINT(google-build-using-namespace): the C names' side of it

// The libraries must see these functions; otherwise the project hides its symbols.
#pragma GCC visibility push(default)
extern "C" {

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t bytes, int access) {
  return register_any(domain, address, bytes, reinterpret_cast<std::uint64_t>(address), static_cast<unsigned>(access));
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t iova, unsigned access) {
  return register_any(domain, address, bytes, iova, access);
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t bytes, std::uint64_t iova, int descriptor,
                          int access) {
  DeviceRegistration& all = device_registration();
  ibv_mr* region = nullptr;
  if (all.dma_bufs) {
    struct stat what{};
    if (fstat(descriptor, &what) != 0) return nullptr;
    region = register_device_memory(domain, reinterpret_cast<void*>(iova), bytes, iova, static_cast<unsigned>(access));
    // Sets no address, like the library, which knows none.
    if (region != nullptr) region->addr = reinterpret_cast<void*>(offset);
  } else {
    static const auto call = next<decltype(&ibv_reg_dmabuf_mr)>("ibv_reg_dmabuf_mr");
    region = call(domain, offset, bytes, iova, descriptor, access);
  }
  const int error = errno;
  if (region != nullptr) ++all.by_dma_buf;
  if (region == nullptr) {
    ++all.dma_bufs_refused;
    all.refusal = error;
  }
  errno = error;
  return region;
}

}  // extern "C"
#pragma GCC visibility pop
