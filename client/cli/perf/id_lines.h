#pragma once
// Writes and reads the lines by which rank 0 distributes the unique id (id_exchange.h).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/cli/perf/id_exchange.h"

namespace tributary::cli {

/// The question that a rank sends.
struct IdQuestion {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string job;
};
[[nodiscard]] std::string to_line(const IdQuestion& question);
/// Reads a question; nullopt: a stranger has sent the line.
[[nodiscard]] std::optional<IdQuestion> read_question(std::string_view line);

[[nodiscard]] std::string to_line(const IdBytes& id);
/// Reads the id from a line for which is_id() returns true.
[[nodiscard]] Result<IdBytes> read_id(std::string_view line);
[[nodiscard]] bool is_id(std::string_view line) noexcept;

[[nodiscard]] std::string refusal_line(std::string_view reason);
/// Reads the reason of a refusal; nullopt: the line is no refusal.
[[nodiscard]] std::optional<std::string> read_refusal(std::string_view line);

}  // namespace tributary::cli
