#include "tree-manager/api/api.h"

#include <openssl/crypto.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "tree-manager/api/embedded.h"
#include "tree-manager/api/metrics.h"
#include "tree-manager/api/replies.h"

namespace tributary::manager {
namespace {

constexpr std::uint64_t kSmallBody = 64U << 10;
constexpr std::uint64_t kGroupBody = 12U << 20;  // a host name of 63 bytes for each rank of the largest group
constexpr std::uint64_t kTopologyBody = 32U << 20;

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    parts.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

bool is_parameter(std::string_view part) {
  return part.starts_with('{');
}

/// Takes as long for a wrong token as for a right one of the same length.
bool same_token(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

Api::Api(Cluster& cluster, ApiSettings settings)
    : cluster_(cluster), settings_(std::move(settings)), metrics_(std::make_unique<ApiMetrics>(cluster)) {
  add_routes();
}

Api::~Api() = default;

void Api::add(std::string_view method, std::string_view pattern, Access access, std::uint64_t body_bytes_max,
              HttpReply (Api::*run)(const Call&)) {
  routes_.push_back({std::string(method), std::string(pattern), access, body_bytes_max,
                     [this, run](const Call& call) { return (this->*run)(call); }});
}

void Api::add_routes() {
  add("GET", "/", Access::open, 0, &Api::page);
  add("GET", "/healthz", Access::open, 0, &Api::health);
  add("GET", "/metrics", Access::read, 0, &Api::metrics);
  add("GET", "/v1/openapi.json", Access::open, 0, &Api::openapi);
  add("GET", "/v1/version", Access::open, 0, &Api::version);
  add("GET", "/v1/public-key", Access::open, 0, &Api::public_key);
  add("GET", "/v1/aggregators", Access::read, 0, &Api::list_aggregators);
  add("POST", "/v1/aggregators", Access::aggregator, kSmallBody, &Api::register_aggregator);
  add("GET", "/v1/aggregators/{name}", Access::read, 0, &Api::get_aggregator);
  add("DELETE", "/v1/aggregators/{name}", Access::aggregator, kSmallBody, &Api::delete_aggregator);
  add("PUT", "/v1/aggregators/{name}/lease", Access::aggregator, kSmallBody, &Api::renew_aggregator);
  add("POST", "/v1/aggregators/{name}/drain", Access::aggregator, kSmallBody, &Api::drain);
  add("POST", "/v1/aggregators/{name}/undrain", Access::aggregator, kSmallBody, &Api::undrain);
  add("GET", "/v1/groups", Access::read, 0, &Api::list_groups);
  add("POST", "/v1/groups", Access::job, kGroupBody, &Api::create_group);
  add("GET", "/v1/groups/{id}", Access::read, 0, &Api::get_group);
  add("DELETE", "/v1/groups/{id}", Access::job, kSmallBody, &Api::delete_group);
  add("PUT", "/v1/groups/{id}/lease", Access::job, kGroupBody, &Api::renew_group);
  add("GET", "/v1/groups/{id}/tokens", Access::job, 0, &Api::get_tokens);
  add("POST", "/v1/groups/{id}/rebuild", Access::job, kGroupBody, &Api::rebuild_group);
  add("GET", "/v1/trees", Access::read, 0, &Api::list_trees);
  add("POST", "/v1/plan", Access::any_token, kGroupBody, &Api::plan);
  add("GET", "/v1/topology", Access::read, 0, &Api::get_topology);
  add("PUT", "/v1/topology", Access::aggregator, kTopologyBody, &Api::put_topology);
}

Api::Match Api::match(const HttpHead& head) const {
  Match result;
  const auto parts = split(head.path);
  for (const Route& route : routes_) {
    const auto pattern = split(route.pattern);
    const bool same = std::equal(parts.begin(), parts.end(), pattern.begin(), pattern.end(),
                                 [](std::string_view part, std::string_view wanted) {
                                   return is_parameter(wanted) ? !part.empty() : part == wanted;
                                 });
    if (!same) continue;
    if (route.method != head.method) {
      result.allowed += (result.allowed.empty() ? "" : ", ") + route.method;
      continue;
    }
    result.route = &route;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (is_parameter(pattern[i])) result.parameters.emplace_back(parts[i]);
    }
    return result;
  }
  return result;
}

Api::Shown Api::shown(const HttpHead& head) const {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view given = head.authorization;
  if (!given.starts_with(kBearer)) return {};
  const std::string_view token = given.substr(kBearer.size());
  return {.bearer = true,
          .aggregator = same_token(token, settings_.aggregator_token),
          .job = same_token(token, settings_.job_token)};
}

std::optional<HttpReply> Api::refuse_access(const Route& route, const Shown& shown) const {
  const bool open = route.access == Access::open || (route.access == Access::read && !settings_.reads_need_token);
  if (open) return std::nullopt;
  const auto [bearer, aggregator, job] = shown;
  const bool allowed = (aggregator && route.access != Access::job) || (job && route.access != Access::aggregator);
  if (allowed) return std::nullopt;
  const char* wanted = route.access == Access::job          ? "the job token"
                       : route.access == Access::aggregator ? "the aggregator token"
                                                            : "the job token or the aggregator token";
  const char* where = route.access == Access::job          ? "set TRIBUTARY_TOKEN_FILE to a file with job.token"
                      : route.access == Access::aggregator ? "name a file with aggregator.token, in an aggregator's "
                                                             "token_file or in --token-file,"
                                                           : "set TRIBUTARY_TOKEN_FILE to a file with either";
  if (aggregator || job) {
    return error_reply(403, std::string("this needs ") + wanted + "; the other one was given");
  }
  HttpReply reply = error_reply(401, std::string(bearer ? "the token is wrong: " : "no token was given: ") +
                                         "this needs " + wanted + "; " + where + " of the manager's state directory");
  reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tributary-manager\"");
  return reply;
}

Admission Api::admit(const HttpHead& head) {
  const Match found = match(head);
  const Shown tokens = shown(head);
  const bool proved = tokens.aggregator || tokens.job;
  std::optional<HttpReply> refusal;
  if (found.route == nullptr && found.allowed.empty()) {
    refusal = error_reply(404, "there is nothing at this path; /v1/openapi.json lists what there is");
  } else if (found.route == nullptr) {
    refusal = error_reply(405, "this path takes " + found.allowed);
    refusal->headers.emplace_back("Allow", found.allowed);
  } else {
    refusal = refuse_access(*found.route, tokens);
  }
  if (refusal) {
    metrics_->count(found.route == nullptr ? "none" : found.route->method + " " + found.route->pattern, refusal->status,
                    {});
    return {.refusal = std::move(refusal), .body_bytes_max = 0, .proved = proved};
  }
  return {.refusal = std::nullopt, .body_bytes_max = found.route->body_bytes_max, .proved = proved};
}

HttpReply Api::handle(const HttpHead& head, const std::string& body) {
  const auto start = std::chrono::steady_clock::now();
  const Match found = match(head);
  HttpReply reply;
  try {
    reply = found.route->run({head, body, found.parameters});
  } catch (const std::exception& error) {
    spdlog::error("{} {} failed: {}", found.route->method, found.route->pattern, error.what());
    reply = error_reply(500, "the manager could not do this: " + std::string(error.what()));
  }
  metrics_->count(found.route->method + " " + found.route->pattern, reply.status,
                  std::chrono::steady_clock::now() - start);
  return reply;
}

HttpReply Api::reject(unsigned status, const std::string& message) {
  metrics_->count("none", status, {});
  return error_reply(status, message);
}

std::vector<std::string> Api::routes() const {
  std::vector<std::string> list;
  for (const Route& route : routes_) list.push_back(route.method + " " + route.pattern);
  return list;
}

void Api::show_door(const service::HttpDoor& door) {
  metrics_->show_door(door);
}

HttpReply Api::page(const Call&) {
  HttpReply reply{.content_type = "text/html; charset=utf-8", .body = std::string(kIndexHtml), .headers = {}};
  reply.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  return reply;
}

HttpReply Api::openapi(const Call&) {
  return {.body = std::string(kOpenApiJson), .headers = {}};
}

HttpReply Api::metrics(const Call&) {
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_->page().text(), .headers = {}};
}

}  // namespace tributary::manager
