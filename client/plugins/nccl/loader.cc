#include "client/plugins/nccl/loader.h"

#include <dlfcn.h>

#include <atomic>
#include <string_view>

namespace tributary::nccl {
namespace {

constexpr const char* kOnlyInRccl = "mscclLoadAlgo";  // a function of RCCL's public header since 5.0

std::atomic<bool>& found() noexcept {
  static std::atomic<bool> rccl{false};
  return rccl;
}

bool is_rccl(const Dl_info& object) {
  const std::string_view path = object.dli_fname;
  if (path.substr(path.rfind('/') + 1).starts_with("librccl")) return true;
  // The library may have another name, or be a part of a larger library.
  void* const handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  const bool has_it = dlsym(handle, kOnlyInRccl) != nullptr;
  dlclose(handle);
  return has_it;
}

}  // namespace

void note_loader(abi::Logger logger) {
  Dl_info object{};
  if (logger == nullptr || dladdr(reinterpret_cast<const void*>(logger), &object) == 0) return;
  if (object.dli_fname != nullptr && is_rccl(object)) found().store(true, std::memory_order_relaxed);
}

bool loaded_by_rccl() noexcept {
  return found().load(std::memory_order_relaxed);
}

}  // namespace tributary::nccl
