#include "tests/simulation/cluster/blame.h"

#include <array>
#include <charconv>
#include <string_view>

namespace tributary::simulation {
namespace {

using std::string_view_literals::operator""sv;

// The name of a rank that was late by its own fault stands before this text, whatever follows about other ranks.
constexpr auto kItself = " stood still for "sv;
// The names of the ranks to blame stand before one of these texts.
constexpr std::array kVerbs{
    ": no answer"sv, ": did not call "sv,     ": furthest behind"sv,        ": did not finalize"sv,
    " is gone: "sv,  " did not answer at "sv, " did not say how to begin"sv};
// Otherwise the names stand after one of these texts.
constexpr std::array kIntroductions{" lost its connection to "sv, "these ranks did not come: "sv,
                                    "no answer came from "sv};

/// Returns the ranks in a text such as "rank 3 on host g0r3, rank 4".
std::vector<std::uint32_t> ranks_in(std::string_view text) {
  constexpr auto kRank = "rank "sv;
  std::vector<std::uint32_t> ranks;
  for (std::size_t at = text.find(kRank); at != std::string_view::npos; at = text.find(kRank, at + 1)) {
    std::uint32_t rank = 0;
    const std::string_view number = text.substr(at + kRank.size());
    if (std::from_chars(number.data(), number.data() + number.size(), rank).ec == std::errc{}) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> blamed(const std::string& message) {
  const std::string_view said = std::string_view(message).substr(0, message.find("; here "));
  if (const std::size_t at = said.find(kItself); at != std::string_view::npos) return ranks_in(said.substr(0, at));
  for (const auto introduction : kIntroductions) {
    const std::size_t at = said.find(introduction);
    if (at == std::string_view::npos) continue;
    const std::string_view who = said.substr(at + introduction.size());
    return ranks_in(who.substr(0, who.find(':')));
  }
  std::size_t end = std::string_view::npos;
  for (const auto verb : kVerbs) end = std::min(end, said.find(verb));
  if (end == std::string_view::npos) return std::nullopt;
  return ranks_in(said.substr(0, end));
}

}  // namespace tributary::simulation
