#pragma once
// The pages that an aggregator serves over HTTP, by path, to every client.
#include <functional>

#include "service-kit/http/http_message.h"

namespace tributary::aggregator {

class StatusPages final : public service::HttpHandler {
 public:
  /// Returns the page for a request. The server's one thread calls it.
  using Page = std::function<service::HttpReply(const service::HttpHead& head)>;
  explicit StatusPages(Page page) : page_(std::move(page)) {}

  [[nodiscard]] service::Admission admit(const service::HttpHead& head) override;
  [[nodiscard]] service::HttpReply handle(const service::HttpHead& head, const std::string& body) override;
  [[nodiscard]] service::HttpReply reject(unsigned status, const std::string& message) override;

 private:
  const Page page_;
};

}  // namespace tributary::aggregator
