#include "client/plugins/nccl/wrapped_devices.h"

#include <algorithm>
#include <atomic>

namespace tributary::nccl {
namespace {

std::atomic<const WrappedCalls*>& noted() noexcept {
  static std::atomic<const WrappedCalls*> calls{nullptr};
  return calls;
}

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

/// Returns the memory that CollNet takes on a device. NCCL asks CollNet first, and applies its answer to the device's
/// messages, too: without GPU memory here, they would lose GPUDirect. The library copies GPU memory itself, and needs
/// no dma-buf.
int pointers_of(int wrapped) {
  const bool gpu = (wrapped & (abi::kPointerCuda | abi::kPointerDmaBuf)) != 0;
  return abi::kPointerHost | (gpu ? abi::kPointerCuda : 0);
}

/// Returns the interface on the same PCI device, or an empty text: the library then chooses the interface.
std::string interface_at(const std::string& pci_path) {
  const auto own = std::ranges::find(devices(), pci_path, &NetDevice::pci_path);
  return pci_path.empty() || own == devices().end() ? std::string() : own->interface;
}

NetDevice read_device(const abi::PropertiesV12& properties) {
  NetDevice device;
  device.name = text_of(properties.name);
  device.pci_path = text_of(properties.pci_path);
  device.interface = interface_at(device.pci_path);
  device.guid = properties.guid;
  device.speed_mbps = properties.speed_mbps;
  device.port = properties.port;
  device.latency_us = properties.latency_us;
  device.pointer_support = pointers_of(properties.pointer_support);
  return device;
}

std::vector<NetDevice> read_devices(const WrappedCalls& calls) {
  int count = 0;
  if (calls.devices(&count) != abi::Result::success) return {};
  std::vector<NetDevice> list;
  for (int device = 0; device < count; ++device) {
    abi::PropertiesV12 properties{};
    if (calls.properties(device, &properties) != abi::Result::success) break;
    list.push_back(read_device(properties));
  }
  return list;
}

}  // namespace

void note_wrapped(const WrappedCalls& calls) {
  if (noted().load(std::memory_order_acquire) != nullptr) return;
  static const WrappedCalls first = calls;
  noted().store(&first, std::memory_order_release);
}

const std::vector<NetDevice>* wrapped_devices() {
  const WrappedCalls* const calls = noted().load(std::memory_order_acquire);
  if (calls == nullptr) return nullptr;
  static const std::vector<NetDevice> list = read_devices(*calls);
  return &list;
}

}  // namespace tributary::nccl
