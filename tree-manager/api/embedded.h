#pragma once
#include <span>
#include <string_view>

namespace tributary::manager {

struct WebFile {
  std::string_view name;  // without a folder
  std::string_view bytes;
  std::string_view digest;  // SHA-256 of the bytes, in hexadecimal
};

extern const std::string_view kOpenApiJson;       // api/openapi.json
extern const std::span<const WebFile> kWebFiles;  // web/, and its libraries in web/vendor/

}  // namespace tributary::manager
