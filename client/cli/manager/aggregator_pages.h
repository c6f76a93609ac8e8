#pragma once
// Asks aggregators for their pages over HTTP.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

struct AggregatorPage {
  std::string url;  // the scheme and the address that have answered
  std::string body;
};
/// Asks for a page at `http`, an aggregator's address for pages: by TLS if TRIBUTARY_TLS_CA is set, then without,
/// because an aggregator does not tell the manager whether its pages have TLS. Errc::denied: it answered with an error.
[[nodiscard]] Result<AggregatorPage> page_of(const std::string& http, const std::string& target);
/// Asks for a page at a URL that has answered before.
[[nodiscard]] Result<std::string> page_at(const std::string& url, const std::string& target);

/// Calls `work` for each element, on several threads.
template <class Element, class Work>
void for_all(std::vector<Element>& elements, Work work) {
  constexpr std::size_t kThreadsMax = 16;
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(kThreadsMax, elements.size()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t one = next++; one < elements.size(); one = next++) work(elements[one]);
    });
  }
}

}  // namespace tributary::cli
