#include "tree-manager/replicas/front.h"

#include <utility>

#include "tree-manager/api/replies.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {

using service::Admission;
using service::HttpHead;

Front::Front(Api& api, const Member& member, Passing& passing, Copy& copy, Forwarder forwarder)
    : api_(api), member_(member), passing_(passing), copy_(copy), forwarder_(forwarder) {}

/// Returns the head with the address and the certificate of the caller in place of the address and certificate of the
/// manager that passed the request on. A certificate was stated for only one body; nullptr: the body has not come yet.
HttpHead Front::seen_from(const HttpHead& head, const std::string* body) const {
  if (head.passed_on.empty()) return head;
  HttpHead seen = head;
  seen.certificate = nullptr;
  const auto sender = forwarder_.first_sender(head);
  if (!sender) return seen;
  seen.remote_address = sender->address;
  if (body == nullptr || forwarder_.is_body_of(*sender, *body)) seen.certificate = sender->certificate;
  return seen;
}

Admission Front::admit(const HttpHead& head) {
  return api_.admit(seen_from(head, nullptr));
}

HttpReply Front::reject(unsigned status, const std::string& message) {
  return api_.reject(status, message);
}

HttpReply Front::handle(const HttpHead& head, const std::string& body) {
  const AccessRow* const row = api_.row_of(head);
  TRIBUTARY_ASSERT(row != nullptr, "a request for {} was let in without a route", std::string_view(head.path));
  if (row->own) return api_.handle(head, body);
  if (const auto cluster = member_.cluster()) {
    HttpReply reply = api_.handle(seen_from(head, &body), body, cluster);
    return member_.cluster() == cluster ? reply : no_leader_reply();
  }
  if (head.passed_on.empty()) {
    if (auto reply = pass(*row, head, body)) return std::move(*reply);
  }
  return without_leader(*row, head, body);
}

std::optional<HttpReply> Front::pass(const AccessRow& row, const HttpHead& head, const std::string& body) {
  const auto leader = member_.leader();
  if (!leader || leader->url.empty()) return std::nullopt;
  auto reply = passing_.pass(leader->url, head, body, row.read || row.open);
  ++(reply ? passed_on_ : passed_on_in_vain_);
  return reply;
}

HttpReply Front::without_leader(const AccessRow& row, const HttpHead& head, const std::string& body) {
  if (!(row.read || row.open) || !head.passed_on.empty()) return no_leader_reply();
  const auto cluster = copy_.cluster();
  if (!cluster) return no_leader_reply();
  ++answered_from_copy_;
  HttpReply reply = api_.handle(head, body, cluster);
  reply.headers.emplace_back("Tributary-Copy", "true");
  return reply;
}

Standing Front::standing() const {
  const auto cluster = member_.cluster();
  const auto leader = member_.leader();
  return {.leads = cluster != nullptr,
          .alone = false,
          .leader = leader ? leader->url : "",
          .fence = cluster ? cluster->fence() : 0,
          .leaders_seen = member_.leaders_seen(),
          .passed_on = passed_on_.load(),
          .passed_on_in_vain = passed_on_in_vain_.load(),
          .answered_from_copy = answered_from_copy_.load()};
}

}  // namespace tributary::manager
