#include "service-kit/variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "service-kit/nearest_name.h"

namespace tributary::service {
namespace {

constexpr std::string_view kPrefix = "TRIBUTARY_";

// The known names. tests/unit/client_api compares them with the library's settings, tests/unit/repository with sources.
constexpr auto kKnown = std::to_array<std::string_view>({
    "TRIBUTARY_BEGIN_WITHIN",
    "TRIBUTARY_CHECK_VALUES",
    "TRIBUTARY_CMA",
    "TRIBUTARY_CONFIG",
    "TRIBUTARY_DPDK_ADDRESSES",
    "TRIBUTARY_DPDK_DEVICE",
    "TRIBUTARY_DPDK_GATEWAYS",
    "TRIBUTARY_DPDK_GPU",
    "TRIBUTARY_FLIGHT_RECORD",
    "TRIBUTARY_GPUDIRECT",
    "TRIBUTARY_HANG_AFTER",
    "TRIBUTARY_HOST_ID",
    "TRIBUTARY_IFNAME",
    "TRIBUTARY_IO_THREADS",
    "TRIBUTARY_JOB",
    "TRIBUTARY_LANES",
    "TRIBUTARY_LATE_RANKS",
    "TRIBUTARY_LINK_RATE",
    "TRIBUTARY_LOCAL",
    "TRIBUTARY_LOG",
    "TRIBUTARY_LOG_FORMAT",
    "TRIBUTARY_MANAGER",
    "TRIBUTARY_MPI_MIN_BYTES",
    "TRIBUTARY_MPI_REPORT",
    "TRIBUTARY_NCCL_COLLECTIVES",
    "TRIBUTARY_NCCL_CONNECT_TIMEOUT",
    "TRIBUTARY_NCCL_METRICS",
    "TRIBUTARY_NCCL_NET",
    "TRIBUTARY_NCCL_TUNER",
    "TRIBUTARY_NCCL_TUNER_FILE",
    "TRIBUTARY_NUMERICS",
    "TRIBUTARY_PACKET_SECURITY",
    "TRIBUTARY_PATH",
    "TRIBUTARY_PRIORITY",
    "TRIBUTARY_RAIL",
    "TRIBUTARY_RDMA_ACK_TIMEOUT",
    "TRIBUTARY_RDMA_BUSY_POLL",
    "TRIBUTARY_RDMA_DEVICES",
    "TRIBUTARY_RDMA_MTU",
    "TRIBUTARY_RDMA_ON_DEMAND",
    "TRIBUTARY_RDMA_PARTITION_KEY",
    "TRIBUTARY_RDMA_QUEUE_PAIRS",
    "TRIBUTARY_RDMA_RETRY_COUNT",
    "TRIBUTARY_RDMA_RNR_RETRY_COUNT",
    "TRIBUTARY_RDMA_RNR_TIMER",
    "TRIBUTARY_RDMA_SERVICE_LEVEL",
    "TRIBUTARY_RDMA_TRAFFIC_CLASS",
    "TRIBUTARY_REQUIRE",
    "TRIBUTARY_SECURITY",
    "TRIBUTARY_SHM",
    "TRIBUTARY_STATISTICS",
    "TRIBUTARY_STATUS_DIR",
    "TRIBUTARY_TIMEOUT",
    "TRIBUTARY_TLS_CA",
    "TRIBUTARY_TLS_CERT",
    "TRIBUTARY_TLS_CRL",
    "TRIBUTARY_TLS_KEY",
    "TRIBUTARY_TOKEN_FILE",
    "TRIBUTARY_TRANSPORT",
    "TRIBUTARY_TUNING",
    "TRIBUTARY_UDP_BUSY_POLL",
    "TRIBUTARY_UDP_DATAGRAM_BYTES_MAX",
    "TRIBUTARY_UDP_DELAY_TARGET",
    "TRIBUTARY_UDP_DSCP",
    "TRIBUTARY_UDP_ECN",
});

bool continues(std::string_view longer, std::string_view shorter) {
  return longer.size() > shorter.size() && longer.starts_with(shorter) && longer[shorter.size()] == '_';
}

/// True for names that Kubernetes makes: it gives every container the addresses of services, such as tributary-manager.
bool of_a_kubernetes_service(std::string_view name) {
  return name.contains("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || name.contains("_PORT_") ||
         name.ends_with("_PORT");
}

}  // namespace

std::span<const std::string_view> known_variables() {
  return kKnown;
}

std::optional<std::string_view> meant_by(std::string_view name) {
  if (!name.starts_with(kPrefix) || of_a_kubernetes_service(name)) return std::nullopt;
  if (std::ranges::find(kKnown, name) != kKnown.end()) return std::nullopt;
  const std::string_view own = name.substr(kPrefix.size());
  if (const auto best = nearest_name(name, kKnown, letters_misspelt_max(own.size()))) return best;
  for (const std::string_view known : kKnown) {
    if (continues(name, known) || continues(known, name)) return known;
  }
  return std::nullopt;
}

std::vector<std::string> misspelt_variables(const char* const* environment) {
  std::vector<std::string> sentences;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const std::string_view name = entry.substr(0, entry.find('='));
    if (const auto meant = meant_by(name))
      sentences.push_back(std::string(name) + " is set, but nothing reads it: is " + std::string(*meant) + " meant?");
  }
  return sentences;
}

std::vector<std::string> misspelt_variables() {
  return misspelt_variables(environ);
}

}  // namespace tributary::service
