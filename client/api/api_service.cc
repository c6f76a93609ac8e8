// The functions of tributary.h about the service and the transport, which need no communicator.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "client/api/arguments.h"
#include "client/api/guard.h"
#include "client/api/settings.h"
#include "client/api/transports.h"
#include "tributary/manager_client/manager_client.h"

using namespace tributary;          // NOLINT(google-build-using-namespace): this file defines C names for it
using namespace tributary::client;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::chrono::milliseconds kConnectLimit{2000};
constexpr std::chrono::milliseconds kAnswerLimit{2000};  // for all tries together

Status ask_manager(const ClientSettings& settings) {
  if (settings.path == PathMode::fallback) {
    return fail(Errc::unsupported, "the path is set to fallback: no tree may be used");
  }
  if (settings.manager.empty()) return fail(Errc::unsupported, "no manager is configured: set TRIBUTARY_MANAGER");
  auto tls = manager_client::tls_for(settings.manager, settings.tls);
  if (!tls) return std::unexpected(tls.error());
  auto client = manager_client::ManagerClient::create({.url = settings.manager,
                                                       .token = {},
                                                       .connect_limit = kConnectLimit,
                                                       .request_limit = kAnswerLimit,
                                                       .tls = std::move(*tls)});
  if (!client) return std::unexpected(client.error());
  // Send no token: this request needs none. The manager checks this rank's token when the rank asks for a group.
  const auto answer = client->get("/v1/version");
  if (!answer) return std::unexpected(answer.error());
  return {};
}

}  // namespace

tributary_status tributary_service_check(const tributary_config* config) {
  constexpr const char* function = "tributary_service_check";
  return guarded(function, [&]() -> tributary_status {
    const auto settings = load_settings(config);
    Status status = settings ? ask_manager(*settings) : std::unexpected(settings.error());
    if (status) return TRIBUTARY_OK;
    status.error().message = std::string(function) + ": " + status.error().message;
    return report(status.error());
  });
}

tributary_status tributary_op_supported(const tributary_config* config, tributary_dtype dtype, tributary_op op,
                                        int* supported) {
  constexpr const char* function = "tributary_op_supported";
  return guarded(function, [&]() -> tributary_status {
    if (supported == nullptr) return report(Errc::bad_argument, std::string(function) + ": supported is NULL");
    *supported = 0;
    const auto settings = load_settings(config);
    if (!settings) return report(settings.error().code, std::string(function) + ": " + settings.error().message);
    const auto known = call_op(op, settings->numerics);
    if (!known || dtype < 0 || dtype >= kDTypeCount) return TRIBUTARY_OK;
    if (!is_defined(known->op, static_cast<DType>(dtype))) return TRIBUTARY_OK;
    const ReduceOp own = with_numerics(known->op, static_cast<DType>(dtype), known->numerics);
    if (own != kOrderedProduct || settings->path != PathMode::in_network) *supported = 1;
    return TRIBUTARY_OK;
  });
}

tributary_status tributary_transport_name(const tributary_config* config, const char** name) {
  constexpr const char* function = "tributary_transport_name";
  return guarded(function, [&]() -> tributary_status {
    if (name == nullptr) return report(Errc::bad_argument, std::string(function) + ": name is NULL");
    *name = nullptr;
    const auto settings = load_settings(config);
    const auto chosen =
        settings ? choose_transport(settings->transports, settings->dpdk) : std::unexpected(settings.error());
    if (!chosen) return report(chosen.error().code, std::string(function) + ": " + chosen.error().message);
    static constexpr std::array<const char*, 4> names{"tcp", "udp", "verbs", "dpdk"};
    *name = *std::ranges::find_if(names, [&](const char* known) { return *chosen == known; });
    return TRIBUTARY_OK;
  });
}
