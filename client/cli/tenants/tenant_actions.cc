#include "client/cli/tenants/tenant_actions.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/moments.h"
#include "client/cli/terminal/table.h"
#include "tree-manager/topology/name_range.h"

namespace tributary::cli {
namespace {

using manager_client::ManagerClient;
using nlohmann::json;

GetDocument request(const char* method, std::string path, json body = nullptr) {
  return [method, path = std::move(path), body = std::move(body)](ManagerClient& client) {
    return client.request(method, path, body);
  };
}

/// Shows a sentence in place of the manager's answer.
ShowDocument say(std::string sentence) {
  return [sentence = std::move(sentence)](const json&, const TableStyle&) { return sentence + "\n"; };
}

/// Returns 0 if a path can have this name. Otherwise prints the reason, and returns the exit code.
int check_path_name(const char* command, const std::string& name) {
  const auto ok = manager::check_name(name);
  if (ok) return kExitGood;
  std::fprintf(stderr, "tributary: %s: %s\n", command, ok.error().message.c_str());
  return kExitUsage;
}

std::string number_text(std::uint64_t number) {
  return std::to_string(number);
}

/// Returns a text such as "3/8": what the tenant's trees take, and the most that they may take.
std::string part_text(const json& tenant, const char* member, std::string (*text)(std::uint64_t)) {
  const std::string used = text(tenant.at("use").value(member, std::uint64_t{0}));
  const json& quota = tenant.at("quota");
  return used + "/" + (quota.contains(member) ? text(quota.at(member).get<std::uint64_t>()) : std::string("-"));
}

std::string bit_rate_text(std::uint64_t bytes_per_second) {
  return rate_text(bytes_per_second * 8);
}

std::string tenants_text(const json& document, const TableStyle& style) {
  std::vector<std::string> names{"TENANT", "GROUPS", "LANES", "MEMORY", "CLASS"};
  if (style.wide) names.insert(names.end(), {"RATE", "WEIGHT", "SECURITY"});
  Table table(names);
  for (const json& tenant : document.at("tenants")) {
    std::vector<std::string> row{tenant.at("name"), part_text(tenant, "groups", number_text),
                                 part_text(tenant, "lanes", number_text), part_text(tenant, "memory_bytes", bytes_text),
                                 tenant.at("priority_max")};
    if (style.wide) {
      row.insert(row.end(),
                 {part_text(tenant, "bytes_per_second", bit_rate_text),
                  number_text(tenant.value("weight", std::uint64_t{1})), tenant.value("security", std::string("off"))});
    }
    table.add(std::move(row));
  }
  return table.text(style.colour);
}

std::string state_text(const json& reservation, std::int64_t now) {
  if (now < reservation.at("begin").get<std::int64_t>()) return "waits";
  return now < reservation.at("end").get<std::int64_t>() ? "runs" : "over";
}

std::string reservations_text(const json& document, const TableStyle& style) {
  std::vector<std::string> names{"RESERVATION", "STATE", "TENANT", "JOB", "BEGIN", "END", "AGGREGATORS"};
  if (style.wide) names.insert(names.end(), {"EXCLUSIVE", "NAMES"});
  Table table(names);
  const std::int64_t now = unix_now();
  for (const json& it : document.at("reservations")) {
    const auto aggregators = it.at("aggregators").get<std::vector<std::string>>();
    const std::string tenant = it.at("tenant"), job = it.at("job");
    std::vector<std::string> row{it.at("name"),
                                 state_text(it, now),
                                 tenant.empty() ? "job.token" : tenant,
                                 job.empty() ? "any" : job,
                                 utc_text(it.at("begin")),
                                 utc_text(it.at("end")),
                                 number_text(aggregators.size())};
    if (style.wide) {
      std::string list;
      for (const std::string& one : aggregators) list += (list.empty() ? "" : ",") + one;
      row.insert(row.end(), {it.at("exclusive").get<bool>() ? "yes" : "no", list});
    }
    table.add(std::move(row));
  }
  return table.text(style.colour);
}

std::string reserved_text(const json& made, const TableStyle&) {
  std::string list;
  for (const json& one : made.at("aggregators")) list += (list.empty() ? "" : ", ") + one.get<std::string>();
  return printable("reservation " + made.at("name").get<std::string>() + " of " + list + ", from " +
                   utc_text(made.at("begin")) + " to " + utc_text(made.at("end"))) +
         "\n";
}

}  // namespace

int list_tenants(const ManagerOptions& options) {
  return show(options, request("GET", "/v1/tenants"), tenants_text);
}

int set_tenant(const ManagerOptions& options, const std::string& name, const json& entry) {
  if (const int code = check_path_name("tenants set", name); code != kExitGood) return code;
  return show(options, request("PUT", "/v1/tenants/" + name, entry),
              say("the entry of tenant " + name + " counts for the next trees"));
}

int remove_tenant(const ManagerOptions& options, const std::string& name) {
  if (const int code = check_path_name("tenants remove", name); code != kExitGood) return code;
  return show(options, request("DELETE", "/v1/tenants/" + name), say("tenant " + name + " has no entry any more"));
}

int reserve(const ManagerOptions& options, const ReservationWanted& wanted) {
  json body = {{"name", wanted.name}, {"tenant", wanted.tenant}, {"exclusive", wanted.exclusive}};
  if (!wanted.job.empty()) body["job"] = wanted.job;
  if (wanted.begin != 0) body["begin"] = wanted.begin;
  body["end"] = wanted.end != 0 ? wanted.end : (wanted.begin != 0 ? wanted.begin : unix_now()) + wanted.life_s;
  if (wanted.aggregators.empty()) {
    body["count"] = wanted.count;
  } else {
    body["aggregators"] = wanted.aggregators;
  }
  return show(options, request("POST", "/v1/reservations", std::move(body)), reserved_text);
}

int list_reservations(const ManagerOptions& options) {
  return show(options, request("GET", "/v1/reservations"), reservations_text);
}

int end_reservation(const ManagerOptions& options, const std::string& name) {
  if (const int code = check_path_name("reservations end", name); code != kExitGood) return code;
  return show(options, request("DELETE", "/v1/reservations/" + name), say("reservation " + name + " has ended"));
}

}  // namespace tributary::cli
