#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace tributary::torch {

/// Gives the tensors of one operation a dense form in host memory, and copies results back.
///
/// Dense CPU tensors are used in place. Other tensors are copied. An accelerator's tensors go through pinned memory on
/// a side stream:
///
/// - on the caller's thread, the constructor makes a side stream wait for the caller's stream; read() and update() copy
///   device -> pinned on the side stream
/// - on the starter thread, wait_until_read() blocks until these copies have ended; only then the library may read
/// - on the thread that completes the work, deliver() copies pinned -> device on the side stream
///
/// It uses the device through PyTorch's interfaces for all devices, so one build serves hosts with and without a GPU.
/// One thread at a time uses the object: the three threads above use it one after the other.
class Staging {
 public:
  /// Converts host memory to the values to deliver. It runs on the thread that completes the work.
  using Convert = std::function<at::Tensor(const at::Tensor&)>;

  /// `device` is the device of all tensors of the operation.
  explicit Staging(at::Device device);

  /// Returns dense host memory with the contents of `tensor`. Do not write to it: it may be the tensor's own memory.
  at::Tensor read(const at::Tensor& tensor);
  /// Returns dense host memory in the shape of `tensor`; deliver() copies its contents to `tensor`.
  at::Tensor write(const at::Tensor& tensor);
  /// Does the same, but never returns the tensor's own memory, which another part of the operation uses.
  at::Tensor write_apart(const at::Tensor& tensor);
  /// Does the work of read() and write() together, for a tensor that is changed in place.
  at::Tensor update(const at::Tensor& tensor);
  at::Tensor update_apart(const at::Tensor& tensor);
  /// Returns the contents of the tensors, one behind the other. All tensors must have one element type.
  at::Tensor read_packed(const std::vector<at::Tensor>& tensors);
  /// Returns host memory; deliver() copies its parts, which lie one behind the other, to the tensors.
  at::Tensor write_packed(const std::vector<at::Tensor>& tensors);
  /// Makes deliver() copy the parts of `host` to these tensors, too.
  void deliver_packed(const at::Tensor& host, const std::vector<at::Tensor>& tensors);
  /// Makes deliver() copy `from`, which lies in device or host memory, to `to`.
  void copy_later(const at::Tensor& to, const at::Tensor& from, Convert convert = nullptr) {
    deliveries_.push_back({to, from, std::move(convert)});
  }

  /// Returns true if wait_until_read() can block.
  [[nodiscard]] bool waits() const noexcept { return read_done_.has_value(); }
  void wait_until_read();
  /// Copies all results, then calls `then`. During this call the side stream is the current stream.
  void deliver(const std::function<void()>& then);

 private:
  at::Tensor host_memory(at::IntArrayRef sizes, const at::Tensor& like) const;
  void wait_for_caller();
  void copy_in(const at::Tensor& host, const at::Tensor& tensor);

  struct Delivery {
    at::Tensor to, from;
    Convert convert;  // may be empty
  };

  std::optional<c10::Stream> side_stream_;  // only for accelerators
  std::optional<c10::Event> read_done_;     // set by the first copy from an accelerator
  std::vector<Delivery> deliveries_;
};

}  // namespace tributary::torch
