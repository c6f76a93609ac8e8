#include "staging.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <numeric>

namespace tributary::torch {
namespace {

// A conjugated or negated view is dense, but its memory holds other values than the view shows.
bool plain(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

std::int64_t total(const std::vector<at::Tensor>& tensors) {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0},
                         [](std::int64_t sum, const at::Tensor& t) { return sum + t.numel(); });
}

}  // namespace

Staging::Staging(at::Device device) {
  if (device.is_cpu()) return;
  side_stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  wait_for_caller();
}

// Makes the side stream wait for all work that is queued on the caller's stream now. That work writes the inputs and
// may still read the outputs.
void Staging::wait_for_caller() {
  const at::Device device = side_stream_->device();
  c10::Event queued(device.type());
  queued.record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  queued.block(*side_stream_);
}

at::Tensor Staging::host_memory(at::IntArrayRef sizes, const at::Tensor& like) const {
  return at::empty(sizes, at::TensorOptions(at::kCPU).dtype(like.dtype()).pinned_memory(side_stream_.has_value()));
}

void Staging::copy_in(const at::Tensor& host, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  if (tensor.is_cpu()) {
    host.copy_(tensor);
    return;
  }
  wait_for_caller();  // the operation may have computed the tensor after it began
  const c10::StreamGuard guard(*side_stream_);
  host.copy_(tensor, /*non_blocking=*/true);
  tensor.record_stream(*side_stream_);
  if (!read_done_) read_done_.emplace(side_stream_->device_type());
  read_done_->record(*side_stream_);
}

at::Tensor Staging::read(const at::Tensor& tensor) {
  if (tensor.is_cpu()) return tensor.detach().resolve_conj().resolve_neg().contiguous();
  at::Tensor host = host_memory(tensor.sizes(), tensor);
  copy_in(host, tensor);
  return host;
}

at::Tensor Staging::write(const at::Tensor& tensor) {
  return tensor.is_cpu() && plain(tensor) ? tensor : write_apart(tensor);
}

at::Tensor Staging::write_apart(const at::Tensor& tensor) {
  at::Tensor host = host_memory(tensor.sizes(), tensor);
  copy_later(tensor, host);
  return host;
}

at::Tensor Staging::update_apart(const at::Tensor& tensor) {
  at::Tensor host = write_apart(tensor);
  copy_in(host, tensor);
  return host;
}

at::Tensor Staging::update(const at::Tensor& tensor) {
  at::Tensor host = write(tensor);
  if (!host.is_same(tensor)) copy_in(host, tensor);
  return host;
}

at::Tensor Staging::read_packed(const std::vector<at::Tensor>& tensors) {
  at::Tensor host = host_memory({total(tensors)}, tensors.front());
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    copy_in(host.narrow(0, offset, tensor.numel()).view(tensor.sizes()), tensor);
    offset += tensor.numel();
  }
  return host;
}

at::Tensor Staging::write_packed(const std::vector<at::Tensor>& tensors) {
  at::Tensor host = host_memory({total(tensors)}, tensors.front());
  deliver_packed(host, tensors);
  return host;
}

void Staging::deliver_packed(const at::Tensor& host, const std::vector<at::Tensor>& tensors) {
  std::int64_t offset = 0;
  for (const at::Tensor& tensor : tensors) {
    copy_later(tensor, host.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
    offset += tensor.numel();
  }
}

void Staging::wait_until_read() {
  if (read_done_) read_done_->synchronize();
}

// Uses inference mode. Inference tensors may be written only in this mode; other tensors may be written in it, too.
void Staging::deliver(const std::function<void()>& then) {
  const c10::InferenceMode inference;
  const c10::OptionalStreamGuard guard =
      side_stream_ ? c10::OptionalStreamGuard(*side_stream_) : c10::OptionalStreamGuard();
  for (const auto& [to, from, convert] : deliveries_) {
    to.copy_(convert ? convert(from) : from, /*non_blocking=*/true);
    if (!to.is_cpu()) to.record_stream(*side_stream_);
  }
  const c10::InferenceMode none(false);
  then();
}

}  // namespace tributary::torch
