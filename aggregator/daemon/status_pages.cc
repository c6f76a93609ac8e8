#include "aggregator/daemon/status_pages.h"

namespace tributary::aggregator {

using service::Admission;
using service::HttpHead;
using service::HttpReply;

Admission StatusPages::admit(const HttpHead& head) {
  if (head.method == "GET") return {};
  HttpReply refusal = reject(405, "only GET and HEAD are served here");
  refusal.headers.emplace_back("Allow", "GET, HEAD");
  return {.refusal = std::move(refusal)};
}

HttpReply StatusPages::handle(const HttpHead& head, const std::string& /*body*/) {
  return page_(head);
}

HttpReply StatusPages::reject(unsigned status, const std::string& message) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = message + "\n", .headers = {}};
}

}  // namespace tributary::aggregator
