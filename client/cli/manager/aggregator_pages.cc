#include "client/cli/manager/aggregator_pages.h"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "client/cli/manager/access.h"
#include "service-kit/http/http_client.h"

namespace tributary::cli {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectLimit{1000}, kRequestLimit{10000};
constexpr std::uint64_t kAnswerBytesMax = std::uint64_t{64} << 20;
constexpr service::HttpServerWords kPageWords{
    .name = "the aggregator", .advice = "check its http_listen", .kind = "aggregator URL", .default_port = "7472"};

}  // namespace

Result<std::string> page_at(const std::string& url, const std::string& target) {
  const auto read = service::parse_url(url, kPageWords);
  if (!read) return std::unexpected(read.error());
  auto tls = manager_client::tls_for(url, tls_files());
  if (!tls) return std::unexpected(tls.error());
  service::HttpClient client(kPageWords, std::move(*tls));
  auto answer = client.run(*read, {.method = "GET",
                                   .target = target,
                                   .authorization = {},
                                   .body = {},
                                   .connect_limit = kConnectLimit,
                                   .request_limit = kRequestLimit,
                                   .answer_bytes_max = kAnswerBytesMax});
  if (!answer) return std::unexpected(answer.error());
  if (answer->status == 200) return std::move(answer->body);
  const std::string_view line(answer->body.data(), std::min(answer->body.find('\n'), answer->body.size()));
  return fail(Errc::denied, answer->status == 404 && !target.contains("number=")
                                ? "it is of a version without this page"
                                : std::string(line.substr(0, 200)));
}

Result<AggregatorPage> page_of(const std::string& http, const std::string& target) {
  Error error{Errc::unreachable, ""};
  for (const char* scheme : {"https://", "http://"}) {
    if (std::string_view(scheme) == "https://" && tls_files().ca.empty()) continue;
    auto body = page_at(scheme + http, target);
    if (body) return AggregatorPage{scheme + http, std::move(*body)};
    error = body.error();
    if (error.code == Errc::denied) break;
  }
  return std::unexpected(error);
}

}  // namespace tributary::cli
