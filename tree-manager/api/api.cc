#include "tree-manager/api/api.h"

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <stdexcept>

#include "service-kit/http/address_source.h"
#include "tree-manager/api/audit_log.h"
#include "tree-manager/api/embedded.h"
#include "tree-manager/api/metrics.h"
#include "tree-manager/api/overview.h"
#include "tree-manager/api/replies.h"
#include "tree-manager/api/tenant_routes.h"
#include "tree-manager/api/token_routes.h"
#include "tree-manager/api/web_files.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/reason.h"

#ifndef TRIBUTARY_VERSION
#error "the build sets TRIBUTARY_VERSION"
#endif

namespace tributary::manager {
namespace {

constexpr std::uint64_t kSmallBody = 64U << 10;
constexpr std::uint64_t kGroupBody = 12U << 20;  // a host name of 63 bytes for each rank of the largest group
constexpr std::uint64_t kReservationBody = 1U << 20;
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

std::int64_t system_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ApiSettings with_defaults(ApiSettings settings) {
  if (!settings.unix_seconds) settings.unix_seconds = system_seconds;
  if (!settings.events) settings.events = std::make_shared<const ClusterEvents>();
  return settings;
}

/// Says where a caller gets a token for this route.
std::string where_from(const AccessRow& row) {
  if (row.roles.has(Role::tenant)) return "set TRIBUTARY_TOKEN_FILE to a file with";
  return "name a file with it, in an aggregator's token_file or in --token-file:";
}

/// Returns the groups that the caller may change.
GroupOwner owner_of(const Identity& caller) {
  return {.tenant = caller.tenant, .job = caller.job};
}

/// The sentence of an answer that is an error, and the code of its reason; empty for other answers.
struct ErrorInReply {
  std::string message, reason_code;
};
ErrorInReply error_in(const HttpReply& reply) {
  if (reply.status < 400) return {};
  const auto body = nlohmann::json::parse(reply.body, nullptr, false);
  if (!body.is_object() || !body.contains("error")) return {};
  return {.message = body["error"].value("message", ""), .reason_code = body["error"].value("reason_code", "")};
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

/// If there is a token, only the token counts: a certificate does not make up for a wrong token.
Proof caller_of(const HttpHead& head, Authenticator& authenticator, const LiveCertificates* certificates,
                std::int64_t now_s) {
  const bool by_certificate = head.certificate != nullptr && head.authorization.empty();
  if (certificates == nullptr || !by_certificate)
    return authenticator.look(head.authorization, head.remote_address, now_s);
  return certificates->look(*head.certificate);
}

HttpReply openapi() {
  return {.body = std::string(kOpenApiJson), .headers = {}};
}

HttpReply version() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return json_reply({{"name", "tributary-manager"},
                     {"version", TRIBUTARY_VERSION},
                     {"protocol_version", kProtocolVersion},
                     {"time_ms", std::chrono::duration_cast<std::chrono::milliseconds>(now).count()}});
}

Standing standing_of(const ApiSettings& settings, const Cluster* cluster) {
  if (settings.standing) return settings.standing();
  return {.fence = cluster != nullptr ? cluster->fence() : 0, .leaders_seen = 1};
}

HttpReply leader(const Standing& now) {
  return json_reply({{"role", now.alone   ? "alone"
                              : now.leads ? "leader"
                                          : "follower"},
                     {"leader", now.leader},
                     {"fence", now.fence}});
}

HttpReply public_key(const Cluster& cluster) {
  return json_reply(
      {{"algorithm", "Ed25519"}, {"public_key", to_base64(cluster.signing().now()->signing.public_key())}});
}

}  // namespace

Api::Api(FindCluster cluster, ApiSettings settings)
    : cluster_(std::move(cluster)),
      settings_(with_defaults(std::move(settings))),
      authenticator_({.aggregator_token = settings_.aggregator_token, .job_token = settings_.job_token},
                     settings_.identity_keys, Revocations(),
                     [this](const std::string& text) {
                       const auto now = cluster_();
                       return now ? now->keep(kRevokedTokensKey, text)
                                  : fail(Errc::retry, "this manager does not lead");
                     }),
      rate_limit_(settings_.requests_per_second_max),
      strangers_limit_(settings_.requests_per_second_max),
      secrets_limit_(settings_.requests_per_second_max),
      metrics_(std::make_unique<ApiMetrics>()) {
  metrics_->show_streams(streams_);
  add_routes();
  add_administration_routes();
}

Api::Api(Cluster& cluster, ApiSettings settings)
    : Api([it = std::shared_ptr<Cluster>(std::shared_ptr<Cluster>(), &cluster)] { return it; }, std::move(settings)) {
  const auto used = authenticator_.use_revocations(cluster.kept(kRevokedTokensKey));
  if (!used) throw std::runtime_error(used.error().message);
}

Api::~Api() = default;

void Api::add(std::string_view method, std::string_view pattern, std::uint64_t body_bytes_max,
              std::function<HttpReply(const Call&)> run) {
  const AccessRow* const access = access_row(method, pattern);
  TRIBUTARY_ASSERT(access != nullptr, "{} {} has no row in the table of access", method, pattern);
  routes_.push_back({std::string(method), std::string(pattern), access, body_bytes_max, std::move(run)});
}

void Api::add(std::string_view method, std::string_view pattern, std::uint64_t body_bytes_max,
              HttpReply (Api::*run)(const Call&)) {
  add(method, pattern, body_bytes_max, [this, run](const Call& call) { return (this->*run)(call); });
}

void Api::add_routes() {
  add("GET", "/", 0, [](const Call& call) { return web_file("index.html", call.head); });
  add("GET", "/web/{file}", 0, [](const Call& call) { return web_file(call.parameters[0], call.head); });
  add("GET", "/healthz", 0, [](const Call&) { return json_reply({{"status", "ok"}}); });
  add("GET", "/metrics", 0, [this](const Call& call) {
    return HttpReply{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                     .body = metrics_->page(call.cluster, standing_of(settings_, call.cluster)).text(),
                     .headers = {}};
  });
  add("GET", "/v1/openapi.json", 0, [](const Call&) { return openapi(); });
  add("GET", "/v1/version", 0, [](const Call&) { return version(); });
  add("GET", "/v1/leader", 0, [this](const Call& call) { return leader(standing_of(settings_, call.cluster)); });
  add("GET", "/v1/public-key", 0, [](const Call& call) { return public_key(*call.cluster); });
  add("GET", "/v1/aggregators", 0, &Api::list_aggregators);
  add("POST", "/v1/aggregators", kSmallBody, &Api::register_aggregator);
  add("GET", "/v1/aggregators/{name}", 0, &Api::get_aggregator);
  add("DELETE", "/v1/aggregators/{name}", kSmallBody, &Api::delete_aggregator);
  add("PUT", "/v1/aggregators/{name}/lease", kSmallBody, &Api::renew_aggregator);
  for (const auto& [path, draining] :
       {std::pair{"/v1/aggregators/{name}/drain", true}, std::pair{"/v1/aggregators/{name}/undrain", false}}) {
    add("POST", path, kSmallBody,
        [draining](const Call& call) { return done_reply(call.cluster->set_draining(call.parameters[0], draining)); });
  }
  add("GET", "/v1/groups", 0, &Api::list_groups);
  add("POST", "/v1/groups", kGroupBody, &Api::create_group);
  add("GET", "/v1/groups/{id}", 0, &Api::get_group);
  add("DELETE", "/v1/groups/{id}", kSmallBody, &Api::delete_group);
  add("PUT", "/v1/groups/{id}/lease", kGroupBody, &Api::renew_group);
  add("GET", "/v1/groups/{id}/tokens", 0, &Api::get_tokens);
  add("POST", "/v1/groups/{id}/rebuild", kGroupBody, &Api::rebuild_group);
  add("GET", "/v1/trees", 0, &Api::list_trees);
  add("GET", "/v1/overview", 0, [this](const Call& call) {
    return overview_reply(*call.cluster, call.head.query, settings_.events->log().last(),
                          [&](const GroupRecord& group) { return sees(call.caller, group.owner, group.job); });
  });
  add("GET", "/v1/events", 0, [this](const Call& call) {
    return events_reply(call.head, settings_.events->log(), streams_, event_reader(call));
  });
  add("POST", "/v1/plan", kGroupBody, &Api::plan);
  add("GET", "/v1/topology", 0, &Api::get_topology);
  add("PUT", "/v1/topology", kTopologyBody, &Api::put_topology);
}

void Api::add_administration_routes() {
  add("POST", "/v1/tokens", kSmallBody, [this](const Call& call) {
    return make_token(authenticator_, *call.caller.identity, call.body, settings_.unix_seconds(), call.notes.object);
  });
  add("POST", "/v1/tokens/renew", kSmallBody,
      [this](const Call& call) { return renew_token(authenticator_, call.caller.claims, settings_.unix_seconds()); });
  add("POST", "/v1/tokens/revoke", kSmallBody, [this](const Call& call) {
    return revoke_token(authenticator_, call.body, settings_.unix_seconds(), call.notes.object);
  });
  add("GET", "/v1/tokens/revoked", 0, [this](const Call&) { return list_revoked(authenticator_); });
  add("GET", "/v1/tenants", 0, [](const Call& call) { return list_tenants(*call.cluster, *call.caller.identity); });
  add("PUT", "/v1/tenants/{name}", kSmallBody,
      [](const Call& call) { return put_tenant(*call.cluster, call.parameters[0], call.body); });
  add("DELETE", "/v1/tenants/{name}", kSmallBody,
      [](const Call& call) { return delete_tenant(*call.cluster, call.parameters[0]); });
  add("GET", "/v1/reservations", 0, [this](const Call& call) {
    const bool all =
        !settings_.reads_need_token || settings_.tenants_read_all || call.caller.identity->roles != Roles(Role::tenant);
    return list_reservations(*call.cluster, all ? nullptr : &call.caller.identity->tenant);
  });
  add("POST", "/v1/reservations", kReservationBody, [this](const Call& call) {
    return make_reservation(*call.cluster, call.body, settings_.unix_seconds(), call.notes.object);
  });
  add("DELETE", "/v1/reservations/{name}", kSmallBody,
      [](const Call& call) { return delete_reservation(*call.cluster, call.parameters[0]); });
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

std::optional<HttpReply> Api::refuse_access(const Route& route, const Proof& caller) const {
  const AccessRow& row = *route.access;
  if (row.open || (row.read && !settings_.reads_need_token)) return std::nullopt;
  if (caller.identity) {
    const std::string why = why_denied(row, *caller.identity);
    return why.empty() ? std::nullopt : std::optional(error_reply(403, coded(Reason::not_allowed, why)));
  }
  const CodedText why = caller.why.empty() ? CodedText{Reason::no_token, "no token was given"} : split_code(caller.why);
  HttpReply reply = error_reply(
      401, coded(why.reason,
                 std::string(why.sentence) + ": " + route.method + " " + route.pattern + " takes the role " +
                     to_string(row.roles, " or ") + "; " + where_from(row) + " a token of `tributary token make`, or " +
                     (row.roles.has(Role::tenant) ? "job.token" : "aggregator.token") +
                     " of the manager's state directory, or show a client certificate of certificate_file"));
  reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"tributary-manager\"");
  return reply;
}

/// Gives a caller that may not know a group the same answer as for a group that does not exist.
std::optional<HttpReply> Api::refuse_owner(const Match& found, const Identity& caller, const Cluster& cluster) const {
  const AccessRow& row = *found.route->access;
  if (caller.roles.has(Role::administrator)) return std::nullopt;
  if (row.owned == Owned::aggregator) {
    const auto view = cluster.aggregator(found.parameters[0]);
    const bool others = view && !view->record.owner.empty() && view->record.owner != caller.name;
    if (!others) return std::nullopt;
    return error_reply(
        403, coded(Reason::not_allowed, "aggregator '" + found.parameters[0] + "' belongs to another identity"));
  }
  const auto id = number_in(found.parameters[0]);
  if (!id) return std::nullopt;  // the route reports the mistake
  const auto view = cluster.group(*id);
  if (view)
    return owner_of(caller).owns(*view->record) ? std::nullopt : std::optional(error_reply(no_group(*id).error()));
  // The manager may have lost the group; the record then proves that it existed. A repeated deletion succeeds; only for
  // holders of the shared secret does this show that there was such a group.
  const bool may_be_lost = row.method == "PUT";
  if (may_be_lost || caller.old_secret) return std::nullopt;
  return error_reply(no_group(*id).error());
}

bool Api::sees_all(const Proof& caller) const {
  return !settings_.reads_need_token || settings_.tenants_read_all || !caller.identity ||
         caller.identity->roles != Roles(Role::tenant);
}

bool Api::sees(const Proof& caller, const std::string& tenant, const std::string& job) const {
  return sees_all(caller) || owner_of(*caller.identity).owns(tenant, job);
}

/// A stream ends when the caller may no longer read, or when this manager no longer leads.
EventReader Api::event_reader(const Call& call) {
  const auto leads = [this, cluster = call.cluster] { return cluster_().get() == cluster; };
  const bool known = call.caller.identity.has_value();
  const EventsTold by_leader = call.head.passed_on.empty() ? EventsTold::as_they_come : EventsTold::of_the_moment;
  return {.caller = {.name = known ? "by " + call.caller.identity->name : "at " + call.head.remote_address,
                     .stranger = !known},
          .hears = [this, caller = call.caller](
                       const Event& event) { return event.group == 0 || sees(caller, event.tenant, event.job); },
          .goes_on =
              [this, leads, head = call.head] {
                const Proof now =
                    caller_of(head, authenticator_, settings_.certificates.get(), settings_.unix_seconds());
                return leads() && !refuse_access(*match(head).route, now);
              },
          .told = leads() ? by_leader : EventsTold::none};
}

/// Without a cluster this manager does not know the owners; the manager that leads checks them.
std::optional<HttpReply> Api::refuse(const Match& found, const Proof& caller, const Cluster* cluster) const {
  if (found.route == nullptr && found.allowed.empty()) {
    return error_reply(404, "there is nothing at this path; /v1/openapi.json lists what there is");
  }
  if (found.route == nullptr) {
    HttpReply reply = error_reply(405, "this path takes " + found.allowed);
    reply.headers.emplace_back("Allow", found.allowed);
    return reply;
  }
  if (auto refusal = refuse_access(*found.route, caller)) return refusal;
  const Owned owned = found.route->access->owned;
  const bool theirs = owned == Owned::group || owned == Owned::aggregator;
  return theirs && caller.identity && cluster != nullptr ? refuse_owner(found, *caller.identity, *cluster)
                                                         : std::nullopt;
}

/// Strangers and holders of a shared secret have buckets by their addresses: one holder cannot empty the bucket of all,
/// and no number of addresses leaves an identity without a bucket. Renewals of leases with a shared secret have buckets
/// of their own, so no other request from the same address costs an aggregator or a group its lease.
std::optional<HttpReply> Api::refuse_haste(const Match& found, const HttpHead& head, const Proof& caller) {
  const auto now = std::chrono::steady_clock::now();
  const auto source = [&] { return std::to_string(service::source_of_address(head.remote_address).network); };
  const auto takes = [&] {
    if (!caller.identity) return strangers_limit_.take(source(), now);
    if (!caller.identity->old_secret) return rate_limit_.take(caller.identity->name, now);
    const bool renews = found.route != nullptr && found.route->pattern.ends_with("/lease");
    return secrets_limit_.take(caller.identity->name + (renews ? " renews at " : " at ") + source(), now);
  };
  if (takes()) return std::nullopt;
  const std::string who = !caller.identity ? "callers without a token at your address send"
                          : caller.identity->old_secret
                              ? "holders of " + caller.identity->name + " at your address send"
                              : "'" + caller.identity->name + "' sends";
  HttpReply reply = error_reply(
      429, coded(Reason::too_many_requests,
                 who + " more than " + std::to_string(settings_.requests_per_second_max) + " requests a second"));
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

/// Counts the reason of a refusal, and writes the call to the audit log. The log leaves out calls that change nothing,
/// and renewals of leases, which come every few seconds.
void Api::record(const HttpHead& head, const Proof& caller, const HttpReply& reply, const RouteNotes& notes) const {
  const Refusal& refusal = notes.no_trees;
  const bool changes = head.method != "GET" && !(reply.status == 200 && head.path.ends_with("/lease"));
  const bool refused = reply.status == 401 || reply.status == 403;
  const ErrorInReply error = error_in(reply);
  metrics_->count(reason_of(error.reason_code));
  if (settings_.audit == nullptr || !(changes || refused || !refusal.code.empty())) return;
  settings_.audit->write({.who = caller.identity ? &*caller.identity : nullptr,
                          .from = head.remote_address,
                          .method = head.method,
                          .path = head.path,
                          .object = notes.object,
                          .status = reply.status,
                          .why = refusal.code.empty() ? error.message : refusal.reason,
                          .code = refusal.code.empty() ? error.reason_code : refusal.code},
                         settings_.unix_seconds());
}

Admission Api::admit(const HttpHead& head) {
  const Match found = match(head);
  const Proof caller = caller_of(head, authenticator_, settings_.certificates.get(), settings_.unix_seconds());
  const bool proved = caller.identity.has_value();
  std::optional<HttpReply> refusal = refuse_haste(found, head, caller);
  if (!refusal) refusal = refuse(found, caller, cluster_().get());
  if (refusal) {
    record(head, caller, *refusal);
    metrics_->count(found.route == nullptr ? "none" : found.route->method + " " + found.route->pattern, refusal->status,
                    {});
    return {.refusal = std::move(refusal), .body_bytes_max = 0, .proved = proved};
  }
  TRIBUTARY_ASSERT(found.route != nullptr, "a request for {} was let in without a route", std::string_view(head.path));
  return {.refusal = std::nullopt, .body_bytes_max = found.route->body_bytes_max, .proved = proved};
}

HttpReply Api::handle(const HttpHead& head, const std::string& body) {
  return handle(head, body, cluster_());
}

/// Checks the caller again: its token may have been revoked while the body came.
HttpReply Api::handle(const HttpHead& head, const std::string& body, const std::shared_ptr<Cluster>& cluster) {
  const auto start = std::chrono::steady_clock::now();
  const Match found = match(head);
  TRIBUTARY_ASSERT(found.route != nullptr, "admit() let in a request for {} without a route",
                   std::string_view(head.path));
  const Proof caller = caller_of(head, authenticator_, settings_.certificates.get(), settings_.unix_seconds());
  std::optional<HttpReply> refusal = refuse(found, caller, cluster.get());
  if (!refusal && cluster == nullptr && !found.route->access->own) refusal = no_leader_reply();
  HttpReply reply;
  RouteNotes notes;
  try {
    reply =
        refusal ? std::move(*refusal) : found.route->run({head, body, found.parameters, caller, notes, cluster.get()});
  } catch (const std::exception& error) {
    spdlog::error("{} {} failed: {}", found.route->method, found.route->pattern, error.what());
    reply = error_reply(500, "the manager could not do this: " + std::string(error.what()));
  }
  record(head, caller, reply, notes);
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

const AccessRow* Api::row_of(const HttpHead& head) const {
  const Match found = match(head);
  return found.route == nullptr ? nullptr : found.route->access;
}

}  // namespace tributary::manager
