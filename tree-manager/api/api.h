#pragma once
// The REST interface: which routes there are, who may call them, and what each does with the cluster. openapi.json
// describes it; the manager serves that at /v1/openapi.json, and tests compare the two.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "service-kit/http/http_door.h"
#include "service-kit/http/http_message.h"
#include "tree-manager/service/cluster.h"

namespace tributary::manager {

using service::Admission;
using service::HttpHandler;
using service::HttpHead;
using service::HttpReply;

class ApiMetrics;

struct ApiSettings {
  std::string aggregator_token;
  std::string job_token;
  bool reads_need_token = false;  // reads need either of the two tokens
};

enum class Access : std::uint8_t {
  open,        // everybody
  read,        // everybody, unless the setting asks for a token
  aggregator,  // the aggregator token, which administrators have, too
  job,         // the job token
  any_token,
};

class Api final : public HttpHandler {
 public:
  Api(Cluster& cluster, ApiSettings settings);
  ~Api() override;

  [[nodiscard]] Admission admit(const HttpHead& head) override;
  [[nodiscard]] HttpReply handle(const HttpHead& head, const std::string& body) override;
  [[nodiscard]] HttpReply reject(unsigned status, const std::string& message) override;

  /// Lists "GET /v1/groups/{id}" and so on, as openapi.json names them.
  [[nodiscard]] std::vector<std::string> routes() const;
  /// Shows the door's counts among the metrics.
  void show_door(const service::HttpDoor& door);

 private:
  using Parameters = std::vector<std::string>;  // the parts of the path that stand for the pattern's braces
  struct Call {
    const HttpHead& head;
    const std::string& body;
    const Parameters& parameters;
  };
  struct Route {
    std::string method;
    std::string pattern;
    Access access;
    std::uint64_t body_bytes_max;
    std::function<HttpReply(const Call&)> run;
  };
  struct Match {
    const Route* route = nullptr;
    Parameters parameters;
    std::string allowed;  // methods of the path, when the method did not match
  };

  void add(std::string_view method, std::string_view pattern, Access access, std::uint64_t body_bytes_max,
           HttpReply (Api::*run)(const Call&));
  void add_routes();
  [[nodiscard]] Match match(const HttpHead& head) const;
  /// Says which tokens came with the request.
  struct Shown {
    bool bearer = false, aggregator = false, job = false;
  };
  [[nodiscard]] Shown shown(const HttpHead& head) const;
  [[nodiscard]] std::optional<HttpReply> refuse_access(const Route& route, const Shown& shown) const;

  HttpReply page(const Call&);
  HttpReply openapi(const Call&);
  HttpReply health(const Call&);
  HttpReply metrics(const Call&);
  HttpReply version(const Call&);
  HttpReply public_key(const Call&);
  HttpReply register_aggregator(const Call& call);
  HttpReply list_aggregators(const Call&);
  HttpReply get_aggregator(const Call& call);
  HttpReply delete_aggregator(const Call& call);
  HttpReply renew_aggregator(const Call& call);
  HttpReply drain(const Call& call);
  HttpReply undrain(const Call& call);
  HttpReply create_group(const Call& call);
  HttpReply list_groups(const Call&);
  HttpReply get_group(const Call& call);
  HttpReply delete_group(const Call& call);
  HttpReply renew_group(const Call& call);
  HttpReply rebuild_group(const Call& call);
  HttpReply get_tokens(const Call& call);
  HttpReply list_trees(const Call& call);
  HttpReply plan(const Call& call);
  HttpReply get_topology(const Call&);
  HttpReply put_topology(const Call& call);

  Cluster& cluster_;
  const ApiSettings settings_;
  std::vector<Route> routes_;
  std::unique_ptr<ApiMetrics> metrics_;
};

}  // namespace tributary::manager
