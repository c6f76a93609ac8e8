#pragma once
// The files of the web page, as HTTP serves them.
#include <string>

#include "service-kit/http/http_message.h"

namespace tributary::manager {

/// Answers with this file of web/; 304 if the caller has it already, 404 if there is none.
[[nodiscard]] service::HttpReply web_file(const std::string& name, const service::HttpHead& head);

}  // namespace tributary::manager
