// This host's RDMA devices and their addresses.
#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/verbs/resources.h"
#include "transport/verbs/verbs_connection.h"
#include "tributary/transport/verbs.h"

namespace tributary::transport {
namespace {

using ContextPtr = std::unique_ptr<ibv_context, verbs::Destroy<ibv_close_device>>;

struct DeviceList {
  DeviceList() : devices(ibv_get_device_list(&count)) {}
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  int count = 0;
  ibv_device** devices;
};

/// Returns the address in a GID, where IPv4 has the form ::ffff:a.b.c.d. It is empty for a link-local address, which
/// needs an interface.
std::string address_in(const ibv_gid& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr six{};
  std::copy_n(gid.raw, sizeof gid.raw, six.s6_addr);
  if (IN6_IS_ADDR_LINKLOCAL(&six) || IN6_IS_ADDR_UNSPECIFIED(&six)) return {};
  const bool four = IN6_IS_ADDR_V4MAPPED(&six);
  const void* const bytes = four ? static_cast<const void*>(&six.s6_addr[12]) : static_cast<const void*>(&six);
  return ::inet_ntop(four ? AF_INET : AF_INET6, bytes, text.data(), text.size()) != nullptr ? text.data() : "";
}

void add_rails(ibv_context* context, std::uint8_t port, std::vector<Rail>& out) {
  ibv_port_attr attributes{};
  if (ibv_query_port(context, port, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE ||
      attributes.link_layer != IBV_LINK_LAYER_ETHERNET) {
    return;
  }
  for (int index = 0; index < attributes.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, port, static_cast<std::uint32_t>(index), &entry, 0) != 0) continue;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    std::string address = address_in(entry.gid);
    if (address.empty() || std::ranges::find(out, address, &Rail::address) != out.end()) continue;
    out.push_back({.device = ibv_get_device_name(context->device), .port = port, .address = std::move(address)});
  }
}

}  // namespace

Status verbs_available() {
  if (DeviceList().count > 0) return {};
  return fail(Errc::unsupported, "this host has no RDMA device that libibverbs knows (see `rdma link`, ibv_devices).");
}

std::vector<Rail> verbs_rails() {
  std::vector<Rail> rails;
  const DeviceList list;
  for (int i = 0; i < list.count; ++i) {
    const ContextPtr context(ibv_open_device(list.devices[i]));
    ibv_device_attr attributes{};
    if (!context || ibv_query_device(context.get(), &attributes) != 0) continue;
    for (int port = 1; port <= attributes.phys_port_cnt; ++port) {
      add_rails(context.get(), static_cast<std::uint8_t>(port), rails);
    }
  }
  return rails;
}

/// Asks the connection manager by binding an id to the address. Only the manager's refusals count as refusals of the
/// address; other errors, such as a lack of descriptors, are not about the address.
Status verbs_address_lives(const std::string& host) {
  const auto away = [&](const std::string& why) -> Status { return fail(Errc::unreachable, why); };
  const auto numeric = verbs::addresses_of({host, 0}, true);
  if (!numeric) return {};
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, RDMA_PS_TCP) != 0) return {};
  const verbs::ConnectionIdPtr id(made);
  verbs::NetworkAddress address = numeric->front();
  if (rdma_bind_addr(id.get(), address.get()) != 0) {
    if (errno == ENODEV) return away("no RDMA device is behind " + host);
    return errno == EADDRNOTAVAIL ? away("no interface has the address " + host) : Status{};
  }
  if (id->verbs == nullptr) return {};
  const std::string port = "port " + std::to_string(id->port_num) + " of " + ibv_get_device_name(id->verbs->device);
  ibv_port_attr attributes{};
  if (ibv_query_port(id->verbs, id->port_num, &attributes) != 0) return away(port + " does not answer");
  if (attributes.state == IBV_PORT_ACTIVE) return {};
  return away(port + " is in state " + ibv_port_state_str(attributes.state));
}

}  // namespace tributary::transport
