#include "tree-manager/api/replies.h"

#include <nlohmann/json.hpp>

#include "tributary/protocol/reason.h"

namespace tributary::manager {
namespace {

const char* code_of(unsigned status) {
  switch (status) {
    case 400:
      return "bad_request";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    case 409:
      return "conflict";
    case 413:
    case 431:
      return "too_large";
    case 429:
    case 503:
      return "busy";
    case 507:
      return "insufficient_storage";
    default:
      return status < 500 ? "bad_request" : "internal";
  }
}

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::bad_argument:
    case Errc::bad_config:
      return 400;
    case Errc::denied:
      return 403;
    case Errc::peer_gone:
      return 404;
    case Errc::mismatch:
      return 409;
    case Errc::retry:
      return 503;
    case Errc::exhausted:
      return 507;
    default:
      return 500;
  }
}

}  // namespace

HttpReply json_reply(const nlohmann::json& body, unsigned status) {
  // The manager has checked that texts from outside are UTF-8. dump() replaces a wrong byte that was not noticed, so it
  // does not throw.
  HttpReply reply{
      .status = status, .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), .headers = {}};
  reply.body += '\n';
  return reply;
}

HttpReply error_reply(unsigned status, const std::string& message) {
  const CodedText text = split_code(message);
  nlohmann::json error = {{"code", code_of(status)}, {"message", text.sentence}};
  if (text.reason != Reason::none) error["reason_code"] = tributary::code_of(text.reason);
  return json_reply({{"error", std::move(error)}}, status);
}

HttpReply done_reply(const Status& status) {
  return status ? json_reply({{"done", true}}) : error_reply(status.error());
}

HttpReply no_leader_reply() {
  HttpReply reply = json_reply(
      {{"error",
        {{"code", "no_leader"},
         {"reason_code", tributary::code_of(Reason::no_leader)},
         {"message", "this manager does not lead, and knows of none that does; ask again, or ask another manager"}}}},
      503);
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

HttpReply error_reply(const Error& error) {
  return error_reply(status_of(error.code), error.message);
}

}  // namespace tributary::manager
