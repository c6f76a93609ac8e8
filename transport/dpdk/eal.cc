#include "transport/dpdk/eal.h"

#include <pthread.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "transport/dpdk/driver_log.h"
#include "transport/dpdk/huge_pages.h"

namespace tributary::transport::dpdk {
namespace {

std::mutex start_mutex;
std::weak_ptr<Eal> the_one;     // guarded by start_mutex
bool was_started = false;       // guarded by start_mutex
std::atomic<bool> runs{false};  // false: a thread that ends must not call DPDK

/// Puts the calling thread back on the cores that it had before.
class KeptAffinity {
 public:
  KeptAffinity() { known_ = ::pthread_getaffinity_np(::pthread_self(), sizeof set_, &set_) == 0; }
  ~KeptAffinity() {
    if (known_) ::pthread_setaffinity_np(::pthread_self(), sizeof set_, &set_);
  }
  KeptAffinity(const KeptAffinity&) = delete;
  KeptAffinity& operator=(const KeptAffinity&) = delete;
  [[nodiscard]] std::vector<unsigned> cores() const {
    std::vector<unsigned> cores;
    for (unsigned core = 0; known_ && core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set_)) cores.push_back(core);
    }
    return cores.empty() ? std::vector<unsigned>{0} : cores;
  }

 private:
  cpu_set_t set_{};
  bool known_ = false;
};

/// Says whether to use huge pages. If there are too few, and this is no error, `missing` gets the reason.
Result<bool> choose_pages(const EalSettings& settings, std::string& missing) {
  if (settings.huge_pages == HugePages::never) return false;
  const auto pools = read_huge_pages();
  if (free_bytes(pools) >= settings.memory_bytes) return true;
  missing = missing_pages_text(pools, settings.memory_bytes);
  if (settings.huge_pages == HugePages::require) return fail(Errc::exhausted, missing);
  return false;
}

std::unexpected<Error> start_error(int error) {
  const std::string said = take_driver_log();
  const std::string why = std::string(std::strerror(error)) + (said.empty() ? "" : ": " + said);
  switch (error) {
    case EACCES:
    case EPERM:
      return fail(Errc::denied,
                  "DPDK may not start (" + why +
                      "). It needs root, or CAP_IPC_LOCK and CAP_NET_RAW, and for PCI devices access to /dev/vfio.");
    case EINVAL:
      return fail(Errc::bad_config, "DPDK does not understand its arguments (" + why + ").");
    case ENOMEM:
      return fail(Errc::exhausted, "DPDK gets no memory (" + why + ").");
    default:
      return fail(Errc::io, "DPDK does not start (" + why + ").");
  }
}

Status initialize(const EalSettings& settings, bool huge_pages) {
  const KeptAffinity affinity;
  // DPDK keeps pointers to its arguments until the end of the process.
  static std::vector<std::string> words;
  words = eal_arguments(settings, huge_pages, affinity.cores());
  words.insert(words.begin(), "tributary");
  static std::vector<char*> pointers;
  pointers.clear();
  for (std::string& word : words) pointers.push_back(word.data());
  capture_driver_log();
  if (::rte_eal_init(static_cast<int>(pointers.size()), pointers.data()) < 0) return start_error(rte_errno);
  return {};
}

/// Registers a thread with DPDK, until the thread ends.
class AdoptedThread {
 public:
  AdoptedThread() {
    if (::rte_lcore_id() != LCORE_ID_ANY) return;  // this thread started DPDK
    adopted_ = ::rte_thread_register() == 0;       // a thread that is not registered works, too, but has no caches
  }
  ~AdoptedThread() {
    if (adopted_ && runs.load(std::memory_order_acquire)) ::rte_thread_unregister();
  }
  AdoptedThread(const AdoptedThread&) = delete;
  AdoptedThread& operator=(const AdoptedThread&) = delete;

 private:
  bool adopted_ = false;
};

}  // namespace

Result<std::shared_ptr<Eal>> Eal::start(const EalSettings& settings) {
  const std::lock_guard lock(start_mutex);
  if (auto running = the_one.lock()) return running;
  if (was_started) return fail(Errc::unsupported, "DPDK has ended in this process, and cannot start a second time.");
  std::string missing;
  const auto huge_pages = choose_pages(settings, missing);
  if (!huge_pages) return std::unexpected(huge_pages.error());
  if (auto ok = initialize(settings, *huge_pages); !ok) return std::unexpected(ok.error());
  was_started = true;
  runs.store(true, std::memory_order_release);
  std::shared_ptr<Eal> eal(new Eal(*huge_pages, std::move(missing)));
  the_one = eal;
  return eal;
}

Eal::~Eal() {
  runs.store(false, std::memory_order_release);
  ::rte_eal_cleanup();
}

void Eal::adopt_thread() {
  thread_local const AdoptedThread adopted;
  static_cast<void>(adopted);
}

}  // namespace tributary::transport::dpdk
