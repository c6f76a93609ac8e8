#include "client/cli/trace/aggregator_traces.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "client/cli/manager/aggregator_pages.h"
#include "service-kit/http/percent.h"

namespace tributary::cli {
namespace {

std::string name_of(const JobPlaces::Aggregator& aggregator) {
  return "aggregator " + aggregator.name + " (" + aggregator.http + ")";
}

}  // namespace

AggregatorTraces::AggregatorTraces(std::vector<JobPlaces::Aggregator> aggregators) {
  for (auto& aggregator : aggregators)
    asked_.push_back({.aggregator = std::move(aggregator), .url = {}, .answer = {}, .trouble = {}});
}

void AggregatorTraces::begin(const std::string& job, double seconds) {
  for_all(asked_, [&](Asked& asked) { begin_one(asked, job, seconds); });
}

void AggregatorTraces::begin_one(Asked& asked, const std::string& job, double seconds) {
  const std::string target = fmt::format("/v1/trace?seconds={}&job={}", seconds, service::percent_encode(job));
  const auto answer = page_of(asked.aggregator.http, target);
  const auto read = answer ? nlohmann::json::parse(answer->body, nullptr, false) : nlohmann::json();
  if (read.is_object() && read.contains("trace") && read["trace"].is_number_unsigned()) {
    asked.number = read["trace"].get<std::uint64_t>();
    asked.url = answer->url;
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
  auto answer = page_at(asked.url, "/v1/trace?number=" + std::to_string(asked.number));
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
