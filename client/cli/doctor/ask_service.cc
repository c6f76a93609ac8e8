// Asks the manager for facts, and connects to each aggregator.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/cli/doctor/service.h"
#include "client/cli/meter/reach.h"

namespace tributary::cli::doctor {
namespace {

using std::chrono::milliseconds;
using Aggregator = ServiceReport::Aggregator;

constexpr double kConnectSecondsMax = 2;

double seconds_since_epoch() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Connects to one address. Keeps the least MTU of all addresses in `a`.
void visit(const Endpoint& at, milliseconds limit, Aggregator& a) {
  const auto socket = meter::connect_to(at, limit);
  if (!socket) {
    if (a.trouble.empty()) a.trouble = socket.error().message;
    return;
  }
  const meter::PathFacts path = meter::path_facts(*socket);
  const bool first = a.mtu_here == 0;
  a.mtu_here = first ? path.mtu_here : std::min(a.mtu_here, path.mtu_here);
  a.mtu_there = first ? path.mtu_there : std::min(a.mtu_there, path.mtu_there);
}

void visit_text(const std::string& text, bool live, milliseconds limit, Aggregator& a) {
  const auto at = parse_endpoint(text);
  if (!at) {
    if (a.trouble.empty()) a.trouble = text + ": " + at.error().message;
    return;
  }
  if (live) {
    a.at.push_back(*at);
    if (a.untried.empty()) visit(*at, limit, a);
  } else if (a.trouble.empty()) {
    a.trouble = text + ": the aggregator says that its device there is down";
  }
}

/// Returns the transport of this host's ranks; empty: TCP. Only then an aggregator takes connections over TCP.
std::string other_transport() {
  const char* const wanted = std::getenv("TRIBUTARY_TRANSPORT");
  const std::string first = wanted == nullptr ? "" : std::string(wanted).substr(0, std::string(wanted).find(','));
  return first == "tcp" ? "" : first;
}

Aggregator ask_aggregator(const nlohmann::json& from, milliseconds limit) {
  Aggregator a{.name = from.at("name").get<std::string>(),
               .state = from.at("state").get<std::string>(),
               .data = from.at("data").get<std::string>(),
               .line_rate = from.value("line_rate_bits_per_second", std::uint64_t{0})};
  if (const auto http = parse_endpoint(from.value("http", ""))) a.http = *http;
  a.untried = other_transport();
  if (a.state == "expired") return a;
  const auto addresses = from.value("addresses", nlohmann::json::array());
  if (addresses.empty()) {  // a manager of an older version
    visit_text(a.data, true, limit, a);
    return a;
  }
  a.data.clear();
  for (const auto& one : addresses) {
    const std::string at = one.at("at").get<std::string>();
    a.data += (a.data.empty() ? "" : ", ") + at;
    visit_text(at, one.at("live").get<bool>(), limit, a);
  }
  return a;
}

/// Returns the difference of the clocks. The manager has read its clock when this host's clock was between `before` and
/// `after`.
std::optional<ClockSkew> skew_of(const nlohmann::json& version, double before, double after) {
  const auto time = version.find("time_ms");
  if (time == version.end()) return std::nullopt;
  const double middle = (before + after) / 2;
  return ClockSkew{.seconds = static_cast<double>(time->get<std::int64_t>()) / 1000 - middle,
                   .within = (after - before) / 2 + 0.001};
}

}  // namespace

ServiceReport ask_service(const ManagerOptions& options) {
  ServiceReport report{.url = manager_url(options)};
  if (report.url.empty()) return report;
  auto client = connect(options);
  if (!client) return report.trouble = client.error().message, report;
  const double before = seconds_since_epoch();
  const auto version = client->get("/v1/version");
  const double after = seconds_since_epoch();
  if (!version) return report.trouble = version.error().message, report;
  const auto aggregators = client->get("/v1/aggregators");
  if (!aggregators) return report.trouble = aggregators.error().message, report;
  const auto limit = milliseconds(static_cast<int>(std::min(options.seconds_max, kConnectSecondsMax) * 1000));
  try {
    report.version = version->at("version").get<std::string>();
    report.clock = skew_of(*version, before, after);
    for (const auto& one : aggregators->at("aggregators")) report.aggregators.push_back(ask_aggregator(one, limit));
  } catch (const nlohmann::json::exception& error) {
    report.trouble = report.url + ": its answer is not what this version of tributary expects (" + error.what() + ")";
  }
  return report;
}

}  // namespace tributary::cli::doctor
