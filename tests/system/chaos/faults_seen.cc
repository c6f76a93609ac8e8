#include "tests/system/chaos/faults_seen.h"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <vector>

#include "tests/system/aggregator/raw_socket.h"
#include "tributary/manager_client/manager_client.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::chaos {
namespace {

bool told(std::string_view fault) {
  const char* const faults = std::getenv("TRIBUTARY_TEST_PACKET_FAULTS");
  const std::string_view text = faults == nullptr ? "" : faults;
  const std::size_t at = text.find(fault);
  return at != std::string_view::npos && text.substr(at + fault.size(), 1) != "0";
}

/// The metrics pages of all aggregators.
std::vector<std::string> metrics_of(const cli::LocalCluster& cluster) {
  std::vector<std::string> pages;
  auto client = manager_client::ManagerClient::create({.url = cluster.manager_url(), .token = {}});
  const auto answer = client ? client->get("/v1/aggregators") : std::unexpected(client.error());
  if (!answer) return pages;
  for (const auto& aggregator : answer->at("aggregators")) {
    const auto http = parse_endpoint(aggregator.at("http").get<std::string>());
    if (http) pages.push_back(aggregator::test::http_get(http->port, "/metrics").body);
  }
  return pages;
}

/// Sums the samples whose names have this ending, over all transports.
double sum_of(const std::vector<std::string>& pages, std::string_view ending) {
  double sum = 0;
  for (const std::string& page : pages) {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      const std::string_view name = std::string_view(line).substr(0, line.find_first_of("{ "));
      if (name.ends_with(ending)) sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
    }
  }
  return sum;
}

}  // namespace

std::string faults_not_seen(const cli::LocalCluster& cluster) {
  if (!told("lost=") && !told("repeated=")) return {};
  const auto pages = metrics_of(cluster);
  const double again = sum_of(pages, "_packets_sent_again_total");
  const double repeats = sum_of(pages, "_packets_repeated_total");
  std::string missing;
  if (told("lost=") && again == 0) missing += "no packet was sent again; ";
  if (told("repeated=") && repeats == 0) missing += "no packet came twice; ";
  return missing;
}

}  // namespace tributary::chaos
