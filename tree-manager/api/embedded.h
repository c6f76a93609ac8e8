#pragma once
#include <string_view>

namespace tributary::manager {

extern const std::string_view kOpenApiJson;  // api/openapi.json
extern const std::string_view kIndexHtml;    // web/index.html

}  // namespace tributary::manager
