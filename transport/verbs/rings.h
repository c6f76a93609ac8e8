#pragma once
// The registered buffers of one connection's messages, for receiving and for sending. They are one allocation with one
// registration, whose key no peer has.
#include <cstdlib>
#include <memory>
#include <span>

#include "transport/verbs/device.h"
#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {

class Rings {
 public:
  Rings() = default;
  [[nodiscard]] static Result<Rings> make(Domain& domain, std::uint32_t receives, std::uint32_t receive_bytes,
                                          std::uint32_t sends, std::uint32_t send_bytes);

  [[nodiscard]] std::span<std::byte> receive(std::uint32_t index) const noexcept {
    TRIBUTARY_ASSERT(index < receives_, "receive {} of {}", index, receives_);
    return {memory_.get() + std::size_t{index} * receive_bytes_, receive_bytes_};
  }
  [[nodiscard]] std::span<std::byte> send(std::uint32_t index) const noexcept {
    return {memory_.get() + std::size_t{receives_} * receive_bytes_ + std::size_t{index} * send_bytes_, send_bytes_};
  }
  [[nodiscard]] std::uint32_t local_key() const noexcept { return registration_->local_key(); }
  void release() noexcept {
    registration_.reset();
    memory_.reset();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  RegistrationPtr registration_;
  std::uint32_t receives_ = 0;
  std::uint32_t receive_bytes_ = 0;
  std::uint32_t send_bytes_ = 0;
};

}  // namespace tributary::transport::verbs
