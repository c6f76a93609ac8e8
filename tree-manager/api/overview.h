#pragma once
// GET /v1/overview: all that the web page shows at once, in one short document.
#include <cstdint>
#include <functional>
#include <string>

#include "service-kit/http/http_message.h"
#include "tree-manager/service/cluster.h"

namespace tributary::manager {

/// `query`: "only=groups" leaves the aggregators out; "host=TEXT" leaves out groups without a rank on a host whose name
/// contains the text. The document contains the effects of `last_event` and all events before it.
[[nodiscard]] service::HttpReply overview_reply(const Cluster& cluster, const std::string& query,
                                                std::uint64_t last_event,
                                                const std::function<bool(const GroupRecord&)>& sees);

}  // namespace tributary::manager
