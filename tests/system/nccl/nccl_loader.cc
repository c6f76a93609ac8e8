// Lets a real NCCL load its plugins on a machine without a GPU:
//   nccl_loader PATH/libnccl.so.2
//
// Without a GPU, ncclCommInitRank() ends before it comes to the plugins. The steps that load them need no GPU: the
// library does not export them, but its symbol table has them. This program calls them in the same order as NCCL's own
// ncclCommInitRank(), with an empty communicator; NCCL's log (NCCL_DEBUG=INFO) shows their results. Exit status: 0 if
// NCCL accepted the plugin; 77 if the library does not exist, or its symbol table was stripped.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/system/nccl/elf_symbols.h"

namespace {

constexpr int kExitSkipped = 77;
constexpr std::size_t kCommBytes = std::size_t{64} << 20;  // more than the size of any version's communicator

using OfComm = int (*)(void* comm);
using OfNobody = int (*)();

/// The names as the C++ compiler mangles them.
constexpr const char* kNetInit = "_Z11ncclNetInitP8ncclComm";
constexpr const char* kNetPluginInit = "_Z17ncclNetPluginInitv";                    // up to 2.18, for the whole process
constexpr const char* kNetPluginLoad = "_Z17ncclNetPluginLoadP8ncclComm";           // 2.19 to 2.26
constexpr const char* kTunerLoad = "_Z19ncclTunerPluginLoadP8ncclComm";             // from 2.22 on
constexpr const char* kTunerLoadOld = "_Z19ncclTunerPluginLoadPP14ncclTuner_v2_t";  // 2.21

class Nccl {
 public:
  explicit Nccl(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ != nullptr) version_ = dlsym(handle_, "ncclGetVersion");
    Dl_info where{};
    if (version_ != nullptr && dladdr(version_, &where) != 0) path_ = where.dli_fname;
  }
  [[nodiscard]] bool loaded() const { return version_ != nullptr; }
  [[nodiscard]] int version() const {
    int number = 0;
    reinterpret_cast<int (*)(int*)>(version_)(&number);
    return number;
  }
  template <class Function>
  [[nodiscard]] Function find(const char* name) const {
    return reinterpret_cast<Function>(tributary::nccl_test::find_hidden(path_, version_, "ncclGetVersion", name));
  }

 private:
  std::string path_;
  void* const handle_;  // never closed: NCCL has threads of its own
  void* version_ = nullptr;
};

/// Returns 0 if NCCL reported no error.
int load_plugins(const Nccl& nccl, OfComm net_init, void* comm) {
  if (const auto once = nccl.find<OfNobody>(kNetPluginInit); once != nullptr) {
    if (const int result = once(); result != 0) return result;
  }
  if (const auto load = nccl.find<OfComm>(kNetPluginLoad); load != nullptr) {
    if (const int result = load(comm); result != 0) return result;
  }
  if (const int result = net_init(comm); result != 0) return result;
  if (const auto tuner = nccl.find<OfComm>(kTunerLoad); tuner != nullptr) return tuner(comm);
  const auto old = nccl.find<OfComm>(kTunerLoadOld);
  return old != nullptr ? old(comm) : 0;  // NCCL writes the table's address to its argument; any place serves
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: nccl_loader PATH/libnccl.so.2\n");
    return 64;
  }
  const Nccl nccl(argv[1]);
  if (!nccl.loaded()) {
    std::fprintf(stderr, "%s: %s\n", argv[1], dlerror());
    return kExitSkipped;
  }
  std::printf("NCCL %d.%d.%d\n", nccl.version() / 10000, nccl.version() / 100 % 100, nccl.version() % 100);
  const auto net_init = nccl.find<OfComm>(kNetInit);
  if (net_init == nullptr) {
    std::fprintf(stderr, "%s: the symbol table has no %s\n", argv[1], kNetInit);
    return kExitSkipped;
  }
  void* const comm = mmap(nullptr, kCommBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const int result = load_plugins(nccl, net_init, comm);
  std::printf("NCCL's plugin loader returned %d\n", result);
  std::fflush(nullptr);
  std::_Exit(result == 0 ? 0 : 1);  // NCCL's code at the exit would look for a GPU
}
