#pragma once
// The REST interface of one of several managers: answers the requests that it may answer, and passes all others on to
// the leader.
#include <atomic>
#include <optional>
#include <string>

#include "service-kit/http/http_message.h"
#include "tree-manager/api/api.h"
#include "tree-manager/replicas/copy.h"
#include "tree-manager/replicas/member.h"
#include "tree-manager/replicas/passing.h"

namespace tributary::manager {

/// Any thread may call it. A request ends in one of these ways:
/// - the route's row has `own`: this manager answers, whether it leads or not;
/// - this manager leads: it answers. If it does not lead any more when the answer is ready, the caller gets no_leader:
///   so no signature leaves a manager that has lost the lead;
/// - another manager leads: the caller gets that manager's answer. No request is passed on twice;
/// - no leader answers: a read gets an answer from a copy of the store, with the header Tributary-Copy; any other
///   request gets no_leader.
class Front final : public service::HttpHandler {
 public:
  /// All arguments must outlive this object.
  Front(Api& api, const Member& member, Passing& passing, Copy& copy, Forwarder forwarder);
  [[nodiscard]] service::Admission admit(const service::HttpHead& head) override;
  [[nodiscard]] HttpReply handle(const service::HttpHead& head, const std::string& body) override;
  [[nodiscard]] HttpReply reject(unsigned status, const std::string& message) override;
  /// Adds this manager's counts to what it knows of the leadership.
  [[nodiscard]] Standing standing() const;

 private:
  [[nodiscard]] service::HttpHead seen_from(const service::HttpHead& head, const std::string* body) const;
  [[nodiscard]] std::optional<HttpReply> pass(const AccessRow& row, const service::HttpHead& head,
                                              const std::string& body);
  [[nodiscard]] HttpReply without_leader(const AccessRow& row, const service::HttpHead& head, const std::string& body);

  Api& api_;
  const Member& member_;
  Passing& passing_;
  Copy& copy_;
  const Forwarder forwarder_;
  std::atomic<std::uint64_t> passed_on_{0}, passed_on_in_vain_{0}, answered_from_copy_{0};
};

}  // namespace tributary::manager
