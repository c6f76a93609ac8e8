#include "transport/verbs/device_registration.h"

#include <cerrno>
#include <cstring>

namespace tributary::transport::verbs {
namespace {

Result<MemoryRegionPtr> refused(const char* call) {
  const int error = errno;
  return fail(Errc::unsupported, std::string(call) + " says: " + std::strerror(error));
}

Result<MemoryRegionPtr> register_dma_buf(ibv_pd& domain, std::span<const std::byte> memory, unsigned rights,
                                         DeviceMemory& owner) {
  const auto buffer = owner.dma_buf(memory);
  if (!buffer) return std::unexpected(buffer.error());
  const FileDescriptor descriptor(buffer->descriptor);  // closed here, because the registration keeps the memory
  // Registers the memory by the driver's addresses, because work requests name these.
  MemoryRegionPtr region(ibv_reg_dmabuf_mr(&domain, buffer->offset, memory.size(),
                                           reinterpret_cast<std::uintptr_t>(memory.data()), descriptor.get(),
                                           static_cast<int>(rights)));
  if (!region) return refused("ibv_reg_dmabuf_mr");
  return region;
}

Result<MemoryRegionPtr> register_by_peer_memory(ibv_pd& domain, std::span<const std::byte> memory, unsigned rights) {
  MemoryRegionPtr region(ibv_reg_mr(&domain, const_cast<std::byte*>(memory.data()), memory.size(), rights));
  if (!region) return refused("ibv_reg_mr");
  return region;
}

}  // namespace

Result<MemoryRegionPtr> register_device_memory(ibv_pd& domain, std::span<const std::byte> memory, unsigned rights,
                                               DeviceMemory& owner) {
  const std::string device = ibv_get_device_name(domain.context->device);
  std::string others;
  for (const DeviceWay way : owner.ways()) {
    auto region = way == DeviceWay::dma_buf ? register_dma_buf(domain, memory, rights, owner)
                                            : register_by_peer_memory(domain, memory, rights);
    if (region) {
      owner.reached(device, way, others);
      return region;
    }
    others += (others.empty() ? "not " : "; not ") + std::string(to_string(way)) + ": " + region.error().message;
  }
  owner.reached(device, std::nullopt, others);
  return fail(Errc::unsupported,
              "RDMA device " + device + " does not reach it" + (others.empty() ? "" : ": ") + others);
}

}  // namespace tributary::transport::verbs
