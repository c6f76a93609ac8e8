#include "tree-manager/api/web_files.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tree-manager/api/embedded.h"
#include "tree-manager/api/replies.h"

namespace tributary::manager {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"},
};

std::string type_of(std::string_view name) {
  const auto* const found = std::ranges::find_if(kTypes, [&](const auto& type) { return name.ends_with(type.first); });
  return std::string(found == std::end(kTypes) ? "text/plain; charset=utf-8" : found->second);
}

}  // namespace

HttpReply web_file(const std::string& name, const service::HttpHead& head) {
  const auto file = std::ranges::find(kWebFiles, name, &WebFile::name);
  if (file == kWebFiles.end()) return error_reply(404, "the page has no file of this name");
  const std::string tag = '"' + std::string(file->digest.substr(0, 32)) + '"';
  HttpReply reply{.content_type = type_of(name), .body = {}, .headers = {}};
  reply.headers.emplace_back("ETag", tag);
  reply.headers.emplace_back("Cache-Control", "no-cache");  // browsers keep it, and ask each time whether it is new
  if (head.if_none_match.contains(tag)) {
    reply.status = 304;
    return reply;
  }
  reply.headers.emplace_back("Content-Security-Policy",
                             "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
                             "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  reply.body = std::string(file->bytes);
  return reply;
}

}  // namespace tributary::manager
