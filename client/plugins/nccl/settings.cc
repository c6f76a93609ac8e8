#include "client/plugins/nccl/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>

#include "client/plugins/nccl/log.h"
#include "service-kit/one_setting.h"
#include "service-kit/units.h"

namespace tributary::nccl {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    const auto begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

/// The value of one of libtributary's settings: of the variable, else of the key in libtributary's file.
std::string of_library(const char* name, std::string_view key) {
  return service::one_setting(name, "TRIBUTARY_CONFIG", key);
}

/// A wrong value counts as the most security: libtributary refuses it with its own error.
PacketSecurity security() {
  std::string text = variable("TRIBUTARY_SECURITY");
  if (text.empty()) text = variable("TRIBUTARY_PACKET_SECURITY");  // as in libtributary, each variable before the file
  if (text.empty()) text = of_library("TRIBUTARY_SECURITY", "security");
  if (text.empty()) text = of_library("TRIBUTARY_PACKET_SECURITY", "packet_security");
  return text.empty() ? PacketSecurity::off : parse_packet_security(text).value_or(PacketSecurity::encrypt);
}

/// Returns the time that a text holds in seconds, or `otherwise` if it holds none.
std::chrono::milliseconds seconds_in(const std::string& text, std::chrono::milliseconds otherwise) {
  const double seconds = std::strtod(text.c_str(), nullptr);
  if (!(seconds >= 0.001)) return otherwise;
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, 86400.0) * 1000));
}

}  // namespace

PluginSettings read_settings() {
  PluginSettings settings;
  settings.interfaces = split(of_library("TRIBUTARY_IFNAME", "ifname"));
  settings.nccl_interfaces = InterfaceFilter(variable("NCCL_SOCKET_IFNAME"));
  // Ignore a wrong value here: libtributary refuses it with its own error when it makes a group.
  settings.timeout = seconds_in(of_library("TRIBUTARY_TIMEOUT", "timeout"), settings.timeout);
  settings.connect_limit =
      std::min(seconds_in(variable("TRIBUTARY_NCCL_CONNECT_TIMEOUT"), settings.connect_limit), settings.timeout);
  settings.metrics_file = variable("TRIBUTARY_NCCL_METRICS");
  if (const auto at = settings.metrics_file.find("%p"); at != std::string::npos) {
    settings.metrics_file.replace(at, 2, std::to_string(::getpid()));
  }
  const std::string tuner = variable("TRIBUTARY_NCCL_TUNER");
  settings.tuner = tuner != "0" && tuner != "off" && tuner != "no";
  settings.tuner_file = variable("TRIBUTARY_NCCL_TUNER_FILE");
  // Ignore a wrong value here, too.
  settings.link_rate = service::parse_rate(of_library("TRIBUTARY_LINK_RATE", "link_rate")).value_or(0);
  settings.security = security();
  return settings;
}

CollectiveChoice collective_choice() {
  CollectiveChoice choice;
  const std::vector<std::string> words = split(variable("TRIBUTARY_NCCL_COLLECTIVES"));
  if (words.empty()) return choice;
  choice.all_gather = choice.reduce_scatter = false;
  for (const std::string& word : words) {
    if (word == "allgather") {
      choice.all_gather = true;
    } else if (word == "reducescatter") {
      choice.reduce_scatter = true;
    } else if (word != "allreduce") {
      choice.unknown = word;
    }
  }
  return choice;
}

const PluginSettings& settings() {
  static const PluginSettings one = read_settings();
  return one;
}

}  // namespace tributary::nccl
