#pragma once
// A wire of the kernel: a pair of interfaces in two network namespaces that nobody else sees and that go with this
// process. The calling thread lives in the first one, where DPDK takes its end; the kernel is the host at the other.
#include <functional>
#include <memory>
#include <string>

namespace tributary::transport::dpdk::test {

class Veth {
 public:
  static constexpr const char* kNear = "dpdk-near";  // for DPDK
  static constexpr const char* kFar = "dpdk-far";    // the kernel's: 10.6.0.2/24, fd06::2/64
  /// nullptr: `why` says what is missing here.
  static std::unique_ptr<Veth> make(std::string& why);
  ~Veth();
  Veth(const Veth&) = delete;
  Veth& operator=(const Veth&) = delete;

  /// Runs it in the far namespace, on another thread, and waits. Sockets that it makes stay there.
  void far(const std::function<void()>& call) const;

 private:
  Veth(int near, int far) : near_(near), far_(far) {}
  const int near_;
  const int far_;
};

}  // namespace tributary::transport::dpdk::test
