#include "tree-manager/store/etcd/etcd_election.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "tributary/protocol/json_reader.h"

namespace tributary::manager {
namespace {

using nlohmann::json;

/// Returns the key-value pair in the answer to a range of one key; null if the key does not exist.
json pair_in(const json& range) {
  if (!range.is_object() || !range.contains("kvs") || !range["kvs"].is_array() || range["kvs"].empty()) return nullptr;
  return range["kvs"][0];
}

/// Returns the answer to the range at `index` of a transaction.
json range_in(const json& answer, std::size_t index) {
  if (!answer.contains("responses") || !answer["responses"].is_array() || answer["responses"].size() <= index)
    return nullptr;
  return answer["responses"][index].value("response_range", json());
}

}  // namespace

Result<std::unique_ptr<EtcdElection>> EtcdElection::create(const EtcdSettings& settings, const std::string& url,
                                                           const std::string& name,
                                                           std::chrono::milliseconds call_limit) {
  auto client = EtcdClient::create(settings);
  if (!client) return std::unexpected(client.error());
  std::unique_ptr<EtcdElection> election(new EtcdElection(std::move(*client), name, call_limit));
  election->reach_at(url);
  return election;
}

void EtcdElection::reach_at(const std::string& url) {
  candidate_ = json{{"url", url}, {"name", name_}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<LeaseId> EtcdElection::make_lease(std::chrono::milliseconds life) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(life).count();
  const auto answer = client_->call("/v3/lease/grant", {{"TTL", seconds}}, call_limit_);
  if (!answer) return std::unexpected(answer.error());
  const auto id = static_cast<LeaseId>(etcd_number(*answer, "ID"));
  if (id <= 0) return fail(Errc::corrupt, "etcd gave a lease without a number");
  return id;
}

Result<Term> EtcdElection::term_of(LeaseId lease, const json& leader, const json& base) const {
  Term term{.lease = lease,
            .revision = etcd_number(leader, "create_revision"),
            .version = etcd_number(leader, "version"),
            .candidate = candidate_};
  const auto text = etcd_text(base, "value");
  if (!text) return std::unexpected(text.error());
  std::from_chars(text->data(), text->data() + text->size(), term.fence_base);
  if (term.revision == 0 || term.version == 0) return fail(Errc::corrupt, "etcd's leader key has no revision");
  return term;
}

/// Reads the key in the same transaction. So a call that is repeated after a lost answer finds that it has won.
Result<std::optional<Term>> EtcdElection::stand(LeaseId lease) {
  const std::string key = client_->key(kLeaderKey);
  const json put = {{"key", key}, {"value", to_base64_text(candidate_)}, {"lease", std::to_string(lease)}};
  const json read = {{"request_range", {{"key", key}}}};
  const json read_base = {{"request_range", {{"key", client_->key(kFenceBaseKey)}}}};
  const json absent = {{"key", key}, {"target", "CREATE"}, {"result", "EQUAL"}, {"create_revision", "0"}};
  const json body = {{"compare", json::array({absent})},
                     {"success", json::array({json{{"request_put", put}}, read, read_base})},
                     {"failure", json::array({read, read_base})}};
  const auto answer = client_->call("/v3/kv/txn", body, call_limit_);
  if (!answer) return std::unexpected(answer.error());
  const std::size_t first = answer->value("succeeded", false) ? 1 : 0;
  const json leader = pair_in(range_in(*answer, first));
  if (leader.is_null() || static_cast<LeaseId>(etcd_number(leader, "lease")) != lease) return std::nullopt;
  auto term = term_of(lease, leader, pair_in(range_in(*answer, first + 1)));
  if (!term) return std::unexpected(term.error());
  return std::move(*term);
}

Result<bool> EtcdElection::renew(LeaseId lease) {
  const auto answer = client_->call("/v3/lease/keepalive", {{"ID", std::to_string(lease)}}, call_limit_);
  if (!answer && answer.error().code == Errc::peer_gone) return false;
  if (!answer) return std::unexpected(answer.error());
  return answer->contains("result") && etcd_number((*answer)["result"], "TTL") > 0;
}

void EtcdElection::resign(LeaseId lease) {
  static_cast<void>(client_->call("/v3/lease/revoke", {{"ID", std::to_string(lease)}}, call_limit_));
}

Result<std::optional<LeaderSeen>> EtcdElection::look() {
  const auto answer = client_->call("/v3/kv/range", {{"key", client_->key(kLeaderKey)}}, call_limit_);
  if (!answer) return std::unexpected(answer.error());
  const json leader = pair_in(*answer);
  if (leader.is_null()) return std::nullopt;
  const auto text = etcd_text(leader, "value");
  if (!text) return std::unexpected(text.error());
  const json candidate = json_or_discarded(*text);
  const bool named = candidate.is_object() && candidate.contains("url") && candidate["url"].is_string();
  return LeaderSeen{.url = named ? candidate["url"].get<std::string>() : "",
                    .revision = etcd_number(leader, "create_revision")};
}

}  // namespace tributary::manager
