#include "client/cli/trace/aggregator_traces.h"

#include <spdlog/fmt/fmt.h>
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/cli/manager/access.h"
#include "service-kit/http/http_client.h"
#include "service-kit/http/percent.h"

namespace tributary::cli {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kThreadsMax = 16;
constexpr milliseconds kConnectLimit{1000}, kRequestLimit{10000};
constexpr std::uint64_t kAnswerBytesMax = std::uint64_t{64} << 20;
constexpr service::HttpServerWords kWords{
    .name = "the aggregator", .advice = "check its http_listen", .kind = "aggregator URL", .default_port = "7472"};

Result<std::string> get(const std::string& url, const std::string& target) {
  const auto read = service::parse_url(url, kWords);
  if (!read) return std::unexpected(read.error());
  auto tls = manager_client::tls_for(url, tls_files());
  if (!tls) return std::unexpected(tls.error());
  service::HttpClient client(kWords, std::move(*tls));
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
  return fail(Errc::denied, answer->status == 404 && !target.contains("number=") ? "it is of a version without traces"
                                                                                 : std::string(line.substr(0, 200)));
}

std::string name_of(const JobPlaces::Aggregator& aggregator) {
  return "aggregator " + aggregator.name + " (" + aggregator.http + ")";
}

/// Calls `work` for each element, on several threads.
template <class Element, class Work>
void for_all(std::vector<Element>& elements, Work work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(kThreadsMax, elements.size()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t one = next++; one < elements.size(); one = next++) work(elements[one]);
    });
  }
}

}  // namespace

AggregatorTraces::AggregatorTraces(std::vector<JobPlaces::Aggregator> aggregators) {
  for (auto& aggregator : aggregators)
    asked_.push_back({.aggregator = std::move(aggregator), .url = {}, .answer = {}, .trouble = {}});
}

void AggregatorTraces::begin(const std::string& job, double seconds) {
  for_all(asked_, [&](Asked& asked) { begin_one(asked, job, seconds); });
}

// An aggregator does not tell the manager whether its pages have TLS.
void AggregatorTraces::begin_one(Asked& asked, const std::string& job, double seconds) {
  const std::string target = fmt::format("/v1/trace?seconds={}&job={}", seconds, service::percent_encode(job));
  Result<std::string> answer = fail(Errc::unreachable, "");
  for (const char* scheme : {"https://", "http://"}) {
    if (std::string_view(scheme) == "https://" && tls_files().ca.empty()) continue;
    asked.url = scheme + asked.aggregator.http;
    answer = get(asked.url, target);
    if (answer || answer.error().code == Errc::denied) break;
  }
  const auto read = answer ? nlohmann::json::parse(*answer, nullptr, false) : nlohmann::json();
  if (read.is_object() && read.contains("trace") && read["trace"].is_number_unsigned()) {
    asked.number = read["trace"].get<std::uint64_t>();
  } else {
    asked.trouble = answer ? "its answer has another form" : answer.error().message;
  }
}

void AggregatorTraces::take(std::vector<TraceDocument>& documents) {
  for_all(asked_, take_one);
  for (Asked& asked : asked_) {
    if (asked.trouble.empty())
      documents.push_back({.from = name_of(asked.aggregator), .text = std::move(asked.answer)});
    asked.answer.clear();
  }
}

void AggregatorTraces::take_one(Asked& asked) {
  if (!asked.trouble.empty()) return;
  auto answer = get(asked.url, "/v1/trace?number=" + std::to_string(asked.number));
  if (answer) {
    asked.answer = std::move(*answer);
  } else {
    asked.trouble = answer.error().message;
  }
}

std::vector<std::string> AggregatorTraces::troubles() const {
  std::vector<std::string> sentences;
  for (const Asked& asked : asked_) {
    if (!asked.trouble.empty()) sentences.push_back(name_of(asked.aggregator) + ": " + asked.trouble);
  }
  return sentences;
}

}  // namespace tributary::cli
