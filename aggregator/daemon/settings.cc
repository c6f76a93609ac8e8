#include "aggregator/daemon/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

namespace tributary::aggregator {
namespace {

/// Refuses settings that are valid alone, but not together.
void check_together(const Settings& settings, const service::Written& written, service::Mistakes& mistakes) {
  const std::size_t places = settings.listen.size();
  if (places > 1 && settings.transport != "tcp" && settings.transport != "verbs") {
    const bool dpdk = settings.transport == "dpdk";
    mistakes.add(service::mistake_in(
        written, "listen",
        "it contradicts transport, whose '" + settings.transport + "' has one " +
            (dpdk ? "device, whose addresses dpdk_addresses gives" : "port for each worker"),
        "one address with transport " + settings.transport + (dpdk ? "" : ", such as 0.0.0.0:7471")));
  }
  if (const std::size_t named = settings.advertise.size(); named != 0 && named != places) {
    mistakes.add(service::mistake_in(
        written, "advertise",
        "it contradicts listen, which has " + std::to_string(places) + ", while it names " + std::to_string(named),
        "one host for each address of listen, in the same order"));
  }
}

std::string own_host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::string default_state_file() {
  const char* const directory = std::getenv("STATE_DIRECTORY");  // one path, or several with colons between them
  if (directory == nullptr || *directory == '\0') return {};
  const std::string_view list(directory);
  return std::string(list.substr(0, list.find(':'))) + "/manager-key";
}

}  // namespace

Result<Settings> read_settings(std::string_view yaml, std::string_view file, const std::vector<Override>& overrides) {
  Settings settings;
  service::Mistakes mistakes;
  const auto written =
      service::read_settings(fields(), std::string(yaml), std::string(file), overrides, settings, mistakes);
  if (mistakes.none()) check_together(settings, written, mistakes);
  if (auto ok = mistakes.status(); !ok) return std::unexpected(ok.error());
  return settings;
}

Result<Settings> load_settings(const std::string& path, const std::vector<Override>& overrides) {
  if (path.empty()) return read_settings("", "(no file)", overrides);
  const auto text = service::read_file(path, service::kSettingsFileBytesMax);
  if (!text) return service::refuse(service::unreadable("--config", path, text.error().message));
  return read_settings(*text, path, overrides);
}

Result<std::shared_ptr<service::TlsContext>> status_tls(const Settings& settings) {
  const service::TlsFiles& tls = settings.tls;
  if (tls.cert.empty() && tls.key.empty()) return nullptr;
  return service::TlsContext::open(service::TlsContext::Side::server, tls);
}

void resolve_host_defaults(Settings& settings) {
  if (settings.name.empty()) settings.name = own_host_name();
  if (settings.host_id.empty()) settings.host_id = own_host_name();
  if (settings.state_file.empty()) settings.state_file = default_state_file();
  if (settings.workers != 0) return;
  if (settings.transport == "dpdk") {  // each worker needs its own queue and a core of dpdk_cores
    const auto named = 1 + std::ranges::count(settings.dpdk_cores, ',');
    settings.workers = static_cast<std::uint32_t>(std::clamp<std::ptrdiff_t>(named, 1, 32));
    return;
  }
  settings.workers = std::clamp(std::thread::hardware_concurrency(), 1U, 4U);
}

std::string print_settings(const Settings& settings) {
  return service::print_settings(fields(), settings);
}

}  // namespace tributary::aggregator
