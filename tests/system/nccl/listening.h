#pragma once
// The listening end of a connection through NCCL's net table, in the process of the test.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>

#include "client/plugins/nccl/p2p/handle.h"
#include "client/plugins/nccl/p2p/net.h"

namespace tributary::nccl {

using Clock = std::chrono::steady_clock;
using HandleBytes = std::array<std::byte, abi::kHandleBytes>;

inline constexpr std::chrono::seconds kLimit{60};  // much longer than any step takes

/// Repeats a step until it returns true. Fails the test if the step does not do this within the limit.
template <class Step>
void until(const char* what, Step step) {
  const auto end = Clock::now() + kLimit;
  while (!step()) {
    ASSERT_LT(Clock::now(), end) << what << " never ends";
    std::this_thread::yield();
  }
}

inline HandleBytes bytes_of(const NetHandle& handle) {
  HandleBytes bytes{};
  handle.write(bytes.data());
  return bytes;
}

class Listening {
 public:
  Listening() { EXPECT_EQ(net::listen(nullptr, 0, bytes_.data(), &comm_), abi::Result::success); }
  ~Listening() { EXPECT_EQ(net::close_listen(comm_), abi::Result::success); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  [[nodiscard]] NetHandle handle() const { return NetHandle::read(bytes_.data()).value(); }
  /// Returns an unchanged copy of the handle: each connecting side needs its own copy.
  [[nodiscard]] HandleBytes bytes() const { return bytes_; }
  [[nodiscard]] void* accept_now() {
    void* receiving = nullptr;
    EXPECT_EQ(net::accept(comm_, &receiving), abi::Result::success);
    return receiving;
  }
  [[nodiscard]] void* accept() {
    void* receiving = nullptr;
    until("accept", [&] { return (receiving = accept_now()) != nullptr; });
    return receiving;
  }

 private:
  HandleBytes bytes_{};
  void* comm_ = nullptr;
};

}  // namespace tributary::nccl
