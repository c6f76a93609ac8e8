#include "tests/dpdk/port/veth.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace tributary::transport::dpdk::test {
namespace {

int own_namespace() {
  return ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

std::unique_ptr<Veth> Veth::make(std::string& why) {
  if (::unshare(CLONE_NEWNET) != 0) {
    why = std::string("no network namespace can be made here: ") + std::strerror(errno);
    return nullptr;
  }
  int far = -1;
  std::thread([&far] {
    if (::unshare(CLONE_NEWNET) == 0) far = own_namespace();
  }).join();
  std::unique_ptr<Veth> veth(new Veth(own_namespace(), far));
  const std::string near_name = kNear;
  const std::string far_name = kFar;
  const std::string to = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(far);
  bool made = far >= 0 && run("ip link add " + near_name + " type veth peer name " + far_name) &&
              run("ip link set " + far_name + " netns " + to) && run("ip link set " + near_name + " up");
  if (made) {
    veth->far([&] {
      made = run("ip link set lo up") && run("ip addr add 10.6.0.2/24 dev " + far_name) &&
             run("ip addr add fd06::2/64 dev " + far_name + " nodad") && run("ip link set " + far_name + " up");
    });
  }
  // Otherwise the kernel would leave checksums to this wire, which computes none.
  if (made && !run("ethtool -K " + near_name + " tx off rx off")) {
    why = "ethtool is missing or may not change an interface";
    return nullptr;
  }
  if (made) veth->far([&] { made = run("ethtool -K " + far_name + " tx off"); });
  if (made) return veth;
  why = "a pair of interfaces cannot be made; this needs iproute2 and root";
  return nullptr;
}

Veth::~Veth() {
  ::close(near_);
  ::close(far_);
}

void Veth::far(const std::function<void()>& call) const {
  std::thread([&] {
    if (::setns(far_, CLONE_NEWNET) == 0) call();
  }).join();
}

}  // namespace tributary::transport::dpdk::test
