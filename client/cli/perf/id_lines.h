#pragma once
// The lines by which rank 0 hands out the unique id (id_exchange.h): what is said, and what is made of what is heard.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/cli/perf/id_exchange.h"

namespace tributary::cli {

/// Of a rank that asks.
struct IdQuestion {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string job;
};
[[nodiscard]] std::string to_line(const IdQuestion& question);
/// None: a stranger's.
[[nodiscard]] std::optional<IdQuestion> read_question(std::string_view line);

[[nodiscard]] std::string to_line(const IdBytes& id);
/// Of a line that is_id().
[[nodiscard]] Result<IdBytes> read_id(std::string_view line);
[[nodiscard]] bool is_id(std::string_view line) noexcept;

[[nodiscard]] std::string refusal_line(std::string_view reason);
/// The reason; none: the line is no refusal.
[[nodiscard]] std::optional<std::string> read_refusal(std::string_view line);

}  // namespace tributary::cli
