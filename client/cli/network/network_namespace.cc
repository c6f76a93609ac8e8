#include "client/cli/network/network_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

namespace tributary::cli {
namespace {

constexpr const char* kOwnNamespace = "/proc/thread-self/ns/net";

Error refusal(int number) {
  if (number != EPERM) return {Errc::io, std::string("a host could not be made: ") + std::strerror(number)};
  return {Errc::denied,
          "hosts of their own need root with CAP_SYS_ADMIN and CAP_NET_ADMIN, to make network namespaces. Run it with "
          "sudo, or a container with --privileged; or use --ranks in place of --hosts, which needs no rights and "
          "has no links"};
}

Result<int> make_here() {
  if (unshare(CLONE_NEWNET) != 0) return std::unexpected(refusal(errno));
  const int descriptor = open(kOwnNamespace, O_RDONLY | O_CLOEXEC);
  if (descriptor >= 0) return descriptor;
  return fail(Errc::io, std::string(kOwnNamespace) + " could not be opened: " + std::strerror(errno));
}

}  // namespace

Result<NetworkNamespace> NetworkNamespace::make() {
  Result<int> made = -1;
  std::thread([&made] { made = make_here(); }).join();
  if (!made) return std::unexpected(made.error());
  return NetworkNamespace(*made);
}

NetworkNamespace::NetworkNamespace(NetworkNamespace&& from) noexcept
    : descriptor_(std::exchange(from.descriptor_, -1)) {}

NetworkNamespace::~NetworkNamespace() {
  if (descriptor_ >= 0) close(descriptor_);
}

Status NetworkNamespace::inside(const std::function<Status()>& work) const {
  Status done;
  std::thread([this, &work, &done] {
    done = enter();
    if (done) done = work();
  }).join();
  return done;
}

Status NetworkNamespace::enter() const {
  if (setns(descriptor_, CLONE_NEWNET) == 0) return {};
  return fail(Errc::io, std::string("a host could not be entered: ") + std::strerror(errno));
}

}  // namespace tributary::cli
