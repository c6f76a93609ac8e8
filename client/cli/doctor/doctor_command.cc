#include "client/cli/doctor/doctor_command.h"

#include <netdb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "client/cli/doctor/checks.h"
#include "client/cli/terminal/exit_code.h"

namespace tributary::cli {
namespace {

using namespace doctor;  // NOLINT(google-build-using-namespace): this file is its command

std::optional<std::uint64_t> locked_bytes_max() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

/// True if the address takes a connection within the limit.
bool connects(const addrinfo& to, int milliseconds, std::string& why) {
  const int fd = socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return why = std::strerror(errno), false;
  int error = ::connect(fd, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd waited{.fd = fd, .events = POLLOUT, .revents = 0};
    socklen_t length = sizeof error;
    if (poll(&waited, 1, milliseconds) != 1) {
      error = ETIMEDOUT;
    } else {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
  }
  close(fd);
  if (error != 0) why = std::strerror(error);
  return error == 0;
}

/// Returns an empty text, or why nothing answers at "host:port".
std::string trouble_with(const std::string& address, double seconds_max) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return address + ": " + endpoint.error().message;
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(endpoint->host.c_str(), std::to_string(endpoint->port).c_str(), &wanted, &found);
  if (code != 0) return address + ": " + gai_strerror(code);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, &freeaddrinfo);
  std::string why = "no address";
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (connects(*at, static_cast<int>(seconds_max * 1000), why)) return {};
  }
  return address + ": " + why;
}

/// Checks the addresses, and reports the first that does not answer or whose device is down; a.data names all of them.
std::string trouble_with_any(const nlohmann::json& from, ServiceReport::Aggregator& a, double seconds_max) {
  const auto addresses = from.value("addresses", nlohmann::json::array());
  if (addresses.empty()) return trouble_with(a.data, seconds_max);  // a manager of an older version
  a.data.clear();
  std::string trouble;
  for (const auto& one : addresses) {
    const std::string at = one.at("at").get<std::string>();
    a.data += (a.data.empty() ? "" : ", ") + at;
    if (!trouble.empty()) continue;
    trouble = one.at("live").get<bool>() ? trouble_with(at, seconds_max)
                                         : at + ": the aggregator says that its device there is down";
  }
  return trouble;
}

ServiceReport ask_service(const ManagerOptions& options) {
  ServiceReport report{.url = manager_url(options)};
  if (report.url.empty()) return report;
  auto client = connect(options);
  if (!client) return report.trouble = client.error().message, report;
  const auto version = client->get("/v1/version");
  if (!version) return report.trouble = version.error().message, report;
  const auto aggregators = client->get("/v1/aggregators");
  if (!aggregators) return report.trouble = aggregators.error().message, report;
  try {
    report.version = version->at("version").get<std::string>();
    for (const auto& one : aggregators->at("aggregators")) {
      ServiceReport::Aggregator a{.name = one.at("name").get<std::string>(),
                                  .state = one.at("state").get<std::string>(),
                                  .data = one.at("data").get<std::string>(),
                                  .trouble = {}};
      if (a.state != "expired") a.trouble = trouble_with_any(one, a, std::min(options.seconds_max, 2.0));
      report.aggregators.push_back(std::move(a));
    }
  } catch (const nlohmann::json::exception& error) {
    report.trouble = report.url + ": its answer is not what this version of tributary expects (" + error.what() + ")";
  }
  return report;
}

}  // namespace

int examine_host(const ManagerOptions& options) {
  const SystemTree system;
  const char* const transports = std::getenv("TRIBUTARY_TRANSPORT");
  Findings findings;
  const auto add = [&](Findings more) {
    for (Finding& finding : more) findings.push_back(std::move(finding));
  };
  add(check_network(system));
  add(check_rdma(system, transports == nullptr ? "" : transports));
  add(check_memory(system, locked_bytes_max()));
  add(check_gpus(system, ask_cuda()));
  add(check_service(ask_service(options)));
  std::fputs((is_document(options.form) ? to_json(findings) : to_text(findings)).c_str(), stdout);
  if (std::fflush(stdout) != 0) return kExitFailed;
  return all_good(findings) ? kExitGood : kExitFailed;
}

}  // namespace tributary::cli
