#include "tree-manager/store/etcd/etcd_url.h"

#include <algorithm>
#include <ranges>
#include <string>

namespace tributary::manager {
namespace {

constexpr std::string_view kEtcdScheme = "etcd://";
constexpr std::string_view kSecureScheme = "etcds://";
constexpr std::size_t kMembersMax = 16;
constexpr std::size_t kPrefixBytesMax = 256;

}  // namespace

bool is_etcd_with_tls(std::string_view text) noexcept {
  return text.starts_with(kSecureScheme);
}

Result<EtcdSettings> parse_etcd_url(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return fail(Errc::bad_config,
                "'" + std::string(text) + "' names no etcd: " + why +
                    "; write etcd://host:2379,host:2379,host:2379 or etcd://host:2379/prefix, and etcds:// "
                    "with TLS");
  };
  const bool secure = is_etcd_with_tls(text);
  if (!secure && !text.starts_with(kEtcdScheme)) return bad("it does not begin with etcd:// or etcds://");
  const std::string_view rest = text.substr((secure ? kSecureScheme : kEtcdScheme).size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  EtcdSettings settings;
  for (const auto part : std::views::split(rest.substr(0, slash), ',')) {
    settings.endpoints.push_back((secure ? "https://" : "http://") + std::string(std::string_view(part)));
  }
  if (settings.endpoints.size() > kMembersMax) return bad("it has more than 16 members");
  std::string_view prefix = rest.substr(slash);
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  const bool printable = std::ranges::all_of(prefix, [](char c) { return c > ' ' && c < 127; });
  if (!printable || prefix.size() > kPrefixBytesMax) return bad("the prefix is no printable text of 256 bytes at most");
  if (!prefix.empty()) settings.prefix = std::string(prefix) + "/";
  if (const auto urls = EtcdClient::urls_of(settings); !urls) return bad(urls.error().message);
  return settings;
}

}  // namespace tributary::manager
