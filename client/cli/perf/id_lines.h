#pragma once
// The lines by which rank 0 hands out the unique id (id_exchange.h): writes and reads them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/cli/perf/id_exchange.h"

namespace tributary::cli {

/// The question of a rank.
struct IdQuestion {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::string job;
};
[[nodiscard]] std::string to_line(const IdQuestion& question);
/// nullopt: the line comes from a stranger.
[[nodiscard]] std::optional<IdQuestion> read_question(std::string_view line);

[[nodiscard]] std::string to_line(const IdBytes& id);
/// Reads the id from a line for which is_id() holds.
[[nodiscard]] Result<IdBytes> read_id(std::string_view line);
[[nodiscard]] bool is_id(std::string_view line) noexcept;

[[nodiscard]] std::string refusal_line(std::string_view reason);
/// Returns the reason; nullopt: the line is no refusal.
[[nodiscard]] std::optional<std::string> read_refusal(std::string_view line);

}  // namespace tributary::cli
