#include "tree-manager/topology/import/found_fabric.h"

#include <algorithm>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

constexpr std::size_t kMistakesShown = 10;
constexpr std::size_t kSkippedShown = 3;
constexpr std::size_t kExcerptBytesMax = 60;
constexpr std::string_view kBlanks = " \t\v\f";

/// Returns the beginning of a line, without characters that control a terminal.
std::string excerpt(std::string_view text) {
  std::string shown(text.substr(0, kExcerptBytesMax));
  std::ranges::replace_if(shown, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, ' ');
  return shown + (text.size() > kExcerptBytesMax ? "..." : "");
}

}  // namespace

Result<std::uint32_t> NodeTable::add(const std::string& key, FoundNode node) {
  if (const std::uint32_t* known = find(key)) return *known;
  if (fabric_.nodes.size() >= kFoundNodesMax) {
    return fail(Errc::exhausted, "more than " + std::to_string(kFoundNodesMax) + " hosts and switches");
  }
  const auto index = static_cast<std::uint32_t>(fabric_.nodes.size());
  fabric_.nodes.push_back(std::move(node));
  indices_.emplace(key, index);
  return index;
}

const std::uint32_t* NodeTable::find(const std::string& key) const {
  const auto found = indices_.find(key);
  return found == indices_.end() ? nullptr : &found->second;
}

Status NodeTable::link(std::uint32_t a, std::uint32_t b, std::uint64_t rate_bits_per_second,
                       std::string_view interface) {
  TRIBUTARY_ASSERT(a < fabric_.nodes.size() && b < fabric_.nodes.size(), "a link joins {} and {}, of {} nodes", a, b,
                   fabric_.nodes.size());
  if (fabric_.links.size() >= kFoundLinksMax) {
    return fail(Errc::exhausted, "more than " + std::to_string(kFoundLinksMax) + " links");
  }
  std::uint32_t number = kNoInterface;
  if (!interface.empty()) {
    const auto next = static_cast<std::uint32_t>(fabric_.interfaces.size());
    const auto [known, added] = interfaces_.emplace(interface, next);
    if (added) fabric_.interfaces.emplace_back(interface);
    number = known->second;
  }
  fabric_.links.push_back({a, b, rate_bits_per_second, number});
  return {};
}

void ImportNotes::wrong(std::size_t line, std::string_view why) {
  if (++wrong_count_ > kMistakesShown) return;
  wrong_ += (wrong_.empty() ? "" : "\n") + file_ + ":" + std::to_string(line) + ": " + std::string(why);
}

void ImportNotes::skipped(std::size_t line, std::string_view text) {
  if (++skipped_count_ > kSkippedShown) return;
  skipped_ += (skipped_.empty() ? "" : "; ") + ("line " + std::to_string(line)) + " '" + excerpt(text) + "'";
}

Status ImportNotes::status() const {
  if (!any_wrong()) return {};
  const std::size_t more = wrong_count_ - std::min(wrong_count_, kMistakesShown);
  return fail(Errc::bad_config,
              wrong_ + (more == 0 ? "" : "\n" + file_ + ": and " + std::to_string(more) + " more mistakes"));
}

void ImportNotes::report(std::vector<std::string>& warnings) const {
  if (skipped_count_ == 0) return;
  const std::size_t more = skipped_count_ - std::min(skipped_count_, kSkippedShown);
  warnings.push_back(file_ + ": lines that say nothing known were left out: " + skipped_ +
                     (more == 0 ? "" : "; and " + std::to_string(more) + " more"));
}

std::string accepted_name(std::string_view name) {
  constexpr std::size_t kReserve = 8;  // bytes for the ending that makes it distinct
  std::string result;
  for (const char c : name.substr(0, kNameBytesMax - kReserve)) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == ':';
    if (good) {
      result += c;
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (result.ends_with('-')) result.pop_back();
  return result.empty() ? "nameless" : result;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string_view next_word(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBlanks)));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

}  // namespace tributary::manager
