#pragma once
// The REST interface: the routes, the check of callers, and the calls of the cluster. openapi.json describes the
// interface; the manager serves that document at /v1/openapi.json, and tests compare it with the answers.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service-kit/http/http_door.h"
#include "service-kit/http/http_message.h"
#include "service-kit/rate_limit.h"
#include "tree-manager/api/access_table.h"
#include "tree-manager/api/certificate_identities.h"
#include "tree-manager/api/event_routes.h"
#include "tree-manager/api/standing.h"
#include "tree-manager/identity/authenticator.h"
#include "tree-manager/service/cluster.h"

namespace tributary::manager {

using service::Admission;
using service::HttpHandler;
using service::HttpHead;
using service::HttpReply;

class ApiMetrics;
class AuditLog;

struct ApiSettings {
  std::string aggregator_token;   // empty: the manager accepts no request with this token
  std::string job_token;          // empty: the manager accepts no request with this token
  bool reads_need_token = false;  // reads need a token
  bool tenants_read_all = false;  // if reads need a token: tenants may read other tenants' groups, too
  IdentityKeys identity_keys{};   // keys of identity tokens
  std::shared_ptr<const LiveCertificates> certificates{};  // nullptr: client certificates prove nothing
  std::uint64_t requests_per_second_max = 0;      // limit of each identity, and of each address otherwise; 0: none
  AuditLog* audit = nullptr;                      // nullptr: no log; must outlive the Api
  std::function<Standing()> standing{};           // empty: the manager is alone, and leads
  std::function<std::int64_t()> unix_seconds{};   // empty: the system's clock
  std::shared_ptr<const ClusterEvents> events{};  // the events of the cluster; nullptr: there are none
};

/// The notes of a route for the audit log.
struct RouteNotes {
  Refusal no_trees{};    // set by a route that gives a group no trees
  std::string object{};  // what the request made or revoked, such as "group 7", where the path does not name it
};

class Api final : public HttpHandler {
 public:
  /// Returns the cluster of a manager that leads at this moment, else nullptr. Any thread may call it.
  using FindCluster = std::function<std::shared_ptr<Cluster>()>;

  /// Serves this cluster, which must outlive the Api.
  Api(Cluster& cluster, ApiSettings settings);
  Api(FindCluster cluster, ApiSettings settings);
  ~Api() override;

  [[nodiscard]] Admission admit(const HttpHead& head) override;
  [[nodiscard]] HttpReply handle(const HttpHead& head, const std::string& body) override;
  /// Answers from this cluster. nullptr: answers only requests that need no cluster, and all others with no_leader.
  [[nodiscard]] HttpReply handle(const HttpHead& head, const std::string& body,
                                 const std::shared_ptr<Cluster>& cluster);
  [[nodiscard]] HttpReply reject(unsigned status, const std::string& message) override;

  /// Lists the routes, such as "GET /v1/groups/{id}", as openapi.json names them.
  [[nodiscard]] std::vector<std::string> routes() const;
  [[nodiscard]] Authenticator& authenticator() noexcept { return authenticator_; }
  /// Returns the row of the route that the request takes; nullptr: it takes none.
  [[nodiscard]] const AccessRow* row_of(const HttpHead& head) const;
  /// Adds the door's counts to the metrics.
  void show_door(const service::HttpDoor& door);

 private:
  using Parameters = std::vector<std::string>;  // the parts of the path at the pattern's braces
  struct Call {
    const HttpHead& head;
    const std::string& body;
    const Parameters& parameters;
    const Proof& caller;
    RouteNotes& notes;
    Cluster* cluster;  // the same for the whole request, whoever leads meanwhile; nullptr only for rows with `own`
  };
  struct Route {
    std::string method;
    std::string pattern;
    const AccessRow* access;
    std::uint64_t body_bytes_max;
    std::function<HttpReply(const Call&)> run;
  };
  struct Match {
    const Route* route = nullptr;
    Parameters parameters;
    std::string allowed;  // methods of the path, if the request's method did not match
  };

  void add(std::string_view method, std::string_view pattern, std::uint64_t body_bytes_max,
           std::function<HttpReply(const Call&)> run);
  void add(std::string_view method, std::string_view pattern, std::uint64_t body_bytes_max,
           HttpReply (Api::*run)(const Call&));
  void add_routes();
  void add_administration_routes();
  [[nodiscard]] Match match(const HttpHead& head) const;
  [[nodiscard]] std::optional<HttpReply> refuse(const Match& found, const Proof& caller, const Cluster* cluster) const;
  [[nodiscard]] std::optional<HttpReply> refuse_access(const Route& route, const Proof& caller) const;
  [[nodiscard]] std::optional<HttpReply> refuse_owner(const Match& found, const Identity& caller,
                                                      const Cluster& cluster) const;
  [[nodiscard]] std::optional<HttpReply> refuse_haste(const Match& found, const HttpHead& head, const Proof& caller);
  void record(const HttpHead& head, const Proof& caller, const HttpReply& reply, const RouteNotes& notes = {}) const;
  /// True if the caller may know of all groups.
  [[nodiscard]] bool sees_all(const Proof& caller) const;
  /// True if the caller may know of the groups of this tenant and job.
  [[nodiscard]] bool sees(const Proof& caller, const std::string& tenant, const std::string& job) const;

  [[nodiscard]] EventReader event_reader(const Call& call);
  HttpReply register_aggregator(const Call& call);
  HttpReply list_aggregators(const Call& call);
  HttpReply get_aggregator(const Call& call);
  HttpReply delete_aggregator(const Call& call);
  HttpReply renew_aggregator(const Call& call);
  HttpReply create_group(const Call& call);
  HttpReply list_groups(const Call& call);
  HttpReply get_group(const Call& call);
  HttpReply delete_group(const Call& call);
  HttpReply renew_group(const Call& call);
  HttpReply rebuild_group(const Call& call);
  HttpReply get_tokens(const Call& call);
  HttpReply list_trees(const Call& call);
  HttpReply plan(const Call& call);
  HttpReply get_topology(const Call& call);
  HttpReply put_topology(const Call& call);

  const FindCluster cluster_;
  const ApiSettings settings_;
  Authenticator authenticator_;
  std::vector<Route> routes_;
  service::RateLimit rate_limit_;       // by identity
  service::RateLimit strangers_limit_;  // by the source of callers without an identity
  service::RateLimit secrets_limit_;    // by shared secret and source
  std::unique_ptr<ApiMetrics> metrics_;
  EventStreams streams_;
};

}  // namespace tributary::manager
