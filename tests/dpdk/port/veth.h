#pragma once
// A wire of the kernel: a pair of interfaces in two network namespaces, which no other process uses and which end with
// this process. The calling thread lives in the first namespace, where DPDK uses one end; the kernel is the host at the
// other end.
#include <functional>
#include <memory>
#include <string>

namespace tributary::transport::dpdk::test {

class Veth {
 public:
  static constexpr const char* kNear = "dpdk-near";  // interface at DPDK's end
  static constexpr const char* kFar = "dpdk-far";    // interface at the kernel's end: 10.6.0.2/24, fd06::2/64
  /// Makes the wire; nullptr: `why` says what this machine lacks.
  static std::unique_ptr<Veth> make(std::string& why);
  ~Veth();
  Veth(const Veth&) = delete;
  Veth& operator=(const Veth&) = delete;

  /// Runs a function in the far namespace, on another thread, and waits. Sockets that the function makes stay in that
  /// namespace.
  void far(const std::function<void()>& call) const;

 private:
  Veth(int near, int far) : near_(near), far_(far) {}
  const int near_;
  const int far_;
};

}  // namespace tributary::transport::dpdk::test
