#include "client/cli/perf/id_lines.h"

#include <charconv>
#include <sstream>

namespace tributary::cli {
namespace {

constexpr std::string_view kGreeting = "tributary-id/1";
constexpr std::string_view kId = "id ";
constexpr std::string_view kNo = "no ";

}  // namespace

std::string to_line(const IdQuestion& question) {
  return std::string(kGreeting) + " " + std::to_string(question.rank) + " " + std::to_string(question.ranks) + " " +
         question.job;
}

std::optional<IdQuestion> read_question(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string greeting;
  IdQuestion question;
  if (!(in >> greeting >> question.rank >> question.ranks) || greeting != kGreeting) return std::nullopt;
  in >> question.job;
  return question;
}

std::string to_line(const IdBytes& id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(kId);
  for (const unsigned char byte : id) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return text;
}

bool is_id(std::string_view line) noexcept {
  return line.starts_with(kId);
}

Result<IdBytes> read_id(std::string_view line) {
  IdBytes id{};
  if (!is_id(line) || line.size() != kId.size() + 2 * id.size()) return fail(Errc::corrupt, "this is no unique id");
  for (std::size_t i = 0; i < id.size(); ++i) {
    const char* const at = line.data() + kId.size() + 2 * i;
    if (std::from_chars(at, at + 2, id[i], 16).ptr != at + 2) return fail(Errc::corrupt, "this is no unique id");
  }
  return id;
}

std::string refusal_line(std::string_view reason) {
  return std::string(kNo) + std::string(reason);
}

std::optional<std::string> read_refusal(std::string_view line) {
  if (!line.starts_with(kNo)) return std::nullopt;
  return std::string(line.substr(kNo.size()));
}

}  // namespace tributary::cli
