#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "service-kit/http/http_message.h"
#include "tributary/protocol/error.h"

namespace tributary::manager {

using service::HttpReply;

[[nodiscard]] HttpReply json_reply(const nlohmann::json& body, unsigned status = 200);
/// Answers {"error": {"code", "message"}}. A code of a reason at the end of the message becomes the member
/// "reason_code".
[[nodiscard]] HttpReply error_reply(unsigned status, const std::string& message);
[[nodiscard]] HttpReply error_reply(const Error& error);
/// Answers {"done": true}, or the error.
[[nodiscard]] HttpReply done_reply(const Status& status);
/// No manager of this store leads, or this one does not know the leader: clients ask another manager, or ask again.
[[nodiscard]] HttpReply no_leader_reply();

}  // namespace tributary::manager
